//! The net effect of a sequence of signed rows.
//!
//! Sums are exact: a weight may exceed 64 bits temporarily, and is rejected only if it is out of
//! range at the end.

use super::hash::hash_words;
use super::index::Index;
use super::slab::prefetch;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Result};
use hashbrown::HashMap;

const UNKNOWN: Word = Word::MAX;

/// More copies of a row than an int64 counts.
pub fn too_many_copies() -> KernelError {
    KernelError::invalid("CROWN-OVERFLOW", "the multiplicity of a row does not fit into an int64")
}

/// Rows with the sum of their weights, in order of first appearance.
pub struct Net {
    width: usize,
    /// Per row the words, the NULL mask, the sum, and how many copies there are already (or
    /// `UNKNOWN`).
    rows: Vec<Word>,
    index: Index,
    /// How often the sum of a row has passed 2^63 upwards, less how often downwards: nearly always
    /// empty.
    carries: HashMap<usize, i64>,
}

impl Net {
    /// An empty net of rows of `width` words.
    pub fn new(width: usize) -> Net {
        Net { width, rows: Vec::new(), index: Index::new(), carries: HashMap::new() }
    }

    /// An empty net of rows of the same width.
    pub fn like(&self) -> Net {
        Net::new(self.width)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The number of rows, those with sum 0 included.
    pub fn len(&self) -> usize {
        self.rows.len() / self.stride()
    }

    fn stride(&self) -> usize {
        self.width + 3
    }

    /// Reserves space for `additional` more rows.
    pub fn reserve(&mut self, additional: usize) {
        self.rows.reserve(additional * self.stride());
        self.index.reserve(additional);
    }

    /// The hash of a row, for what takes it.
    pub fn hash(words: &[Word], nulls: Nulls) -> u64 {
        hash_words(words.iter().copied().chain([nulls]))
    }

    /// Asks the memory for the slot of a row that will be looked up soon.
    pub fn prefetch_slot(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// Prefetches the row itself, once its slot has been loaded.
    pub fn prefetch_row(&self, hash: u64) {
        if let Some(row) = self.index.find(hash, |_| true) {
            prefetch(&self.rows, row as usize * self.stride());
        }
    }

    /// The position of a row.
    pub fn find(&self, hash: u64, words: &[Word], nulls: Nulls) -> Option<usize> {
        let same = |row: u32| {
            let row = &self.rows[row as usize * self.stride()..][..=self.width];
            row[self.width] == nulls && row.iter().zip(words).all(|(left, right)| left == right)
        };
        self.index.find(hash, same).map(|row| row as usize)
    }

    /// Adds a row that is not there, with weight 0.
    pub fn insert(&mut self, hash: u64, words: &[Word], nulls: Nulls) -> usize {
        let row = self.len();
        self.index.insert(hash, u32::try_from(row).expect("fewer than 2^32 rows in a batch"));
        self.push(words, nulls, 0, None);
        row
    }

    /// Appends a row that is not there, with the number of copies that there are already if it is
    /// known. It is not found again: for a net that is filled in this way alone.
    pub fn push(&mut self, words: &[Word], nulls: Nulls, weight: i64, before: Option<u64>) {
        self.rows.extend_from_slice(words);
        self.rows.extend([nulls, weight as Word, before.unwrap_or(UNKNOWN)]);
    }

    /// Reserves space for `additional` more rows that are pushed.
    pub fn reserve_pushed(&mut self, additional: usize) {
        self.rows.reserve(additional * self.stride());
    }

    /// Adds to the sum of the row at a position.
    pub fn add_at(&mut self, row: usize, weight: i64) {
        let place = row * self.stride() + self.width + 1;
        let (sum, passed) = (self.rows[place] as i64).overflowing_add(weight);
        self.rows[place] = sum as Word;
        if passed {
            self.carry(row, weight.signum());
        }
    }

    #[cold]
    fn carry(&mut self, row: usize, sign: i64) {
        let carries = self.carries.entry(row).or_insert(0);
        *carries += sign;
        if *carries == 0 {
            self.carries.remove(&row);
        }
    }

    /// The sum of the row at a position.
    fn sum_at(&self, row: usize) -> i128 {
        let sum = i128::from(self.rows[row * self.stride() + self.width + 1] as i64);
        match self.carries.get(&row) {
            None => sum,
            Some(carries) => sum + (i128::from(*carries) << 64),
        }
    }

    /// Refuses sums that do not fit the weight of a row. To be called before `rows` is used.
    pub fn check(&self) -> Result<()> {
        if self.carries.is_empty() {
            Ok(())
        } else {
            Err(too_many_copies())
        }
    }

    /// Adds to the sum of a row.
    pub fn add(&mut self, words: &[Word], nulls: Nulls, weight: i64) {
        let row = self.find_or_insert(words, nulls);
        self.add_at(row, weight);
    }

    fn find_or_insert(&mut self, words: &[Word], nulls: Nulls) -> usize {
        let hash = Net::hash(words, nulls);
        self.find(hash, words, nulls).unwrap_or_else(|| self.insert(hash, words, nulls))
    }

    /// How many copies there are after what was added so far; `existing` tells how many there were
    /// before.
    pub fn copies(&mut self, words: &[Word], nulls: Nulls, existing: impl FnOnce() -> u64) -> i128 {
        let row = self.find_or_insert(words, nulls);
        self.copies_at(row, existing)
    }

    /// As `copies`, of the row at a position.
    pub fn copies_at(&mut self, row: usize, existing: impl FnOnce() -> u64) -> i128 {
        let place = row * self.stride() + self.width + 2;
        if self.rows[place] == UNKNOWN {
            self.rows[place] = existing();
        }
        i128::from(self.rows[place]) + self.sum_at(row)
    }

    /// All rows by position: words, NULL mask, sum, and how many copies there are already if that
    /// is known.
    pub fn all_rows(&self) -> impl Iterator<Item = (&[Word], Nulls, i64, Option<u64>)> {
        self.rows.chunks_exact(self.stride()).map(|row| {
            let (words, rest) = row.split_at(self.width);
            (words, rest[0], rest[1] as i64, (rest[2] != UNKNOWN).then_some(rest[2]))
        })
    }

    /// The rows whose sum is not 0.
    pub fn rows(&self) -> impl Iterator<Item = (&[Word], Nulls, i64)> {
        self.all_rows().filter(|(_, _, sum, _)| *sum != 0).map(|(words, nulls, sum, _)| (words, nulls, sum))
    }

    /// Turns insertions into deletions and back.
    pub fn negate(&mut self) {
        let (stride, place) = (self.stride(), self.width + 1);
        debug_assert!(self.carries.is_empty(), "only checked nets are used");
        for row in self.rows.chunks_exact_mut(stride) {
            row[place] = row[place].wrapping_neg();
        }
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        if self.len() > 65536 {
            *self = Net::new(self.width);
        } else if !self.is_empty() {
            self.rows.clear();
            self.index.clear();
            self.carries.clear();
        }
    }
}

/// The net of some chunks, as one: each row once, none with weight 0.
pub fn net_chunks(chunks: &[Chunk], width: usize) -> Result<Chunk> {
    let mut net = Net::new(width);
    let mut words = Vec::new();
    for chunk in chunks {
        for index in 0..chunk.len() {
            let nulls = chunk.read(index, &mut words);
            net.add(&words, nulls, chunk.weights[index]);
        }
    }
    net.check()?;
    let mut result = Chunk::new(width);
    for (words, nulls, weight) in net.rows() {
        result.push(words, nulls, weight);
    }
    Ok(result)
}

/// Nets the rows of a chunk; without a hash table when they are few.
pub fn net_in_place(rows: &mut Chunk) -> Result<()> {
    const FEW: usize = 12;
    // (Sums of a few small weights can't overflow.)
    if rows.len() > FEW || rows.weights.iter().any(|weight| weight.unsigned_abs() > 1 << 32) {
        let width = rows.columns.len();
        *rows = net_chunks(&[std::mem::take(rows)], width)?;
        return Ok(());
    }
    let mut length = 0;
    for index in 0..rows.len() {
        let nulls = rows.nulls_at(index);
        let same = |other: &usize| {
            rows.nulls_at(*other) == nulls && rows.columns.iter().all(|column| column[*other] == column[index])
        };
        if let Some(other) = (0..length).find(same) {
            rows.weights[other] += rows.weights[index];
        } else {
            move_row(rows, index, length);
            length += 1;
        }
    }
    let mut kept = 0;
    for index in 0..length {
        if rows.weights[index] != 0 {
            move_row(rows, index, kept);
            kept += 1;
        }
    }
    rows.columns.iter_mut().for_each(|column| column.truncate(kept));
    rows.nulls.truncate(kept);
    rows.weights.truncate(kept);
    Ok(())
}

fn move_row(rows: &mut Chunk, from: usize, to: usize) {
    rows.columns.iter_mut().for_each(|column| column[to] = column[from]);
    if !rows.nulls.is_empty() {
        rows.nulls[to] = rows.nulls[from];
    }
    rows.weights[to] = rows.weights[from];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opposite_changes_cancel_and_null_is_not_zero() {
        let mut chunk = Chunk::new(2);
        chunk.push(&[1, 0], 0b00, 2);
        chunk.push(&[1, 0], 0b10, 1);
        chunk.push(&[1, 0], 0b00, -2);
        let result = net_chunks(&[chunk], 2).unwrap();
        assert_eq!((result.weights, result.nulls), (vec![1], vec![0b10]));
    }

    #[test]
    fn few_rows_net_as_many_do() {
        for (length, modulus) in [(10u64, 3), (40, 7)] {
            let mut chunk = Chunk::new(1);
            for value in 0..length {
                chunk.push(&[value % modulus], value % 2, if value % 5 == 0 { -1 } else { 1 });
            }
            let expected = net_chunks(&[chunk.clone()], 1).unwrap();
            net_in_place(&mut chunk).unwrap();
            assert_eq!(
                (chunk.columns, chunk.nulls, chunk.weights),
                (expected.columns, expected.nulls, expected.weights)
            );
        }
    }

    #[test]
    fn copies_count_from_what_was_there() {
        let mut net = Net::new(1);
        assert_eq!(net.copies(&[7], 0, || 2), 2);
        net.add(&[7], 0, -2);
        assert_eq!(net.copies(&[7], 0, || unreachable!()), 0);
    }

    #[test]
    fn sums_are_exact_beyond_64_bits_and_refused_if_they_stay_there() {
        let mut net = Net::new(1);
        for weight in [i64::MAX, i64::MAX, 1, i64::MAX] {
            net.add(&[7], 0, weight);
        }
        assert_eq!(net.copies(&[7], 0, || 5), 3 * i128::from(i64::MAX) + 6);
        assert_eq!(net.check().unwrap_err().code, "CROWN-OVERFLOW");
        for weight in [-i64::MAX, -i64::MAX, -1] {
            net.add(&[7], 0, weight);
        }
        net.check().unwrap();
        assert_eq!(net.rows().map(|(_, _, weight)| weight).collect::<Vec<_>>(), [i64::MAX]);
        let mut chunk = Chunk::new(1);
        [i64::MAX, 1].iter().for_each(|weight| chunk.push(&[3], 0, *weight));
        assert!(net_chunks(&[chunk.clone()], 1).is_err() && net_in_place(&mut chunk).is_err());
    }
}
