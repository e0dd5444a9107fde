//! Distinct rows, found by hash and kept without gaps.
//!
//! Rows are at positions `0..len`. Removing a row moves the last row into its place, so a caller
//! that stores more about each row must do the same `swap_remove`. Reading all rows is then a plain
//! scan, and memory is proportional to the number of rows. The order depends only on the changes,
//! not on hashes.

use super::Lookup;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::Result;
use crate::mask::Bits;
use crate::store::hash::hash_words;
use crate::store::interner::Interner;
use crate::store::net::too_many_copies;
use crate::types::DataType;
use hashbrown::HashTable;

/// A set of rows of one width.
#[derive(Default)]
pub struct RowSet {
    width: usize,
    words: Vec<Word>,
    nulls: Vec<Nulls>,
    index: HashTable<u32>,
    interned: Vec<usize>,
}

fn hash(words: &[Word], nulls: Nulls) -> u64 {
    hash_words(words.iter().copied().chain([nulls]))
}

impl RowSet {
    pub fn new(types: impl IntoIterator<Item = DataType>) -> RowSet {
        let types: Vec<DataType> = types.into_iter().collect();
        let interned = (0..types.len()).filter(|column| types[*column].interned()).collect();
        RowSet { width: types.len(), interned, ..RowSet::default() }
    }

    pub fn len(&self) -> usize {
        self.nulls.len()
    }

    pub fn row(&self, position: usize) -> (&[Word], Nulls) {
        (&self.words[position * self.width..][..self.width], self.nulls[position])
    }

    pub fn find(&self, words: &[Word], nulls: Nulls) -> Option<usize> {
        // A loop, since rows are short: comparing slices would call out for each.
        let same = |position: &u32| {
            let (other, other_nulls) = self.row(*position as usize);
            other_nulls == nulls && other.iter().zip(words).all(|(left, right)| left == right)
        };
        self.index.find(hash(words, nulls), same).map(|position| *position as usize)
    }

    /// Adds a row that is not there, at the end.
    pub fn insert(&mut self, words: &[Word], nulls: Nulls, interner: &mut Interner) -> usize {
        let position = self.len();
        self.words.extend_from_slice(words);
        self.nulls.push(nulls);
        self.interned_words(position).for_each(|word| interner.retain(word));
        let id = u32::try_from(position).expect("fewer than 2^32 rows are alive");
        let (width, all_words, all_nulls) = (self.width, &self.words, &self.nulls);
        self.index.insert_unique(hash(words, nulls), id, |other| {
            let other = *other as usize;
            hash(&all_words[other * width..][..width], all_nulls[other])
        });
        position
    }

    /// Removes a row; the last one takes its position.
    pub fn remove(&mut self, position: usize, interner: &mut Interner) {
        self.interned_words(position).for_each(|word| interner.release(word));
        let last = self.len() - 1;
        let removed = self.index_hash(position);
        if let Ok(entry) = self.index.find_entry(removed, |other| *other as usize == position) {
            entry.remove();
        }
        if position != last {
            let moved = self.index_hash(last);
            if let Some(other) = self.index.find_mut(moved, |other| *other as usize == last) {
                *other = position as u32;
            }
            self.words.copy_within(last * self.width.., position * self.width);
        }
        self.nulls.swap_remove(position);
        self.words.truncate(last * self.width);
        self.shrink();
    }

    fn index_hash(&self, position: usize) -> u64 {
        let (words, nulls) = self.row(position);
        hash(words, nulls)
    }

    fn interned_words(&self, position: usize) -> impl Iterator<Item = Word> + '_ {
        let (words, nulls) = self.row(position);
        self.interned.iter().filter(move |column| !nulls.has(**column)).map(|column| words[*column])
    }

    fn shrink(&mut self) {
        if self.nulls.capacity() <= 4 * self.len().max(16) {
            return;
        }
        self.nulls.shrink_to(2 * self.nulls.len());
        self.words.shrink_to(2 * self.words.len());
        let (width, words, nulls) = (self.width, &self.words, &self.nulls);
        self.index.shrink_to(2 * nulls.len(), |other| {
            let other = *other as usize;
            hash(&words[other * width..][..width], nulls[other])
        });
    }

    pub fn bytes(&self) -> usize {
        (self.words.capacity() + self.nulls.capacity()) * 8 + self.index.capacity() * 5
    }
}

/// Releases memory of a vector beside `RowSet` when most of it is unused.
pub(super) fn shrink<T>(vector: &mut Vec<T>) {
    if vector.capacity() > 4 * vector.len().max(16) {
        vector.shrink_to(2 * vector.len());
    }
}

/// A multiset of rows: each with the weight that its changes sum up to. A row of weight 0 is gone.
#[derive(Default)]
pub struct WeightedRows {
    rows: RowSet,
    weights: Vec<i64>,
}

impl WeightedRows {
    pub fn new(types: impl IntoIterator<Item = DataType>) -> WeightedRows {
        WeightedRows { rows: RowSet::new(types), weights: Vec::new() }
    }

    /// Adds the rows of a chunk and calls `each` with every row, and its weight before and after.
    /// On an error nothing has changed.
    pub fn add_all(
        &mut self,
        rows: &Chunk,
        interner: &mut Interner,
        mut each: impl FnMut(&[Word], Nulls, i64, i64),
    ) -> Result<()> {
        let mut words = Vec::new();
        for index in 0..rows.len() {
            let nulls = rows.read(index, &mut words);
            let Some((before, after)) = self.add(&words, nulls, rows.weights[index], interner) else {
                for index in 0..index {
                    let nulls = rows.read(index, &mut words);
                    self.add(&words, nulls, -rows.weights[index], interner);
                }
                return Err(too_many_copies());
            };
            each(&words, nulls, before, after);
        }
        Ok(())
    }

    /// Adds to the weight of a row; returns the weight before and after, or `None`, having done
    /// nothing, if that does not fit.
    pub fn add(&mut self, words: &[Word], nulls: Nulls, weight: i64, interner: &mut Interner) -> Option<(i64, i64)> {
        let Some(position) = self.rows.find(words, nulls) else {
            if weight != 0 {
                self.rows.insert(words, nulls, interner);
                self.weights.push(weight);
            }
            return Some((0, weight));
        };
        let before = self.weights[position];
        let after = before.checked_add(weight)?;
        if after == 0 {
            self.rows.remove(position, interner);
            self.weights.swap_remove(position);
            shrink(&mut self.weights);
        } else {
            self.weights[position] = after;
        }
        Some((before, after))
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Appends up to `limit` rows from position `start` on, weighted by `show`; returns the next
    /// position.
    pub fn read(&self, start: usize, limit: usize, show: impl Fn(i64) -> i64, out: &mut Chunk) -> usize {
        let end = self.len().min(start.saturating_add(limit));
        for position in start..end {
            let (words, nulls) = self.rows.row(position);
            out.push(words, nulls, show(self.weights[position]));
        }
        end
    }

    pub fn bytes(&self) -> usize {
        self.rows.bytes() + self.weights.capacity() * 8
    }
}

impl Lookup for WeightedRows {
    fn weight(&self, words: &[Word], nulls: Nulls) -> i64 {
        self.rows.find(words, nulls).map_or(0, |position| self.weights[position])
    }
}
