//! The rows of one node, in slabs addressed by `u32` ids.
//!
//! A row has its words (with its NULL mask as one more word where a variable may be NULL) and, next to them, its links of 32 bits: for
//! each edge the entry of its key and its place in that entry's list, and how many children it still misses. So after the look-ups at
//! its insertion a row is reached, and left, by index alone, mostly with one cache miss.

use super::hash::hash_words;
use super::index::Index;
use super::slab::{at, at_mut, half, half_mut, prefetch, reserve_slowly, with_capacity};
use crate::chunk::Word;

const NONE: u32 = u32::MAX;

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
    index: Index,
    /// Free rows, linked through their last unit.
    free: u32,
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
            index: Index::new(),
            free: NONE,
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

    #[inline(always)]
    pub fn prefetch_slot(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// A row that most likely has the hash, without looking at it; `NONE` if there is none.
    #[inline(always)]
    pub fn guess(&self, hash: u64) -> u32 {
        self.index.find(hash, |_| true).unwrap_or(NONE)
    }

    /// Finds a row by its words, whose hash is given.
    #[inline(always)]
    pub fn find(&self, hash: u64, words: &[Word]) -> Option<u32> {
        debug_assert_eq!(words.len(), self.width);
        self.index.find(hash, |row| same(self.words(row), words))
    }

    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.index.iter()
    }

    /// Makes room for `additional` more rows at once.
    pub fn reserve(&mut self, additional: usize) {
        reserve_slowly(&mut self.slab, additional * self.stride);
        self.index.reserve(additional);
    }

    /// Adds a row that is not there yet, with multiplicity 1 and links unset.
    #[inline]
    pub fn insert(&mut self, hash: u64, words: &[Word]) -> u32 {
        let row = if self.free == NONE {
            let row = u32::try_from(self.slab.len() / self.stride).expect("fewer than 2^32 rows");
            reserve_slowly(&mut self.slab, self.stride);
            self.slab.resize((row as usize + 1) * self.stride, 0);
            self.copy(row as usize * self.stride, words);
            if !self.multiplicities.is_empty() {
                self.multiplicities.push(1);
            }
            if self.factor_count > 0 {
                self.factors.resize(self.factors.len() + self.factor_count, 0);
            }
            row
        } else {
            let row = self.free;
            let start = row as usize * self.stride;
            self.free = *at(&self.slab, start + self.stride - 1) as u32;
            self.copy(start, words);
            row
        };
        self.index.insert(hash, row);
        row
    }

    /// Copies a few words to a place of the slab, without a call.
    #[inline(always)]
    fn copy(&mut self, start: usize, words: &[Word]) {
        debug_assert_eq!(words.len(), self.width);
        for offset in 0..self.width {
            *at_mut(&mut self.slab, start + offset) = *at(words, offset);
        }
    }

    pub fn remove(&mut self, row: u32) {
        self.index.remove(hash_words(self.words(row)), row);
        if let Some(multiplicity) = self.multiplicities.get_mut(row as usize) {
            *multiplicity = 1;
        }
        *at_mut(&mut self.slab, (row as usize + 1) * self.stride - 1) = u64::from(self.free);
        self.free = row;
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

    /// Whether the slab is worth rebuilding: large and mostly free.
    pub fn is_sparse(&self) -> bool {
        let slots = self.slab.len() / self.stride;
        slots > 256 && self.len() * 4 < slots
    }

    /// Moves all rows to the front of a new slab; gives the new id of each old one.
    pub fn compact(&mut self) -> Vec<u32> {
        let mut fresh = Rows::new(self.width, 2 * (self.stride - self.width), self.missing, self.factor_count);
        let mut ids = vec![NONE; self.slab.len() / self.stride];
        fresh.in_semi_join = self.in_semi_join;
        fresh.slab = with_capacity(self.len() * self.stride);
        let mut rows: Vec<u32> = self.iter().collect();
        rows.sort_unstable();
        for row in rows {
            let target = fresh.insert(hash_words(self.words(row)), self.words(row));
            let (from, to) = (row as usize * self.stride, target as usize * self.stride);
            fresh.slab[to..to + self.stride].copy_from_slice(&self.slab[from..from + self.stride]);
            fresh.set_multiplicity(target, self.multiplicity(row));
            if self.factor_count > 0 {
                fresh.set_factors(target, self.factors(row));
            }
            ids[row as usize] = target;
        }
        *self = fresh;
        ids
    }

    pub fn bytes(&self) -> usize {
        (self.slab.capacity() + self.multiplicities.capacity()) * 8 + self.factors.capacity() * 16 + self.index.bytes()
    }
}

/// Equality of short slices, without a call.
#[inline(always)]
pub(super) fn same(left: &[Word], right: &[Word]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left == right)
}
