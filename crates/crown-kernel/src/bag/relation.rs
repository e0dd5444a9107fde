//! Rows of an atom (or of a projection of it) with counts, and indexes from keys to contiguous
//! lists of candidates.
//!
//! Rows are stored without gaps (see `RowSet`), so everything that is indexed by a row's position
//! does the same `swap_remove` when a row is deleted.

use crate::chunk::{Nulls, Word};
use crate::stages::RowSet;
use crate::store::hash::hash_words;
use crate::store::interner::Interner;
use crate::types::DataType;
use hashbrown::HashTable;
use std::mem::size_of;

pub(crate) struct Relation {
    rows: RowSet,
    counts: Vec<i64>,
    indexes: Vec<KeyIndex>,
}

impl Relation {
    /// Words of interned types are retained while their row is here.
    pub fn new(types: impl IntoIterator<Item = DataType>) -> Relation {
        Relation { rows: RowSet::new(types), counts: Vec::new(), indexes: Vec::new() }
    }

    /// An index from the columns `key` to the rows that have it; the candidates show the word of
    /// column `value`.
    pub fn add_index(&mut self, key: Vec<usize>, value: Option<usize>) -> usize {
        let known = self.indexes.iter().position(|index| index.key == key && index.value == value);
        known.unwrap_or_else(|| {
            self.indexes.push(KeyIndex::new(key, value));
            self.indexes.len() - 1
        })
    }

    pub fn len(&self) -> usize {
        self.counts.len()
    }

    pub fn row(&self, position: usize) -> (&[Word], Nulls) {
        self.rows.row(position)
    }

    pub fn count_at(&self, position: usize) -> i64 {
        self.counts[position]
    }

    pub fn count(&self, words: &[Word], nulls: Nulls) -> i64 {
        self.rows.find(words, nulls).map_or(0, |position| self.counts[position])
    }

    pub fn candidates(&self, index: usize, key: &[Word]) -> &[Candidate] {
        self.indexes[index].find(&self.rows, key)
    }

    /// Changes a row's count; the row exists while its count is not 0.
    pub fn add(&mut self, words: &[Word], nulls: Nulls, weight: i64, interner: &mut Interner) {
        let Some(position) = self.rows.find(words, nulls) else {
            let position = self.rows.insert(words, nulls, interner);
            self.counts.push(weight);
            self.indexes.iter_mut().for_each(|index| index.link(&self.rows, position));
            return;
        };
        self.counts[position] += weight;
        if self.counts[position] == 0 {
            self.indexes.iter_mut().for_each(|index| index.unlink(&self.rows, position));
            self.rows.remove(position, interner);
            self.counts.swap_remove(position);
            shrink(&mut self.counts, 64);
            self.indexes.iter_mut().for_each(|index| index.tidy(&self.rows));
        }
    }

    /// Distinct keys over all indexes.
    pub fn keys(&self) -> usize {
        self.indexes.iter().map(|index| index.table.len()).sum()
    }

    pub fn bytes(&self) -> usize {
        self.rows.bytes() + self.counts.capacity() * 8 + self.indexes.iter().map(KeyIndex::bytes).sum::<usize>()
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Candidate {
    pub word: Word,
    pub row: u32,
}

/// The location of a row: its entry, and its position in that entry's list.
#[derive(Clone, Copy)]
struct ListPosition {
    entry: u32,
    position: u32,
}

struct KeyIndex {
    key: Vec<usize>,
    value: Option<usize>,
    /// Entries by the hash of their key, which is read from the first row of their list.
    table: HashTable<u32>,
    lists: Vec<Vec<Candidate>>,
    free: Vec<u32>,
    /// By row.
    positions: Vec<ListPosition>,
}

impl KeyIndex {
    fn new(key: Vec<usize>, value: Option<usize>) -> KeyIndex {
        KeyIndex { key, value, table: HashTable::new(), lists: Vec::new(), free: Vec::new(), positions: Vec::new() }
    }

    fn find(&self, rows: &RowSet, key: &[Word]) -> &[Candidate] {
        let found = self.table.find(hash_words(key.iter().copied()), |entry| {
            let (words, _) = rows.row(self.lists[*entry as usize][0].row as usize);
            self.key.iter().zip(key).all(|(column, word)| words[*column] == *word)
        });
        found.map_or(&[], |entry| &self.lists[*entry as usize])
    }

    fn hash_of(&self, words: &[Word]) -> u64 {
        hash_words(self.key.iter().map(|column| words[*column]))
    }

    fn link(&mut self, rows: &RowSet, position: usize) {
        let (words, _) = rows.row(position);
        let hash = self.hash_of(words);
        let (lists, key) = (&self.lists, &self.key);
        let found = self.table.find(hash, |entry| {
            let (other, _) = rows.row(lists[*entry as usize][0].row as usize);
            key.iter().all(|column| other[*column] == words[*column])
        });
        let entry = match found {
            Some(entry) => *entry,
            None => self.add_entry(rows, hash),
        };
        let list = &mut self.lists[entry as usize];
        self.positions.push(ListPosition { entry, position: list.len() as u32 });
        list.push(Candidate { word: self.value.map_or(0, |column| words[column]), row: position as u32 });
    }

    fn add_entry(&mut self, rows: &RowSet, hash: u64) -> u32 {
        let (lists, key) = (&self.lists, &self.key);
        let entry = self.free.last().copied().unwrap_or(lists.len() as u32);
        self.table.insert_unique(hash, entry, |other| {
            let (words, _) = rows.row(lists[*other as usize][0].row as usize);
            hash_words(key.iter().map(|column| words[*column]))
        });
        if self.free.pop().is_none() {
            self.lists.push(Vec::new());
        }
        entry
    }

    /// Before the row is removed from `rows`; the last row is about to take its position.
    fn unlink(&mut self, rows: &RowSet, position: usize) {
        let at = self.positions[position];
        let list = &mut self.lists[at.entry as usize];
        list.swap_remove(at.position as usize);
        if let Some(moved) = list.get(at.position as usize) {
            self.positions[moved.row as usize].position = at.position;
        }
        if list.is_empty() {
            *list = Vec::new();
            self.free.push(at.entry);
            let hash = self.hash_of(rows.row(position).0);
            if let Ok(entry) = self.table.find_entry(hash, |entry| *entry == at.entry) {
                entry.remove();
            }
        } else {
            shrink(list, 4);
        }
        self.positions.swap_remove(position);
        if let Some(moved) = self.positions.get(position) {
            self.lists[moved.entry as usize][moved.position as usize].row = position as u32;
        }
    }

    /// Once most entries are unused, renumbers them without gaps. That takes time linear in the
    /// rows, and at least three quarters of all entries were freed since the last time.
    fn tidy(&mut self, rows: &RowSet) {
        if self.free.len() <= 3 * self.table.len() + 64 {
            return;
        }
        let mut next = 0u32;
        let mut numbers = vec![0u32; self.lists.len()];
        for (entry, list) in self.lists.iter().enumerate() {
            if !list.is_empty() {
                numbers[entry] = next;
                next += 1;
            }
        }
        self.table.iter_mut().for_each(|entry| *entry = numbers[*entry as usize]);
        self.positions.iter_mut().for_each(|at| at.entry = numbers[at.entry as usize]);
        self.lists.retain(|list| !list.is_empty());
        self.lists.shrink_to_fit();
        self.free = Vec::new();
        shrink(&mut self.positions, 64);
        let (lists, key) = (&self.lists, &self.key);
        self.table.shrink_to(0, |entry| {
            let (words, _) = rows.row(lists[*entry as usize][0].row as usize);
            hash_words(key.iter().map(|column| words[*column]))
        });
    }

    fn bytes(&self) -> usize {
        let candidates: usize = self.lists.iter().map(Vec::capacity).sum();
        candidates * size_of::<Candidate>()
            + self.lists.capacity() * size_of::<Vec<Candidate>>()
            + self.free.capacity() * 4
            + self.positions.capacity() * size_of::<ListPosition>()
            + self.table.capacity() * 5
    }
}

/// Releases memory when most of it is unused.
fn shrink<T>(vector: &mut Vec<T>, least: usize) {
    if vector.capacity() > 4 * vector.len().max(least) {
        vector.shrink_to(2 * vector.len());
    }
}
