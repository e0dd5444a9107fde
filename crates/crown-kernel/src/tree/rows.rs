//! The rows of one node, in slabs addressed by the ids that `ids` gives.
//!
//! A row has its words (with its NULL mask as one more word where a variable may be NULL) and, next to them, its links of 32 bits: for
//! each edge the entry of its key and its place in that entry's list, and how many children it still misses. So after the look-ups at
//! its insertion a row is reached, and left, by index alone, mostly with one cache miss.

use super::ids::NONE;
use crate::chunk::Word;
use crate::store::slab::{at, at_mut, half, half_mut, prefetch, reserve_slowly, with_capacity};

pub(super) struct Rows {
    width: usize,
    /// Words and links of a row, in 64-bit units.
    stride: usize,
    /// The link that counts missing children; none in leaves, which miss nothing.
    missing: Option<usize>,
    slab: Vec<u64>,
    /// How often each row is there; empty while every row is there once.
    multiplicities: Vec<u64>,
    /// Per row the values of the ring factors of this node's atom.
    factors: Vec<i128>,
    factor_count: usize,
    /// Rows that are there, and those of them in the semi-join view.
    pub len: usize,
    pub in_semi_join: usize,
}

impl Rows {
    pub fn new(width: usize, links: usize, missing: Option<usize>, factor_count: usize) -> Rows {
        Rows {
            width,
            stride: width + links.div_ceil(2),
            missing,
            slab: Vec::new(),
            multiplicities: Vec::new(),
            factors: Vec::new(),
            factor_count,
            len: 0,
            in_semi_join: 0,
        }
    }

    #[inline(always)]
    pub fn words(&self, row: u32) -> &[Word] {
        let start = row as usize * self.stride;
        debug_assert!(start + self.width <= self.slab.len());
        // SAFETY: as in `slab`: row ids are handed out here.
        unsafe { std::slice::from_raw_parts(self.slab.as_ptr().add(start), self.width) }
    }

    #[inline(always)]
    pub fn word(&self, row: u32, column: usize) -> Word {
        *at(&self.slab, row as usize * self.stride + column)
    }

    #[inline(always)]
    pub fn prefetch(&self, row: u32) {
        let start = row as usize * self.stride;
        // A row may lie across two cache lines.
        prefetch(&self.slab, start);
        prefetch(&self.slab, start + self.stride - 1);
    }

    #[inline(always)]
    pub fn link(&self, row: u32, offset: usize) -> u32 {
        half(&self.slab, 2 * (row as usize * self.stride + self.width) + offset)
    }

    #[inline(always)]
    pub fn set_link(&mut self, row: u32, offset: usize, value: u32) {
        *half_mut(&mut self.slab, 2 * (row as usize * self.stride + self.width) + offset) = value;
    }

    /// How many children's keys the row misses; 0 means that it is in the semi-join view.
    #[inline(always)]
    pub fn missing(&self, row: u32) -> u32 {
        self.missing.map_or(0, |offset| self.link(row, offset))
    }

    #[inline(always)]
    pub fn set_missing(&mut self, row: u32, missing: u32) {
        if let Some(offset) = self.missing {
            self.set_link(row, offset, missing);
        }
    }

    /// Makes room for `additional` more rows at once.
    pub fn reserve(&mut self, additional: usize) {
        reserve_slowly(&mut self.slab, additional * self.stride);
    }

    /// Writes the words of a row that comes, with multiplicity 1 and links unset.
    #[inline(always)]
    pub fn write(&mut self, row: u32, words: &[Word]) {
        let start = row as usize * self.stride;
        if start >= self.slab.len() {
            self.extend_to(start + self.stride);
        }
        self.copy(start, words);
    }

    /// Makes the slab `end` units long at least: as long as the memory that it needs anyway.
    #[cold]
    fn extend_to(&mut self, end: usize) {
        let start = self.slab.len();
        reserve_slowly(&mut self.slab, end - start);
        let slots = self.slab.capacity() / self.stride;
        self.slab.resize(slots * self.stride, 0);
        if !self.multiplicities.is_empty() {
            self.multiplicities.resize(slots, 1);
        }
        self.factors.resize(slots * self.factor_count, 0);
    }

    /// Copies a few words to a place of the slab, without a call.
    #[inline(always)]
    fn copy(&mut self, start: usize, words: &[Word]) {
        debug_assert_eq!(words.len(), self.width);
        for offset in 0..self.width {
            *at_mut(&mut self.slab, start + offset) = *at(words, offset);
        }
    }

    /// A row goes: what comes to its place is there once.
    #[inline(always)]
    pub fn remove(&mut self, row: u32) {
        self.len -= 1;
        if let Some(multiplicity) = self.multiplicities.get_mut(row as usize) {
            *multiplicity = 1;
        }
    }

    #[inline(always)]
    pub fn multiplicity(&self, row: u32) -> u64 {
        self.multiplicities.get(row as usize).copied().unwrap_or(1)
    }

    pub fn set_multiplicity(&mut self, row: u32, multiplicity: u64) {
        if self.multiplicities.is_empty() {
            if multiplicity == 1 {
                return;
            }
            self.multiplicities.resize(self.slab.len() / self.stride, 1);
        }
        self.multiplicities[row as usize] = multiplicity;
    }

    /// Whether no row has ever been there twice (since the slab was last empty).
    pub fn is_plain(&self) -> bool {
        self.multiplicities.is_empty()
    }

    pub fn factors(&self, row: u32) -> &[i128] {
        let start = row as usize * self.factor_count;
        &self.factors[start..start + self.factor_count]
    }

    pub fn set_factors(&mut self, row: u32, values: &[i128]) {
        let start = row as usize * self.factor_count;
        self.factors[start..start + self.factor_count].copy_from_slice(values);
    }

    /// Moves the rows to new ids, of which there are `slots`.
    pub fn rename(&mut self, ids: &[u32], slots: usize) {
        let (stride, width) = (self.stride, self.factor_count);
        let slab = std::mem::replace(&mut self.slab, with_capacity(slots * stride));
        self.slab.resize(slots * stride, 0);
        let multiplicities = std::mem::take(&mut self.multiplicities);
        let factors = std::mem::replace(&mut self.factors, vec![0; slots * width]);
        for (row, (record, id)) in slab.chunks_exact(stride).zip(ids).enumerate().filter(|(_, (_, id))| **id != NONE) {
            let target = *id as usize;
            self.slab[target * stride..(target + 1) * stride].copy_from_slice(record);
            if let Some(multiplicity) = multiplicities.get(row) {
                self.set_multiplicity(*id, *multiplicity);
            }
            self.factors[target * width..(target + 1) * width]
                .copy_from_slice(&factors[row * width..(row + 1) * width]);
        }
    }

    pub fn bytes(&self) -> usize {
        (self.slab.capacity() + self.multiplicities.capacity()) * 8 + self.factors.capacity() * 16
    }
}

/// Equality of short slices, without a call.
#[inline(always)]
pub(super) fn same(left: &[Word], right: &[Word]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left == right)
}
