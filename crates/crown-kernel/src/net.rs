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

/// Nets the rows of a chunk; without a hash table when they are few.
pub fn net_in_place(rows: &mut Chunk) {
    const FEW: usize = 12;
    if rows.len() > FEW {
        let width = rows.columns.len();
        *rows = net_chunks(&[std::mem::take(rows)], width);
        return;
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
        let result = net_chunks(&[chunk], 2);
        assert_eq!((result.weights, result.nulls), (vec![1], vec![0b10]));
    }

    #[test]
    fn few_rows_net_as_many_do() {
        for (length, modulus) in [(10u64, 3), (40, 7)] {
            let mut chunk = Chunk::new(1);
            for value in 0..length {
                chunk.push(&[value % modulus], value % 2, if value % 5 == 0 { -1 } else { 1 });
            }
            let expected = net_chunks(&[chunk.clone()], 1);
            net_in_place(&mut chunk);
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
}
