//! The rows of one node, in slabs addressed by the ids that `ids` hands out.
//!
//! A row has its words (with its NULL mask as one more word where a variable may be NULL) and, next
//! to them, its links of 32 bits: for each edge the entry of its key and its place in that entry's
//! list, and how many children it still misses. So after the look-ups at its insertion a row is
//! reached, and left, by index alone, mostly with one cache miss.

use super::id::{EntryId, RowHint, RowId};
use crate::chunk::Word;
use crate::store::slab::{at, at_mut, half, half_mut, prefetch, reserve_slowly, with_capacity};

pub(super) struct NodeRows {
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
    /// Rows that are phantoms (see `optional`), among both.
    pub phantoms: usize,
}

impl NodeRows {
    pub fn new(width: usize, links: usize, missing: Option<usize>, factor_count: usize) -> NodeRows {
        NodeRows {
            width,
            stride: width + links.div_ceil(2),
            missing,
            slab: Vec::new(),
            multiplicities: Vec::new(),
            factors: Vec::new(),
            factor_count,
            len: 0,
            in_semi_join: 0,
            phantoms: 0,
        }
    }

    /// The words of a row, with its NULL mask as the last one where a variable may be NULL.
    #[inline(always)]
    pub fn words(&self, row: RowId) -> &[Word] {
        let start = row.index() * self.stride;
        debug_assert!(start + self.width <= self.slab.len());
        // SAFETY: the row has its slot of `stride` words in the slab (the law in `id`).
        unsafe { std::slice::from_raw_parts(self.slab.as_ptr().add(start), self.width) }
    }

    #[inline(always)]
    pub fn word(&self, row: RowId, column: usize) -> Word {
        debug_assert!(column < self.width);
        // SAFETY: as in `words`; columns come from the node's shape.
        unsafe { *at(&self.slab, row.index() * self.stride + column) }
    }

    /// Prefetches a row.
    #[inline(always)]
    pub fn prefetch(&self, row: impl Into<RowHint>) {
        let start = row.into().index() * self.stride;
        // A row may lie across two cache lines.
        prefetch(&self.slab, start);
        prefetch(&self.slab, start + self.stride - 1);
    }

    #[inline(always)]
    fn link(&self, row: RowId, offset: usize) -> u32 {
        debug_assert!(offset / 2 < self.stride - self.width);
        // SAFETY: as in `words`; the links follow the words, and their offsets come from the node's
        // shape.
        unsafe { half(&self.slab, 2 * (row.index() * self.stride + self.width) + offset) }
    }

    #[inline(always)]
    fn set_link(&mut self, row: RowId, offset: usize, value: u32) {
        debug_assert!(offset / 2 < self.stride - self.width);
        // SAFETY: as in `link`.
        unsafe { *half_mut(&mut self.slab, 2 * (row.index() * self.stride + self.width) + offset) = value };
    }

    /// The entry that a link leads to.
    #[inline(always)]
    pub fn entry(&self, row: RowId, link: usize) -> EntryId {
        // SAFETY: `set_entry` wrote it when the row was attached, and an entry lives while a row
        // links to it.
        unsafe { EntryId::new(self.link(row, link)) }
    }

    #[inline(always)]
    pub fn set_entry(&mut self, row: RowId, link: usize, entry: EntryId) {
        self.set_link(row, link, entry.number());
    }

    /// The row's position in the list of the entry that a link leads to.
    #[inline(always)]
    pub fn position(&self, row: RowId, link: usize) -> u32 {
        self.link(row, link + 1)
    }

    #[inline(always)]
    pub fn set_position(&mut self, row: RowId, link: usize, position: u32) {
        self.set_link(row, link + 1, position);
    }

    /// How many children's keys the row misses; 0 means that it is in the semi-join view.
    #[inline(always)]
    pub fn missing(&self, row: RowId) -> u32 {
        self.missing.map_or(0, |offset| self.link(row, offset))
    }

    #[inline(always)]
    pub fn set_missing(&mut self, row: RowId, missing: u32) {
        if let Some(offset) = self.missing {
            self.set_link(row, offset, missing);
        }
    }

    /// Makes room for `slots` rows at least, including those that are there.
    pub fn reserve(&mut self, slots: usize) {
        let end = slots * self.stride;
        if end > self.slab.len() {
            self.extend_to(end);
        }
    }

    /// Writes the words of a row that comes, with multiplicity 1 and links unset.
    #[inline(always)]
    pub fn write(&mut self, row: RowId, words: &[Word]) {
        let start = row.index() * self.stride;
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

    /// Copies a few words into the slab, without a call.
    #[inline(always)]
    fn copy(&mut self, start: usize, words: &[Word]) {
        debug_assert_eq!(words.len(), self.width);
        for offset in 0..self.width {
            // SAFETY: `write` has made room for the row, whose words are as many as the node's.
            unsafe { *at_mut(&mut self.slab, start + offset) = *at(words, offset) };
        }
    }

    /// Removes a row, and resets its multiplicity to 1 for the next row in its place.
    #[inline(always)]
    pub fn remove(&mut self, row: RowId) {
        self.len -= 1;
        if let Some(multiplicity) = self.multiplicities.get_mut(row.index()) {
            *multiplicity = 1;
        }
    }

    #[inline(always)]
    pub fn multiplicity(&self, row: RowId) -> u64 {
        self.multiplicities.get(row.index()).copied().unwrap_or(1)
    }

    pub fn set_multiplicity(&mut self, row: RowId, multiplicity: u64) {
        if self.multiplicities.is_empty() {
            if multiplicity == 1 {
                return;
            }
            self.multiplicities.resize(self.slab.len() / self.stride, 1);
        }
        self.multiplicities[row.index()] = multiplicity;
    }

    /// Whether no row has ever been there twice (since the slab was last empty).
    pub fn is_plain(&self) -> bool {
        self.multiplicities.is_empty()
    }

    pub fn factors(&self, row: RowId) -> &[i128] {
        let start = row.index() * self.factor_count;
        &self.factors[start..start + self.factor_count]
    }

    pub fn set_factors(&mut self, row: RowId, values: &[i128]) {
        let start = row.index() * self.factor_count;
        self.factors[start..start + self.factor_count].copy_from_slice(values);
    }

    /// Moves the rows to new ids, of which there are `slots`.
    pub fn rename(&mut self, ids: &[Option<RowId>], slots: usize) {
        let (stride, width) = (self.stride, self.factor_count);
        let slab = std::mem::replace(&mut self.slab, with_capacity(slots * stride));
        self.slab.resize(slots * stride, 0);
        let multiplicities = std::mem::take(&mut self.multiplicities);
        let factors = std::mem::replace(&mut self.factors, vec![0; slots * width]);
        for (row, (record, id)) in slab.chunks_exact(stride).zip(ids).enumerate() {
            let Some(id) = id else { continue };
            let target = id.index();
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
