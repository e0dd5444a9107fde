//! The net effect of a sequence of signed rows.

use crate::chunk::{Chunk, Nulls, Word};
use crate::row_table::RowTable;

const UNKNOWN: Word = Word::MAX;

/// Rows with the sum of their weights, in order of first appearance.
pub struct Net {
    width: usize,
    /// The words, the NULL mask, the sum, and how many copies there are already (or `UNKNOWN`).
    rows: RowTable,
    scratch: Vec<Word>,
    order: Vec<u32>,
}

impl Net {
    pub fn new(width: usize) -> Net {
        let key: Vec<usize> = (0..=width).collect();
        Net { width, rows: RowTable::new(width + 3, key), scratch: Vec::new(), order: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    fn slot(&mut self, words: &[Word], nulls: Nulls) -> u32 {
        self.scratch.clear();
        self.scratch.extend_from_slice(words);
        self.scratch.extend([nulls, 0, UNKNOWN]);
        self.rows.find(&self.scratch).unwrap_or_else(|| {
            let slot = self.rows.insert(&self.scratch);
            self.order.push(slot);
            slot
        })
    }

    pub fn add(&mut self, words: &[Word], nulls: Nulls, weight: i64) {
        let slot = self.slot(words, nulls);
        let sum = &mut self.rows.row_mut(slot)[self.width + 1];
        *sum = sum.wrapping_add_signed(weight);
    }

    /// How many copies there are after what was added so far; `existing` tells how many there were before.
    pub fn copies(&mut self, words: &[Word], nulls: Nulls, existing: impl FnOnce() -> u64) -> i64 {
        let slot = self.slot(words, nulls);
        let row = self.rows.row_mut(slot);
        if row[self.width + 2] == UNKNOWN {
            row[self.width + 2] = existing();
        }
        row[self.width + 2] as i64 + row[self.width + 1] as i64
    }

    /// The rows whose sum is not 0: words, NULL mask, sum.
    pub fn rows(&self) -> impl Iterator<Item = (&[Word], Nulls, i64)> {
        self.order.iter().map(|slot| self.rows.row(*slot)).filter_map(|row| {
            let sum = row[self.width + 1] as i64;
            (sum != 0).then_some((&row[..self.width], row[self.width], sum))
        })
    }

    pub fn negate(&mut self) {
        for slot in &self.order {
            let sum = &mut self.rows.row_mut(*slot)[self.width + 1];
            *sum = sum.wrapping_neg();
        }
    }

    pub fn clear(&mut self) {
        if self.order.len() > 65536 {
            *self = Net::new(self.width);
        } else {
            self.rows.clear();
            self.order.clear();
        }
    }
}

/// The net of some chunks, as one: each row once, none with weight 0.
pub fn net_chunks(chunks: &[Chunk], width: usize) -> Chunk {
    let mut net = Net::new(width);
    let mut words = Vec::new();
    for chunk in chunks {
        for index in 0..chunk.len() {
            let nulls = chunk.read(index, &mut words);
            net.add(&words, nulls, chunk.weights[index]);
        }
    }
    let mut result = Chunk::new(width);
    for (words, nulls, weight) in net.rows() {
        result.push(words, nulls, weight);
    }
    result
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
        let result = net_chunks(&[chunk], 2);
        assert_eq!((result.weights, result.nulls), (vec![1], vec![0b10]));
    }

    #[test]
    fn copies_count_from_what_was_there() {
        let mut net = Net::new(1);
        assert_eq!(net.copies(&[7], 0, || 2), 2);
        net.add(&[7], 0, -2);
        assert_eq!(net.copies(&[7], 0, || unreachable!()), 0);
    }
}
