//! The walk at full speed: if every weight is the same and nothing is NULL, it only has to write
//! words.
//!
//! Rows are written beyond the current lengths of the columns, which are set when the walk pauses.
//! Each step writes its columns at its own pace: the innermost one a list at a time, an outer one
//! when it advances, with one value for all rows since it last advanced.

use super::enumerate::{OpenList, Walk};
use super::id::{EntryId, RowId};
use super::lists::GROUP;
use super::program::{Pairs, Program, Step};
use super::Tree;
use crate::chunk::{Chunk, Word};

/// How many rows before its use an entry is prefetched, and a row.
const NEAR: u32 = 3;
const FAR: u32 = 6;

/// The columns being written.
struct Writer<'a> {
    columns: &'a mut [Vec<Word>],
    /// Rows that every column has room for.
    capacity: usize,
}

impl Writer<'_> {
    fn new(columns: &mut [Vec<Word>]) -> Writer<'_> {
        let capacity = columns.iter().map(Vec::capacity).min().unwrap_or(usize::MAX);
        Writer { columns, capacity }
    }

    /// Makes room for more rows after `total`.
    ///
    /// # Safety
    /// The walk has written every column up to `total`.
    #[cold]
    unsafe fn grow(&mut self, total: usize, more: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.finish(total) };
        self.columns.iter_mut().for_each(|column| column.reserve(more));
        self.capacity = self.columns.iter().map(Vec::capacity).min().unwrap_or(usize::MAX);
    }

    /// Where row `row` of a column is written.
    ///
    /// # Safety
    /// The column has room for `row` rows.
    #[inline(always)]
    unsafe fn target(&mut self, column: usize, row: usize) -> *mut Word {
        let column = &mut self.columns[column];
        debug_assert!(row <= column.capacity());
        // SAFETY: the caller's promise.
        unsafe { column.as_mut_ptr().add(row) }
    }

    /// Writes a word to the rows `from..to` of a column.
    ///
    /// # Safety
    /// `to <= self.capacity`.
    #[inline(always)]
    unsafe fn repeat(&mut self, column: usize, from: usize, to: usize, word: Word) {
        debug_assert!(to <= self.capacity);
        // SAFETY: the caller's promise.
        let target = unsafe { self.target(column, from) };
        for offset in 0..to - from {
            // SAFETY: there is room up to `to`.
            unsafe { target.add(offset).write(word) };
        }
    }

    /// As `repeat` for one row or more, `GROUP` at a time.
    ///
    /// # Safety
    /// `to + GROUP - 1 <= self.capacity`.
    #[inline(always)]
    unsafe fn repeat_groups(&mut self, column: usize, from: usize, to: usize, word: Word) {
        debug_assert!(to + GROUP - 1 <= self.capacity);
        // SAFETY: the caller's promise.
        let target = unsafe { self.target(column, from) };
        let mut offset = 0;
        while offset < to - from {
            for next in offset..offset + GROUP {
                // SAFETY: there is room up to `GROUP - 1` rows after `to`.
                unsafe { target.add(next).write(word) };
            }
            offset += GROUP;
        }
    }

    /// The end of the rows that may be written in groups, of those up to `end`.
    fn end_of_groups(&self, end: usize) -> usize {
        end.min(self.capacity.saturating_sub(GROUP - 1))
    }

    /// Sets the lengths of the columns.
    ///
    /// # Safety
    /// The walk has written every column up to `total`.
    unsafe fn finish(&mut self, total: usize) {
        for column in self.columns.iter_mut() {
            debug_assert!(total <= column.capacity());
            // SAFETY: the caller's promise.
            unsafe { column.set_len(total) };
        }
    }
}

impl Walk {
    /// Appends up to `budget` rows of words to the columns; true when there are no more. The walk
    /// has begun and is not at its end.
    pub(super) fn expand(
        &mut self,
        tree: &Tree,
        program: &Program,
        first: &[RowId],
        out: &mut Chunk,
        budget: usize,
    ) -> bool {
        let start = out.len();
        let end = start + budget;
        let last = program.steps.len() - 1;
        let step = &program.steps[last];
        let mut writer = Writer::new(&mut out.columns);
        let mut total = start;
        for open_list in &mut self.open_lists {
            open_list.filled = start;
        }
        let finished = loop {
            if program.pairs != Pairs::None && self.open_lists[last].index == 0 {
                total = match program.pairs {
                    Pairs::Chain => self.chain(tree, program, total, end, &mut writer),
                    _ => self.product(tree, program, total, end, &mut writer),
                };
            }
            let open_list = &mut self.open_lists[last];
            let available = (open_list.limit - open_list.index) as usize;
            let count = available.min(end - total);
            if total + count > writer.capacity {
                self.fill_outer(tree, program, total, &mut writer);
                // SAFETY: the innermost step has written its columns up to `total`, and now the
                // outer ones have too.
                unsafe { writer.grow(total, count.max(total - start).max(16)) };
            }
            let open_list = &mut self.open_lists[last];
            if !step.is_first && !step.up {
                let lists = &tree.children[step.node];
                for (column, index) in &step.listed {
                    // SAFETY: the list has `count` more rows, and there is room for as many.
                    unsafe {
                        let target = writer.target(*column, total);
                        lists.write_words(&open_list.list, open_list.index, count, *index, target);
                    }
                }
            } else {
                let rows = &tree.rows[step.node];
                let range = open_list.index as usize..open_list.index as usize + count;
                let block = if last == 0 { &first[range] } else { &tree.parents.rows(&open_list.list)[range] };
                for (column, position) in &step.columns {
                    // SAFETY: there is room for `count` rows.
                    let target = unsafe { writer.target(*column, total) };
                    for (offset, row) in block.iter().enumerate() {
                        // SAFETY: as above.
                        unsafe { target.add(offset).write(rows.word(*row, *position)) };
                    }
                }
            }
            total += count;
            if count < available {
                open_list.index += count as u32;
                break false;
            }
            if !self.advance(tree, program, first, |step, open_list| {
                // SAFETY: the innermost step has written up to `total`, so there is room.
                unsafe { fill(tree, step, open_list, total, &mut writer) }
            }) {
                break true;
            }
            if total == end {
                break false;
            }
        };
        if !finished {
            self.fill_outer(tree, program, total, &mut writer);
        }
        // SAFETY: each output column belongs to one step, and all steps have written theirs up to
        // `total`.
        unsafe { writer.finish(total) };
        self.expanded = total - start;
        finished
    }

    /// The two innermost steps at once, when the rows of the one lead to the lists of the other.
    /// Stops before the last row of the outer list, and before a list that there is no room for:
    /// the walk goes on from there.
    #[inline(always)]
    fn chain(&mut self, tree: &Tree, program: &Program, from: usize, end: usize, writer: &mut Writer) -> usize {
        let (outer_step, inner_step) =
            (&program.steps[program.steps.len() - 2], &program.steps[program.steps.len() - 1]);
        let [.., outer, inner] = &mut self.open_lists[..] else { return from };
        let (rows, lists) = (&tree.rows[outer_step.node], &tree.children[inner_step.node]);
        let edge = &tree.edges[inner_step.edge];
        let end = writer.end_of_groups(end);
        let (column, index) = inner_step.listed[0];
        // SAFETY: every column has room for none.
        let start = unsafe { writer.target(column, 0) };
        let mut total = from;
        let list = outer.list;
        let row = if outer_step.up { tree.parents.ids(&list) } else { tree.children[outer_step.node].ids(&list) };
        // The entries of the rows from the current one on: each is prefetched `NEAR` rows before
        // its list is read.
        let mut entries = [EntryId::FIRST; (NEAR + 1) as usize];
        let entry_of = |position: u32| rows.entry(row(position), inner_step.link);
        for position in outer.index + 1..outer.limit.min(outer.index + NEAR + 1) {
            entries[(position % (NEAR + 1)) as usize] = entry_of(position);
        }
        while outer.index + 1 < outer.limit && total + inner.list.len as usize <= end {
            // SAFETY: there is room up to `end`, and for a group after it.
            unsafe { lists.write_groups(&inner.list, index, start.add(total)) };
            total += inner.list.len as usize;
            // SAFETY: `total` is at most `end`, after which there is room for a group.
            unsafe { fill_groups(tree, outer_step, outer, total, writer) };
            outer.index += 1;
            let position = outer.index;
            outer.row = row(position);
            inner.list = edge.entry(entries[(position % (NEAR + 1)) as usize]).children;
            if position + 1 < outer.limit {
                lists.prefetch(&edge.entry(entries[((position + 1) % (NEAR + 1)) as usize]).children, 0);
            }
            if position + NEAR < outer.limit {
                let entry = entry_of(position + NEAR);
                edge.prefetch(entry);
                entries[((position + NEAR) % (NEAR + 1)) as usize] = entry;
            }
            if position + FAR < outer.limit {
                rows.prefetch(row(position + FAR));
            }
            #[cfg(test)]
            {
                self.operations += 2;
            }
        }
        inner.limit = inner.list.len;
        total
    }

    /// The two innermost steps at once, when their lists are independent: every pair. Stops as
    /// `chain` does.
    #[inline(always)]
    fn product(&mut self, tree: &Tree, program: &Program, from: usize, end: usize, writer: &mut Writer) -> usize {
        let (outer_step, inner_step) =
            (&program.steps[program.steps.len() - 2], &program.steps[program.steps.len() - 1]);
        let [.., outer, inner] = &mut self.open_lists[..] else { return from };
        let lists = &tree.children[inner_step.node];
        let count = inner.list.len as usize;
        let end = writer.end_of_groups(end);
        let (column, index) = inner_step.listed[0];
        // SAFETY: every column has room for none.
        let start = unsafe { writer.target(column, 0) };
        let mut total = from;
        let all = outer.limit as usize * count;
        if outer.limit > inner.limit && outer.index == 0 && outer_step.listed.len() == 1 && total + all <= end {
            // Long lists are copied faster than short ones, so the longer one is copied.
            let copied = outer.limit as usize;
            let (outer_column, outer_index) = outer_step.listed[0];
            // SAFETY: as above.
            let copies = unsafe { writer.target(outer_column, 0) };
            for position in 0..inner.limit {
                // SAFETY: there is room for all pairs; what is copied was written for the position
                // before.
                unsafe {
                    if position == 0 {
                        let words = &tree.children[outer_step.node];
                        words.write_words(&outer.list, 0, copied, outer_index, copies.add(total));
                    } else {
                        copy_words(copies.add(total - copied), copies.add(total), copied);
                    }
                    writer.repeat(column, total, total + copied, lists.word(&inner.list, position, index));
                }
                total += copied;
            }
            (outer.index, outer.filled, inner.index) = (outer.limit - 1, total, inner.limit);
        }
        while outer.index + 1 < outer.limit && total + count <= end {
            // SAFETY: there is room up to `end`; what is copied was written for the row before.
            unsafe {
                if total == from {
                    lists.write_words(&inner.list, 0, count, index, start.add(total));
                } else {
                    copy_words(start.add(total - count), start.add(total), count);
                }
            }
            total += count;
            // SAFETY: `total` is at most `end`, after which there is room for a group.
            unsafe { fill_groups(tree, outer_step, outer, total, writer) };
            outer.index += 1;
            #[cfg(test)]
            {
                self.operations += 2;
            }
        }
        outer.row = outer_step.row(tree, &outer.list, outer.index);
        total
    }

    /// Fills the columns of all outer steps up to `total` rows, for which there is room.
    fn fill_outer(&mut self, tree: &Tree, program: &Program, total: usize, writer: &mut Writer) {
        for (step, open_list) in program.steps.iter().zip(&mut self.open_lists[..program.steps.len() - 1]) {
            // SAFETY: the innermost step has written up to `total`, so there is room.
            unsafe { fill(tree, step, open_list, total, writer) };
        }
    }
}

/// Copies a few words to a position behind them.
///
/// # Safety
/// `from` has `count` words, `to` has room for them, and they don't overlap.
#[inline(always)]
unsafe fn copy_words(from: *const Word, to: *mut Word, count: usize) {
    if count > 16 {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to, count) };
    } else {
        for offset in 0..count {
            // SAFETY: the caller's promise.
            unsafe { to.add(offset).write(from.add(offset).read()) };
        }
    }
}

/// Fills the columns of an outer step with its row's values up to `total` rows.
///
/// # Safety
/// There is room for `total` rows.
#[inline(always)]
unsafe fn fill(tree: &Tree, step: &Step, open_list: &mut OpenList, total: usize, writer: &mut Writer) {
    let filled = open_list.filled;
    // SAFETY: the caller's promise.
    each_value(tree, step, open_list, |column, word| unsafe { writer.repeat(column, filled, total, word) });
    open_list.filled = total;
}

/// As `fill` for one row or more.
///
/// # Safety
/// There is room for `total` rows and a group after them.
#[inline(always)]
unsafe fn fill_groups(tree: &Tree, step: &Step, open_list: &mut OpenList, total: usize, writer: &mut Writer) {
    let filled = open_list.filled;
    // SAFETY: the caller's promise.
    each_value(tree, step, open_list, |column, word| unsafe { writer.repeat_groups(column, filled, total, word) });
    open_list.filled = total;
}

/// The columns of an outer step with the values of its row.
#[inline(always)]
fn each_value(tree: &Tree, step: &Step, open_list: &OpenList, mut take: impl FnMut(usize, Word)) {
    if step.up || step.is_first {
        for (column, position) in &step.columns {
            take(*column, tree.rows[step.node].word(open_list.row, *position));
        }
    } else {
        // The list is in the cache; the row may not be.
        for (column, index) in &step.listed {
            take(*column, tree.children[step.node].word(&open_list.list, open_list.index, *index));
        }
    }
}
