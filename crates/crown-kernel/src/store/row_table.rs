//! Rows of one width in one vector, found by hash: the store behind primary keys, windows and
//! netting.
//!
//! A row has a slot (`u32`) that is stable while the row exists. Slots are allocated and freed last
//! in, first out, so undoing operations in reverse order restores the table exactly, slot by slot.

use super::hash::hash_words;
use super::interner::Interner;
use crate::chunk::Word;
use crate::mask::Bits;
use hashbrown::HashTable;

/// The columns of stored rows whose words are the interner's; the rows' NULL masks are at `nulls`.
#[derive(Clone, Debug)]
pub struct Interned {
    pub columns: Vec<usize>,
    pub nulls: usize,
}

impl Interned {
    /// Keeps the values of a row alive while it is stored.
    pub fn retain(&self, row: &[Word], interner: &mut Interner) {
        self.present(row).for_each(|word| interner.retain(word));
    }

    pub fn release(&self, row: &[Word], interner: &mut Interner) {
        self.present(row).for_each(|word| interner.release(word));
    }

    fn present<'a>(&'a self, row: &'a [Word]) -> impl Iterator<Item = Word> + 'a {
        self.columns.iter().filter(|column| !row[self.nulls].has(**column)).map(|column| row[*column])
    }
}

/// Rows of `width` words of which the words at `key` identify the row.
#[derive(Clone)]
pub struct RowTable {
    width: usize,
    key: Box<[usize]>,
    words: Vec<Word>,
    /// Free slots, used from the end. A free slot's words are 0.
    free: Vec<u32>,
    index: HashTable<u32>,
}

impl RowTable {
    pub fn new(width: usize, key: impl Into<Box<[usize]>>) -> Self {
        RowTable { width, key: key.into(), words: Vec::new(), free: Vec::new(), index: HashTable::new() }
    }

    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn row(&self, slot: u32) -> &[Word] {
        &self.words[slot as usize * self.width..][..self.width]
    }

    /// Words outside the key may be changed in place.
    pub fn row_mut(&mut self, slot: u32) -> &mut [Word] {
        &mut self.words[slot as usize * self.width..][..self.width]
    }

    fn hash(&self, row: &[Word]) -> u64 {
        hash_words(self.key.iter().map(|position| row[*position]))
    }

    /// The slot of the row whose key is that of `row` (only its key words are read).
    pub fn find(&self, row: &[Word]) -> Option<u32> {
        let same = |slot: &u32| {
            let other = self.row(*slot);
            self.key.iter().all(|position| other[*position] == row[*position])
        };
        self.index.find(self.hash(row), same).copied()
    }

    /// Adds a row whose key is not there.
    pub fn insert(&mut self, row: &[Word]) -> u32 {
        let hash = self.hash(row);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.row_mut(slot).copy_from_slice(row);
                slot
            }
            None => {
                self.words.extend_from_slice(row);
                u32::try_from(self.words.len() / self.width - 1).expect("fewer than 2^32 rows are alive")
            }
        };
        let (words, key, width) = (&self.words, &self.key, self.width);
        self.index.insert_unique(hash, slot, |slot| {
            let row = &words[*slot as usize * width..][..width];
            hash_words(key.iter().map(|position| row[*position]))
        });
        slot
    }

    pub fn remove(&mut self, slot: u32) {
        let hash = self.hash(self.row(slot));
        if let Ok(entry) = self.index.find_entry(hash, |other| *other == slot) {
            entry.remove();
        }
        self.row_mut(slot).fill(0);
        self.free.push(slot);
    }

    /// Releases memory of the index when most of it is unused.
    pub fn shrink(&mut self) {
        if self.index.capacity() > 4 * self.index.len().max(64) {
            let (words, key, width) = (&self.words, &self.key, self.width);
            self.index.shrink_to(2 * self.index.len(), |slot| {
                let row = &words[*slot as usize * width..][..width];
                hash_words(key.iter().map(|position| row[*position]))
            });
        }
    }

    /// The slots of all rows, ascending.
    pub fn slots(&self) -> Vec<u32> {
        let mut slots: Vec<u32> = self.index.iter().copied().collect();
        slots.sort_unstable();
        slots
    }

    pub fn bytes(&self) -> usize {
        self.words.capacity() * 8 + self.free.capacity() * 4 + self.index.capacity() * 5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_key_and_undoing_in_reverse_restores_slots() {
        let mut table = RowTable::new(3, [0, 2]);
        let first = table.insert(&[1, 10, 5]);
        let second = table.insert(&[2, 20, 5]);
        table.remove(first);
        assert_eq!((table.find(&[1, 0, 5]), table.find(&[2, 99, 5])), (None, Some(second)));
        let third = table.insert(&[3, 30, 5]);
        assert_eq!(third, first, "a free slot is used again");
        table.remove(third);
        assert_eq!(table.insert(&[1, 10, 5]), first);
        assert_eq!(table.row(first), [1, 10, 5]);
    }
}
