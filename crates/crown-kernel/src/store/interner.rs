//! Strings, binary and wide decimals as words, reference-counted so that the dictionary shrinks.
//!
//! State that stores a word of an interned column must retain it, and release it when the row is
//! deleted. A value whose count is 0 stays readable until `sweep`, which the engine calls at the
//! end of an `apply`. So deltas may contain values of deleted rows, and values that are computed
//! only for output need no counting.

use crate::chunk::Word;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

/// The dictionary of values that do not fit a word.
#[derive(Default)]
pub struct Interner {
    values: Vec<Box<[u8]>>,
    counts: Vec<u32>,
    free: Vec<u32>,
    /// Ids whose count was 0 at some time since the last sweep; may repeat.
    unreferenced: Vec<u32>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    bytes: usize,
}

impl Interner {
    /// The word of `value`. Its count does not change: retain it if it is stored.
    pub fn intern(&mut self, value: &[u8]) -> Word {
        let hash = self.hasher.hash_one(value);
        if let Some(id) = self.index.find(hash, |id| &*self.values[*id as usize] == value) {
            return Word::from(*id);
        }
        let id = match self.free.pop() {
            Some(id) => {
                self.values[id as usize] = value.into();
                id
            }
            None => {
                self.values.push(value.into());
                self.counts.push(0);
                u32::try_from(self.values.len() - 1).expect("fewer than 2^32 distinct values are alive")
            }
        };
        self.bytes += value.len();
        self.unreferenced.push(id);
        let (values, hasher) = (&self.values, &self.hasher);
        self.index.insert_unique(hash, id, |id| hasher.hash_one(&*values[*id as usize]));
        Word::from(id)
    }

    /// The word of `value` if it is known; never adds.
    pub fn find(&self, value: &[u8]) -> Option<Word> {
        let hash = self.hasher.hash_one(value);
        self.index.find(hash, |id| &*self.values[*id as usize] == value).map(|id| Word::from(*id))
    }

    /// The value that a word represents.
    pub fn get(&self, word: Word) -> &[u8] {
        &self.values[word as usize]
    }

    /// Counts one more row that stores the word.
    pub fn retain(&mut self, word: Word) {
        self.counts[word as usize] += 1;
    }

    /// Counts one row less that stores the word.
    pub fn release(&mut self, word: Word) {
        let count = &mut self.counts[word as usize];
        *count -= 1;
        if *count == 0 {
            self.unreferenced.push(word as u32);
        }
    }

    /// Frees every value that nobody retains.
    pub fn sweep(&mut self) {
        for id in std::mem::take(&mut self.unreferenced) {
            let slot = id as usize;
            if self.counts[slot] > 0 {
                continue;
            }
            let hash = self.hasher.hash_one(&*self.values[slot]);
            if let Ok(entry) = self.index.find_entry(hash, |other| *other == id) {
                entry.remove();
                self.bytes -= self.values[slot].len();
                self.values[slot] = Box::default();
                self.free.push(id);
            }
        }
        if self.index.capacity() > 4 * self.index.len().max(64) {
            let (values, hasher) = (&self.values, &self.hasher);
            self.index.shrink_to(2 * self.index.len(), |id| hasher.hash_one(&*values[*id as usize]));
        }
    }

    /// How many values are alive.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether no value is alive.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Bytes held, bookkeeping included.
    pub fn bytes(&self) -> usize {
        self.bytes
            + self.values.capacity() * 16
            + (self.counts.capacity() + self.free.capacity()) * 4
            + self.index.capacity() * 5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_nobody_retains_go_at_the_sweep_and_their_ids_are_reused() {
        let mut interner = Interner::default();
        let kept = interner.intern(b"kept");
        interner.retain(kept);
        let gone = interner.intern(b"gone");
        assert_eq!(interner.intern(b"gone"), gone);
        assert_eq!(interner.get(gone), b"gone");
        interner.sweep();
        assert_eq!((interner.len(), interner.find(b"gone")), (1, None));
        assert_eq!(interner.intern(b"new"), gone);
        assert_eq!(interner.get(kept), b"kept");
        interner.release(kept);
        interner.retain(kept);
        interner.sweep();
        assert_eq!(interner.find(b"kept"), Some(kept));
    }
}
