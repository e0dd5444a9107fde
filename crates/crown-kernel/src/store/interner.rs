//! Strings, binary and wide decimals as words, reference-counted so that the dictionary shrinks.
//!
//! State that stores a word of an interned column must retain it, and release it when the row is
//! deleted. A value whose count is 0 stays readable until `sweep`, which the engine calls at the
//! end of an `apply`. So deltas may contain values of deleted rows, and values that are computed
//! only for output need no counting.
//!
//! A `twin` starts with the same values and is used apart from its original, on another thread.
//! Until one of the two is dropped, both give a new value the same word and free none, so what one
//! has stored can be moved to the other.

use crate::chunk::Word;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// While there is a twin. It has the free ids.
    common: Option<Arc<Mutex<Common>>>,
}

/// The ids that twins have given out since they were one.
#[derive(Default)]
struct Common {
    ids: HashMap<Box<[u8]>, u32>,
    free: Vec<u32>,
    /// Ids from here on were never used.
    next: u32,
}

impl Common {
    fn id(&mut self, value: &[u8]) -> u32 {
        if let Some(id) = self.ids.get(value) {
            return *id;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.next = self.next.checked_add(1).expect(FEWER);
            self.next - 1
        });
        self.ids.insert(value.into(), id);
        id
    }
}

const FEWER: &str = "fewer than 2^32 distinct values are alive";

fn locked(common: &Mutex<Common>) -> MutexGuard<'_, Common> {
    common.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Interner {
    /// The word of `value`. Its count does not change: retain it if it is stored.
    pub fn intern(&mut self, value: &[u8]) -> Word {
        let hash = self.hasher.hash_one(value);
        if let Some(id) = self.index.find(hash, |id| &*self.values[*id as usize] == value) {
            return Word::from(*id);
        }
        let id = match &self.common {
            Some(common) => locked(common).id(value),
            None => self.free.pop().unwrap_or_else(|| u32::try_from(self.values.len()).expect(FEWER)),
        };
        self.set(id, value, hash);
        Word::from(id)
    }

    fn set(&mut self, id: u32, value: &[u8], hash: u64) {
        self.make_room(id as usize + 1);
        self.values[id as usize] = value.into();
        self.bytes += value.len();
        self.unreferenced.push(id);
        let (values, hasher) = (&self.values, &self.hasher);
        self.index.insert_unique(hash, id, |id| hasher.hash_one(&*values[*id as usize]));
    }

    fn make_room(&mut self, ids: usize) {
        if self.values.len() < ids {
            self.values.resize_with(ids, Box::default);
            self.counts.resize(ids, 0);
        }
    }

    /// A copy for use apart from this one, in which no row retains a value yet.
    pub fn twin(&mut self) -> Interner {
        self.sweep();
        let common = self.common.get_or_insert_with(|| {
            let next = u32::try_from(self.values.len()).expect(FEWER);
            Arc::new(Mutex::new(Common { free: std::mem::take(&mut self.free), next, ..Common::default() }))
        });
        Interner {
            values: self.values.clone(),
            counts: vec![0; self.counts.len()],
            free: Vec::new(),
            unreferenced: Vec::new(),
            index: self.index.clone(),
            hasher: self.hasher.clone(),
            bytes: self.bytes,
            common: Some(common.clone()),
        }
    }

    /// Makes the values known that its twins have added.
    pub fn learn(&mut self) {
        let Some(common) = self.common.clone() else { return };
        for (value, id) in &locked(&common).ids {
            let hash = self.hasher.hash_one(&**value);
            if self.index.find(hash, |known| known == id).is_none() {
                self.set(*id, value, hash);
            }
        }
    }

    /// Takes over the rows that a twin has counted.
    pub fn join(&mut self, twin: Interner) {
        self.learn();
        self.make_room(twin.counts.len());
        for (own, count) in self.counts.iter_mut().zip(&twin.counts) {
            *own += count;
        }
        self.unreferenced.extend_from_slice(&twin.unreferenced);
    }

    /// Frees the ids that only twins have used, once there are none. Whether that is so.
    fn is_alone(&mut self) -> bool {
        let alone = |common: &mut Arc<Mutex<Common>>| Arc::strong_count(common) == 1;
        if let Some(common) = self.common.take_if(alone) {
            let Common { ids, free, next } = std::mem::take(&mut *locked(&common));
            self.make_room(next as usize);
            self.free = free;
            for (value, id) in ids {
                if self.find(&value) != Some(Word::from(id)) {
                    self.free.push(id);
                }
            }
        }
        self.common.is_none()
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

    /// Frees every value that nobody retains; with a twin, once it is gone.
    pub fn sweep(&mut self) {
        if !self.is_alone() {
            return;
        }
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
    #[test]
    fn twins_give_new_values_the_same_words_and_what_one_counted_can_be_joined() {
        let mut interner = Interner::default();
        let old = interner.intern(b"old");
        let gone = interner.intern(b"gone");
        interner.retain(old);
        interner.sweep();
        let mut twin = interner.twin();
        let (first, other) = (interner.intern(b"first"), twin.intern(b"other"));
        assert_ne!(first, other);
        assert!(first == gone || other == gone);
        assert_eq!((interner.intern(b"other"), twin.intern(b"first")), (other, first));
        let (own, apart) = (interner.intern(b"own"), twin.intern(b"apart"));
        for word in [old, other, apart] {
            twin.retain(word);
        }
        interner.release(old);
        interner.sweep();
        assert_eq!(interner.get(old), b"old");
        twin.learn();
        assert_eq!(twin.get(own), b"own");
        interner.join(twin);
        interner.sweep();
        assert_eq!(
            (interner.get(old), interner.get(other), interner.get(apart)),
            (&b"old"[..], &b"other"[..], &b"apart"[..])
        );
        assert_eq!((interner.len(), interner.find(b"own"), interner.find(b"first")), (3, None, None));
        assert!([own, first].contains(&interner.intern(b"next")));
    }

    #[test]
    fn ids_of_a_twin_that_was_dropped_are_free_again() {
        let mut interner = Interner::default();
        let mut twin = interner.twin();
        let ids = [twin.intern(b"a"), twin.intern(b"b")];
        let own = interner.intern(b"own");
        interner.retain(own);
        drop(twin);
        interner.sweep();
        assert_eq!((interner.len(), interner.get(own)), (1, &b"own"[..]));
        let reused = [interner.intern(b"c"), interner.intern(b"d")];
        assert!(reused.iter().all(|id| ids.contains(id)));
    }
}
