//! All rows of a view in the order of its ORDER BY, found by their position: for pages.
//!
//! Rows are stored in order in blocks of a few hundred, with a Fenwick tree over the sizes of the
//! blocks. So inserting, deleting and finding a row by key or position takes O(log n) plus the work
//! in one block.

use super::sort_key::{append_columns, Order};
use super::Columns;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::Result;
use crate::mask::Bits;
use crate::plan;
use crate::store::fenwick::Fenwick;
use crate::store::interner::Interner;
use crate::types::DataType;
use std::mem::size_of;

/// The most rows of a block.
const BLOCK: usize = 256;

/// How many more rows than there are may change without a read before the order is dropped.
const UNREAD: usize = 1024;

pub struct Sorted {
    columns: Columns,
    order: Vec<Order>,
    interned: Vec<usize>,
    blocks: Vec<Vec<Row>>,
    /// The copies in each block; `None` after a block has come or gone.
    copies: Option<Fenwick>,
    len: usize,
    key_bytes: usize,
    /// Changes since it was last read.
    unread: usize,
}

struct Row {
    key: Box<[u8]>,
    words: Box<[Word]>,
    nulls: Nulls,
    weight: i64,
}

impl Sorted {
    /// Sorts rows, which may have several with the same values.
    pub fn new(
        order: &[plan::OrderBy],
        columns: &[(String, DataType)],
        rows: &Chunk,
        interner: &mut Interner,
    ) -> Result<Sorted> {
        let mut sorted = Sorted {
            columns: columns.to_vec(),
            order: Order::all(order, columns)?,
            interned: (0..columns.len()).filter(|column| columns[*column].1.interned()).collect(),
            blocks: Vec::new(),
            copies: None,
            len: 0,
            key_bytes: 0,
            unread: 0,
        };
        let mut all = sorted.rows(rows, interner)?;
        all.sort_unstable_by(|left, right| left.key.cmp(&right.key));
        all.dedup_by(|next, kept| {
            let same = next.key == kept.key;
            kept.weight += if same { next.weight } else { 0 };
            same
        });
        sorted.len = all.len();
        let mut all = all.into_iter().peekable();
        while all.peek().is_some() {
            let block: Vec<Row> = all.by_ref().take(BLOCK / 2).collect();
            block.iter().for_each(|row| sorted.keep(row, interner));
            sorted.blocks.push(block);
        }
        Ok(sorted)
    }

    /// The rows of a chunk with their keys; all of them before anything changes, for an expression
    /// may fail.
    fn rows(&self, rows: &Chunk, interner: &mut Interner) -> Result<Vec<Row>> {
        let mut words = Vec::new();
        let row = |index: usize| {
            let nulls = rows.read(index, &mut words);
            let mut key = Vec::new();
            for order in &self.order {
                order.append(&mut key, &words, nulls, interner)?;
            }
            append_columns(&mut key, 0..self.columns.len(), &self.columns, &words, nulls, interner);
            Ok(Row { key: key.into(), words: (&*words).into(), nulls, weight: rows.weights[index] })
        };
        (0..rows.len()).map(row).collect()
    }

    fn keep(&mut self, row: &Row, interner: &mut Interner) {
        self.key_bytes += row.key.len();
        let present = self.interned.iter().filter(|column| !row.nulls.has(**column));
        present.for_each(|column| interner.retain(row.words[*column]));
    }

    fn forget(&mut self, row: &Row, interner: &mut Interner) {
        self.key_bytes -= row.key.len();
        let present = self.interned.iter().filter(|column| !row.nulls.has(**column));
        present.for_each(|column| interner.release(row.words[*column]));
    }

    /// Applies a change; returns false if dropping the order is better.
    pub fn apply(&mut self, changes: &Chunk, interner: &mut Interner) -> bool {
        self.unread += changes.len();
        if self.unread > self.len + UNREAD {
            return false;
        }
        let Ok(rows) = self.rows(changes, interner) else { return false };
        rows.into_iter().all(|row| self.add(row, interner))
    }

    fn add(&mut self, row: Row, interner: &mut Interner) -> bool {
        let number = self.blocks.partition_point(|block| block[0].key <= row.key).saturating_sub(1);
        if self.blocks.is_empty() {
            self.blocks.push(Vec::new());
            self.copies = None;
        }
        let place = self.blocks[number].binary_search_by(|other| other.key.cmp(&row.key));
        if let Some(copies) = &mut self.copies {
            copies.add(number, i128::from(row.weight) as u128);
        }
        match place {
            Ok(position) => {
                let known = &mut self.blocks[number][position];
                known.weight += row.weight;
                if known.weight == 0 {
                    let gone = self.blocks[number].remove(position);
                    self.forget(&gone, interner);
                    self.len -= 1;
                }
            }
            Err(position) => {
                if row.weight < 0 {
                    return false;
                }
                self.keep(&row, interner);
                self.blocks[number].insert(position, row);
                self.len += 1;
            }
        }
        if self.blocks[number].is_empty() {
            self.blocks.remove(number);
            self.copies = None;
        } else if self.blocks[number].len() > BLOCK {
            let rest = self.blocks[number].split_off(BLOCK / 2);
            self.blocks.insert(number + 1, rest);
            self.copies = None;
        }
        true
    }

    /// Appends `limit` rows from position `offset` on, each copy by itself.
    pub fn read(&mut self, offset: u64, limit: u64, out: &mut Chunk) {
        self.unread = 0;
        let of_block = |block: &Vec<Row>| block.iter().map(|row| row.weight.unsigned_abs() as u128).sum::<u128>();
        let blocks = &self.blocks;
        let copies = self.copies.get_or_insert_with(|| Fenwick::new(blocks.iter().map(of_block).collect()));
        let (first, before) = copies.find(u128::from(offset));
        let (mut skip, mut left) = (i128::from(offset) - before as i128, i128::from(limit));
        for row in self.blocks.iter().skip(first).flatten() {
            if left == 0 {
                break;
            }
            let weight = i128::from(row.weight);
            let taken = (weight - skip).clamp(0, left);
            skip = (skip - weight).max(0);
            left -= taken;
            (0..taken).for_each(|_| out.push(&row.words, row.nulls, 1));
        }
    }

    /// Releases the values of all rows; it must not be used after it.
    pub fn release(&mut self, interner: &mut Interner) {
        for row in std::mem::take(&mut self.blocks).iter().flatten() {
            self.forget(row, interner);
        }
    }

    pub fn bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(Vec::capacity).sum();
        blocks * size_of::<Row>() + self.len * self.columns.len() * size_of::<Word>() + self.key_bytes
    }
}
