//! The walk of a program with ranges: as in `enumerate`, but a list may turn out empty for the rows
//! chosen before it.
//!
//! In that case the step before advances, so the delay is no longer constant: a row may be visited
//! whose range is empty. But no row outside its range is ever visited. Rows of a range are fetched
//! a few at a time, so a walk can pause and resume, and buffers little.

use super::enumerate::{OpenList, Walk};
use super::id::{EntryId, RowId};
use super::ordered::Key;
use super::program::{Program, Step};
use super::Tree;

/// How many rows of a range are fetched in one step.
const FETCH: usize = 128;

/// A part of a range, and where it goes on.
pub(super) struct Fetched {
    rows: Vec<RowId>,
    /// The last key that was fetched, while there may be more.
    last: Option<Key>,
    end: Key,
}

impl Default for Fetched {
    fn default() -> Fetched {
        Fetched { rows: Vec::new(), last: None, end: (EntryId::LAST, i64::MAX, RowId::LAST) }
    }
}

impl Walk {
    /// Opens the first result's lists; false if there is no result.
    pub(super) fn begin_ranged(&mut self, tree: &Tree, program: &Program, first: &[RowId]) -> bool {
        if self.fetched.len() < program.steps.len() {
            self.fetched.resize_with(program.steps.len(), Fetched::default);
        }
        match self.open_ranged(tree, program, 1) {
            None => true,
            Some(empty) => self.forward(tree, program, first, empty - 1, &mut |_, _| {}),
        }
    }

    /// As `advance`.
    pub(super) fn advance_ranged(
        &mut self,
        tree: &Tree,
        program: &Program,
        first: &[RowId],
        mut fill: impl FnMut(&Step, &mut OpenList),
    ) -> bool {
        let last = program.steps.len() - 1;
        self.open_lists[last].index = self.open_lists[last].limit - 1;
        self.forward(tree, program, first, last, &mut fill)
    }

    /// The row at a position of a step's list.
    #[inline]
    pub(super) fn row_at(&self, tree: &Tree, program: &Program, first: &[RowId], index: usize, position: u32) -> RowId {
        let step = &program.steps[index];
        if index == 0 {
            first[position as usize]
        } else if step.range.is_some() {
            self.fetched[index].rows[position as usize]
        } else {
            step.row(tree, &self.open_lists[index].list, position)
        }
    }

    /// Moves the step on, or the last one before it that has more rows, and opens those after it;
    /// false when none has. Outer steps are filled before they move.
    fn forward(
        &mut self,
        tree: &Tree,
        program: &Program,
        first: &[RowId],
        mut index: usize,
        fill: &mut impl FnMut(&Step, &mut OpenList),
    ) -> bool {
        let last = program.steps.len() - 1;
        loop {
            if index < last {
                fill(&program.steps[index], &mut self.open_lists[index]);
            }
            if self.next_row(tree, program, first, index) {
                match self.open_ranged(tree, program, index + 1) {
                    None => return true,
                    Some(empty) => index = empty - 1,
                }
            } else if index == 0 {
                self.open_lists[0].index = first.len() as u32;
                return false;
            } else {
                index -= 1;
            }
        }
    }

    fn next_row(&mut self, tree: &Tree, program: &Program, first: &[RowId], index: usize) -> bool {
        #[cfg(test)]
        {
            self.operations += 1;
        }
        let ranged = program.steps[index].range.is_some();
        let open_list = &mut self.open_lists[index];
        open_list.index += 1;
        if open_list.index == open_list.limit && !(ranged && self.fetch_more(tree, program, index)) {
            return false;
        }
        let open_list = self.open_lists[index];
        self.open_lists[index].row = self.row_at(tree, program, first, index, open_list.index);
        true
    }

    /// Opens the lists of the steps from `from` on; returns the first one that is empty.
    fn open_ranged(&mut self, tree: &Tree, program: &Program, from: usize) -> Option<usize> {
        for index in from..program.steps.len() {
            #[cfg(test)]
            {
                self.operations += 1;
            }
            let step = &program.steps[index];
            let source = self.open_lists[step.source].row;
            let entry = tree.rows[program.steps[step.source].node].entry(source, step.link);
            let Some(range) = &step.range else {
                let state = tree.edges[step.edge].entry(entry);
                let (list, limit) =
                    if step.up { (state.parents, state.live) } else { (state.children, state.children.len) };
                self.open_lists[index] = OpenList { list, limit, index: 0, row: step.row(tree, &list, 0), filled: 0 };
                continue;
            };
            let (mut least, mut most) = (i128::from(i64::MIN), i128::from(i64::MAX));
            for bound in &range.bounds {
                let rows = &tree.rows[program.steps[bound.source].node];
                bound.narrow(rows, self.open_lists[bound.source].row, &mut least, &mut most);
            }
            let (Ok(least), Ok(most)) = (i64::try_from(least), i64::try_from(most)) else { return Some(index) };
            let fetched = &mut self.fetched[index];
            fetched.end = (entry, most, RowId::LAST);
            let order = tree.orders.get(step.edge, step.up);
            fetched.last = order.fetch((entry, least, RowId::FIRST), false, fetched.end, FETCH, &mut fetched.rows);
            if !self.take_fetched(index) {
                return Some(index);
            }
        }
        None
    }

    fn fetch_more(&mut self, tree: &Tree, program: &Program, index: usize) -> bool {
        let step = &program.steps[index];
        let fetched = &mut self.fetched[index];
        let Some(last) = fetched.last else { return false };
        let order = tree.orders.get(step.edge, step.up);
        fetched.last = order.fetch(last, true, fetched.end, FETCH, &mut fetched.rows);
        self.take_fetched(index)
    }

    /// Goes to the first of the rows that were just fetched; false if there is none.
    fn take_fetched(&mut self, index: usize) -> bool {
        let fetched = &mut self.fetched[index];
        if fetched.rows.len() < FETCH {
            fetched.last = None;
        }
        let Some(row) = fetched.rows.first() else { return false };
        let open_list = &mut self.open_lists[index];
        (open_list.limit, open_list.index, open_list.row) = (fetched.rows.len() as u32, 0, *row);
        true
    }
}
