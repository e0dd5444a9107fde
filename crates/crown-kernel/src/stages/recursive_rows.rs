//! The rows of a recursive query, each with its supports.
//!
//! A row has two supports: how often the base contains it, and how often the step derives it from
//! the rows that are *shown*. Once nothing changes any more, a row is shown as often as its
//! supports say: their sum, or one copy if the query keeps no duplicates. In between the two
//! differ, and the caller decides how the difference is shown (`Showing`).

use super::row_set::shrink;
use super::{Lookup, RowSet};
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::Result;
use crate::store::interner::Interner;
use crate::store::net::too_many_copies;
use crate::types::DataType;

/// The origin of copies of a row; `Shown` counts the copies that readers have received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    Base,
    Step,
    Shown,
}

/// What is shown of rows whose support has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Showing {
    /// What the supports say.
    Exact,
    /// Nothing, unless the base has the row: the step may have derived it from itself.
    WithBase,
    /// What was shown before.
    Unchanged,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    base: i64,
    step: i64,
    shown: i64,
}

pub struct RecursiveRows {
    all: bool,
    rows: RowSet,
    counts: Vec<Counts>,
    shown: i128,
}

impl RecursiveRows {
    /// `all`: with duplicates.
    pub fn new(all: bool, types: impl IntoIterator<Item = DataType>) -> RecursiveRows {
        RecursiveRows { all, rows: RowSet::new(types), counts: Vec::new(), shown: 0 }
    }

    /// Adds to one support of each row; `out` gets what that changes of the rows shown. On an error
    /// nothing has changed.
    pub fn add(
        &mut self,
        support: Support,
        changes: &Chunk,
        showing: Showing,
        interner: &mut Interner,
        out: &mut Chunk,
    ) -> Result<()> {
        let (start, mut words) = (out.len(), Vec::new());
        for index in 0..changes.len() {
            let nulls = changes.read(index, &mut words);
            if !self.change(&words, nulls, support, changes.weights[index], showing, interner, out) {
                let (mut done, mut shown) = (changes.clone(), out.clone());
                done.truncate(index);
                self.take_back(support, &done, interner);
                shown.drop_first(start);
                self.take_back(Support::Shown, &shown, interner);
                out.truncate(start);
                return Err(too_many_copies());
            }
        }
        Ok(())
    }

    /// Shows what the supports of these rows say; `out` gets what that changes.
    pub fn show(&mut self, rows: &Chunk, interner: &mut Interner, out: &mut Chunk) -> Result<()> {
        let mut none = rows.clone();
        none.weights.fill(0);
        self.add(Support::Base, &none, Showing::Exact, interner, out)
    }

    /// Shows no row any more. The supports stay.
    pub fn withdraw(&mut self, out: &mut Chunk) {
        for (position, counts) in self.counts.iter_mut().enumerate() {
            if counts.shown != 0 {
                let (words, nulls) = self.rows.row(position);
                out.push(words, nulls, -counts.shown);
                counts.shown = 0;
            }
        }
        self.shown = 0;
    }

    /// Gives the inverse of changes of a support, which show nothing.
    pub fn take_back(&mut self, support: Support, changes: &Chunk, interner: &mut Interner) {
        let (mut words, mut nothing) = (Vec::new(), Chunk::new(0));
        for index in (0..changes.len()).rev() {
            let nulls = changes.read(index, &mut words);
            let weight = -changes.weights[index];
            self.change(&words, nulls, support, weight, Showing::Unchanged, interner, &mut nothing);
        }
    }

    /// Returns false, having done nothing, if a count does not fit.
    #[allow(clippy::too_many_arguments)]
    fn change(
        &mut self,
        words: &[Word],
        nulls: Nulls,
        support: Support,
        weight: i64,
        showing: Showing,
        interner: &mut Interner,
        out: &mut Chunk,
    ) -> bool {
        let found = self.rows.find(words, nulls);
        let before = found.map_or(Counts::default(), |position| self.counts[position]);
        let Some(after) = self.changed(before, support, weight, showing) else { return false };
        self.shown += i128::from(after.shown) - i128::from(before.shown);
        if support != Support::Shown && after.shown != before.shown {
            out.push(words, nulls, after.shown - before.shown);
        }
        let gone = (after.base, after.step, after.shown) == (0, 0, 0);
        match found {
            Some(position) if gone => {
                self.rows.remove(position, interner);
                self.counts.swap_remove(position);
                shrink(&mut self.counts);
            }
            Some(position) => self.counts[position] = after,
            None if gone => {}
            None => {
                self.rows.insert(words, nulls, interner);
                self.counts.push(after);
            }
        }
        true
    }

    fn changed(&self, mut counts: Counts, support: Support, weight: i64, showing: Showing) -> Option<Counts> {
        let count = match support {
            Support::Base => &mut counts.base,
            Support::Step => &mut counts.step,
            Support::Shown => &mut counts.shown,
        };
        *count = count.checked_add(weight)?;
        let supported = counts.base.checked_add(counts.step)?;
        match showing {
            Showing::Exact => counts.shown = if self.all { supported } else { i64::from(supported > 0) },
            Showing::WithBase if counts.base == 0 => counts.shown = 0,
            Showing::WithBase | Showing::Unchanged => {}
        }
        Some(counts)
    }

    /// How many different rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// How many rows are shown, copies counted.
    pub fn count(&self) -> i128 {
        self.shown
    }

    /// Appends up to `limit` rows from position `start` on; returns the next position.
    pub fn read(&self, start: usize, limit: usize, out: &mut Chunk) -> usize {
        let end = self.len().min(start.saturating_add(limit));
        for position in start..end {
            let (words, nulls) = self.rows.row(position);
            out.push(words, nulls, self.counts[position].shown);
        }
        end
    }

    /// Removes all rows.
    pub fn release(&mut self, interner: &mut Interner) {
        while self.len() > 0 {
            self.rows.remove(self.len() - 1, interner);
        }
        self.counts.clear();
        self.shown = 0;
    }

    pub fn bytes(&self) -> usize {
        self.rows.bytes() + self.counts.capacity() * std::mem::size_of::<Counts>()
    }
}

impl Lookup for RecursiveRows {
    fn weight(&self, words: &[Word], nulls: Nulls) -> i64 {
        self.rows.find(words, nulls).map_or(0, |position| self.counts[position].shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(rows: &[(u64, i64)]) -> Chunk {
        let mut chunk = Chunk::new(1);
        rows.iter().for_each(|(word, weight)| chunk.push(&[*word], 0, *weight));
        chunk
    }

    fn rows(all: bool) -> RecursiveRows {
        RecursiveRows::new(all, [DataType::Int64])
    }

    fn pairs(chunk: &Chunk) -> Vec<(u64, i64)> {
        chunk.columns[0].iter().copied().zip(chunk.weights.iter().copied()).collect()
    }

    #[test]
    fn a_row_falls_with_any_derivation_and_rises_if_one_is_left() {
        let (mut rows, mut interner, mut out) = (rows(false), Interner::default(), Chunk::new(1));
        let derived = chunk(&[(1, 2), (2, 1), (3, 1)]);
        rows.add(Support::Step, &derived, Showing::Exact, &mut interner, &mut out).unwrap();
        rows.add(Support::Base, &chunk(&[(3, 1)]), Showing::Exact, &mut interner, &mut out).unwrap();
        assert_eq!((pairs(&out), rows.count()), (vec![(1, 1), (2, 1), (3, 1)], 3));
        let mut fallen = Chunk::new(1);
        let lost = chunk(&[(1, -1), (2, -1), (3, -1)]);
        rows.add(Support::Step, &lost, Showing::WithBase, &mut interner, &mut fallen).unwrap();
        assert_eq!(pairs(&fallen), [(1, -1), (2, -1)], "the base has 3");
        let mut risen = Chunk::new(1);
        rows.show(&fallen, &mut interner, &mut risen).unwrap();
        assert_eq!((pairs(&risen), rows.len(), rows.weight(&[2], 0)), (vec![(1, 1)], 2, 0));
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let (mut rows, mut interner, mut out) = (rows(true), Interner::default(), Chunk::new(1));
        rows.add(Support::Base, &chunk(&[(7, i64::MAX)]), Showing::Exact, &mut interner, &mut out).unwrap();
        let more = chunk(&[(6, 1), (7, 1)]);
        let error = rows.add(Support::Step, &more, Showing::Exact, &mut interner, &mut out).unwrap_err();
        assert_eq!(error.code, "CROWN-OVERFLOW");
        assert_eq!((pairs(&out), rows.len(), rows.count()), (vec![(7, i64::MAX)], 1, i128::from(i64::MAX)));
    }

    #[test]
    fn rows_can_be_withdrawn_and_shown_again() {
        let (mut rows, mut interner, mut out) = (rows(true), Interner::default(), Chunk::new(1));
        rows.add(Support::Base, &chunk(&[(7, 2), (8, 1)]), Showing::Exact, &mut interner, &mut out).unwrap();
        let mut gone = Chunk::new(1);
        rows.withdraw(&mut gone);
        assert_eq!((pairs(&gone), rows.count(), rows.len()), (vec![(7, -2), (8, -1)], 0, 2));
        let mut again = Chunk::new(1);
        rows.show(&gone, &mut interner, &mut again).unwrap();
        assert_eq!((pairs(&again), rows.count()), (vec![(7, 2), (8, 1)], 3));
    }
}
