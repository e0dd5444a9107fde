//! Lists of row ids, contiguous, in one pool.
//!
//! Enumeration walks lists, so their rows lie side by side (one cache miss for a block, not one per
//! row); there is a list per key and most are short, so they are not allocated one by one. An item
//! is a row id, followed in lists that are enumerated by the words that the row adds to a result:
//! then results are copied from the list and no row is touched. A list of one bare id is stored in
//! its own header; others take a block of 1, 2, 4, 8, ... items. A block grows when it is full and
//! shrinks when it is three quarters empty, so each push and removal costs amortised constant time.

use super::id::RowId;
use crate::chunk::Word;
use crate::store::slab::{at, at_mut, prefetch, reserve_slowly};

const NONE: u32 = u32::MAX;

/// How many words are copied in one step where copying a few too many is harmless.
pub(super) const GROUP: usize = 4;

/// A list's header. Everything about it but its length goes through the pool.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    /// Where the block starts, or the only row.
    pub start: u32,
    pub len: u32,
    /// The block has room for 2^class items.
    pub class: u32,
}

pub(super) struct Lists {
    /// 32-bit parts per item: the id, and two for each word.
    stride: usize,
    pool: Vec<u32>,
    /// The first free block of each class; a free block's first part leads to the next.
    free: Vec<u32>,
    used: usize,
}

impl Lists {
    /// A pool of lists whose items have `words` words each.
    pub fn new(words: usize) -> Lists {
        Lists { stride: 1 + 2 * words, pool: Vec::new(), free: Vec::new(), used: 0 }
    }

    #[inline(always)]
    fn is_inline(&self, list: &List) -> bool {
        list.class == 0 && self.stride == 1
    }

    /// Where an item begins in the pool.
    #[inline(always)]
    fn offset(&self, list: &List, position: u32) -> usize {
        list.start as usize + position as usize * self.stride
    }

    /// The parts of a list's items.
    #[inline(always)]
    fn parts<'a>(&'a self, list: &'a List) -> &'a [u32] {
        if self.is_inline(list) {
            &std::slice::from_ref(&list.start)[..list.len as usize]
        } else {
            let (start, len) = (list.start as usize, list.len as usize * self.stride);
            debug_assert!(start + len <= self.pool.len());
            // SAFETY: the list has its items in the pool.
            unsafe { std::slice::from_raw_parts(self.pool.as_ptr().add(start), len) }
        }
    }

    /// The rows of a list in a pool of bare ids.
    #[inline(always)]
    pub fn rows<'a>(&'a self, list: &'a List) -> &'a [RowId] {
        debug_assert_eq!(self.stride, 1);
        let parts = self.parts(list);
        // SAFETY: each part is an item, hence the id of a row, and a `RowId` is a `u32` in memory.
        unsafe { std::slice::from_raw_parts(parts.as_ptr().cast::<RowId>(), parts.len()) }
    }

    /// The rows of a list by position, for a loop over them. The positions are below the list's
    /// length.
    #[inline(always)]
    pub fn ids<'a>(&'a self, list: &'a List) -> impl Fn(u32) -> RowId + 'a {
        let (parts, stride) = (self.parts(list), self.stride);
        // SAFETY: the list has an item at the position, which begins with the id of a row.
        move |position| unsafe { RowId::new(*at(parts, position as usize * stride)) }
    }

    /// The row at a position below the list's length.
    #[inline(always)]
    pub fn get(&self, list: &List, position: u32) -> RowId {
        if self.is_inline(list) {
            // SAFETY: a list of one bare id has it in its header.
            unsafe { RowId::new(list.start) }
        } else {
            // SAFETY: the list has an item at the position, which begins with the id of a row.
            unsafe { RowId::new(*at(&self.pool, self.offset(list, position))) }
        }
    }

    /// The `index`th word of an item.
    #[inline(always)]
    pub fn word(&self, list: &List, position: u32, index: usize) -> Word {
        let offset = self.offset(list, position) + 1 + 2 * index;
        debug_assert!(offset + 2 <= self.pool.len());
        // SAFETY: the list has the item; a word is two parts of it.
        unsafe { self.pool.as_ptr().add(offset).cast::<Word>().read_unaligned() }
    }

    /// Writes the `index`th words of `count` items from `position` on to `out`.
    ///
    /// # Safety
    /// The list has these items, and `out` has room for `count` words.
    #[inline(always)]
    pub unsafe fn write_words(&self, list: &List, position: u32, count: usize, index: usize, out: *mut Word) {
        let start = self.offset(list, position) + 1 + 2 * index;
        debug_assert!(count == 0 || start + (count - 1) * self.stride + 2 <= self.pool.len());
        for item in 0..count {
            // SAFETY: the caller's promise.
            unsafe {
                let word = self.pool.as_ptr().add(start + item * self.stride).cast::<Word>();
                out.add(item).write(word.read_unaligned());
            }
        }
    }

    /// As `write_words` for all items of a list that is not empty, `GROUP` at a time: what comes
    /// after the last one is written too. The loop then ends where the processor expects it, nearly
    /// always.
    ///
    /// # Safety
    /// `out` has room for the list's words and `GROUP - 1` more.
    #[inline(always)]
    pub unsafe fn write_groups(&self, list: &List, index: usize, out: *mut Word) {
        let count = list.len as usize;
        let start = list.start as usize + 1 + 2 * index;
        if start + (count + GROUP - 2) * self.stride + 2 > self.pool.len() {
            // SAFETY: these are all items of the list, and `out` has more room than they need.
            return unsafe { self.write_words(list, 0, count, index, out) };
        }
        let mut item = 0;
        while item < count {
            for next in item..item + GROUP {
                // SAFETY: the pool reaches that far, and by the caller's promise so does `out`.
                unsafe {
                    let word = self.pool.as_ptr().add(start + next * self.stride).cast::<Word>();
                    out.add(next).write(word.read_unaligned());
                }
            }
            item += GROUP;
        }
    }

    /// Prefetches the item at a position.
    #[inline(always)]
    pub fn prefetch(&self, list: &List, position: u32) {
        prefetch(&self.pool, self.offset(list, position));
    }

    #[inline(always)]
    fn set(&mut self, list: &mut List, position: u32, row: RowId) {
        if self.is_inline(list) {
            list.start = row.number();
        } else {
            let offset = self.offset(list, position);
            // SAFETY: the list has an item at the position.
            unsafe { *at_mut(&mut self.pool, offset) = row.number() };
        }
    }

    /// Exchanges two items.
    #[inline]
    pub fn swap(&mut self, list: &List, left: u32, right: u32) {
        let (left, right) = (self.offset(list, left), self.offset(list, right));
        for part in 0..self.stride {
            // SAFETY: the list has items of `stride` parts at both positions.
            unsafe {
                let value = *at(&self.pool, left + part);
                *at_mut(&mut self.pool, left + part) = *at(&self.pool, right + part);
                *at_mut(&mut self.pool, right + part) = value;
            }
        }
    }

    /// Appends a row with its words; its position is the length before.
    #[inline]
    pub fn push(&mut self, list: &mut List, row: RowId, words: impl Iterator<Item = Word>) {
        if list.len == 0 {
            list.class = 0;
            if self.stride > 1 {
                list.start = self.allocate(0);
            }
        } else if list.len == 1 << list.class {
            self.resize(list, list.class + 1);
        }
        let position = list.len;
        list.len += 1;
        self.set(list, position, row);
        if self.stride > 1 {
            let mut offset = self.offset(list, position) + 1;
            for word in words {
                debug_assert!(offset + 2 <= self.pool.len());
                // SAFETY: the block has room for the item; a word is two parts of it.
                unsafe { self.pool.as_mut_ptr().add(offset).cast::<Word>().write_unaligned(word) };
                offset += 2;
            }
        }
    }

    /// Removes the row at `position`; returns the row that took its position, if one did.
    #[inline]
    pub fn swap_remove(&mut self, list: &mut List, position: u32) -> Option<RowId> {
        let last = list.len - 1;
        if position != last {
            self.swap(list, position, last);
        }
        self.truncate(list, last);
        (position != last).then(|| self.get(list, position))
    }

    /// Keeps the first `len` rows.
    #[inline]
    pub fn truncate(&mut self, list: &mut List, len: u32) {
        if list.len == len {
            return;
        }
        list.len = len;
        if len == 0 {
            if !self.is_inline(list) {
                self.release(list.start, list.class);
            }
            list.class = 0;
        } else {
            while list.class > 0 && len <= 1 << list.class >> 2 {
                self.resize(list, list.class - 1);
            }
            if list.class == 1 && len == 1 && self.stride == 1 {
                self.resize(list, 0);
            }
        }
    }

    /// Moves a list that is not empty to a block of another class.
    fn resize(&mut self, list: &mut List, class: u32) {
        let old = *list;
        let new = List { start: 0, len: old.len, class };
        *list = if self.is_inline(&new) {
            List { start: self.get(&old, 0).number(), ..new }
        } else if self.is_inline(&old) {
            let start = self.allocate(class);
            self.pool[start as usize] = old.start;
            List { start, ..new }
        } else {
            let start = self.allocate(class);
            let source = old.start as usize;
            self.pool.copy_within(source..source + old.len as usize * self.stride, start as usize);
            List { start, ..new }
        };
        if !self.is_inline(&old) {
            self.release(old.start, old.class);
        }
    }

    fn allocate(&mut self, class: u32) -> u32 {
        let size = self.stride << class;
        self.used += size;
        if self.free.len() <= class as usize {
            self.free.resize(class as usize + 1, NONE);
        }
        let head = self.free[class as usize];
        if head != NONE {
            self.free[class as usize] = self.pool[head as usize];
            return head;
        }
        let block = u32::try_from(self.pool.len()).expect("fewer than 2^32 parts of lists");
        reserve_slowly(&mut self.pool, size);
        self.pool.resize(self.pool.len() + size, 0);
        block
    }

    fn release(&mut self, block: u32, class: u32) {
        self.used -= self.stride << class;
        self.pool[block as usize] = self.free[class as usize];
        self.free[class as usize] = block;
    }

    /// Whether most of the pool is free blocks.
    pub fn is_sparse(&self) -> bool {
        self.pool.len() > 1024 && self.used * 4 < self.pool.len()
    }

    /// An empty pool for the same kind of lists.
    pub fn fresh(&self) -> Lists {
        Lists::new(self.stride / 2)
    }

    /// Moves a list out of this pool into another.
    pub fn relocate(&self, list: &mut List, target: &mut Lists) {
        let mut copy = List::default();
        for position in 0..list.len {
            let words = (0..self.stride / 2).map(|index| self.word(list, position, index));
            target.push(&mut copy, self.get(list, position), words);
        }
        *list = copy;
    }

    /// Replaces each row by its new id.
    pub fn rename(&mut self, list: &mut List, ids: &[Option<RowId>]) {
        for position in 0..list.len {
            let row = self.get(list, position);
            self.set(list, position, ids[row.index()].expect("a listed row has a new id"));
        }
    }

    pub fn bytes(&self) -> usize {
        self.pool.capacity() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> RowId {
        // SAFETY: it is never used with a slab.
        unsafe { RowId::new(number) }
    }

    fn check(words: usize) {
        let mut lists = Lists::new(words);
        let mut pairs: Vec<(List, Vec<RowId>)> = vec![Default::default(); 8];
        let mut random = crate::random::Random(7);
        let mut peak = 0;
        for step in 0..40_000u32 {
            let drawn = (random.next() >> 33) as usize;
            let (list, model) = &mut pairs[drawn % 8];
            if step / 4000 % 2 == 0 && !drawn.is_multiple_of(5) || model.is_empty() {
                let row = id(step);
                lists.push(list, row, (0..words).map(|index| u64::from(step) << 33 | index as u64));
                model.push(row);
            } else {
                let position = drawn / 8 % model.len();
                let moved = lists.swap_remove(list, position as u32);
                model.swap_remove(position);
                assert_eq!(moved, model.get(position).copied());
            }
            assert_eq!(list.len as usize, model.len());
            for (position, row) in model.iter().enumerate() {
                assert_eq!(lists.get(list, position as u32), *row);
                for index in 0..words {
                    assert_eq!(lists.word(list, position as u32, index), u64::from(row.number()) << 33 | index as u64);
                }
            }
            if step == 8000 {
                peak = lists.pool.len();
            }
        }
        assert!(lists.pool.len() <= 2 * peak, "{} parts after {peak}", lists.pool.len());
        for (list, _) in &mut pairs {
            lists.truncate(list, 0);
        }
        assert_eq!(lists.used, 0);
    }

    #[test]
    fn lists_behave_like_vectors_and_reuse_their_blocks() {
        check(0);
        check(1);
        check(2);
    }
}
