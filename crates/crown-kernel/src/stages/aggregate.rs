//! GROUP BY: folds signed rows into groups and, for each changed group, emits a deletion of its old
//! row and an insertion of its new row.

use super::accumulator::{count_up, Accumulator, Argument, Folded};
use super::row_set::shrink;
use super::{Columns, Lookup, RowSet};
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{overflow, KernelError, Result};
use crate::mask::{self, Bits};
use crate::plan;
use crate::store::interner::Interner;
use crate::types::DataType;
use std::mem::size_of;

pub struct Aggregate {
    columns: Columns,
    group: Vec<usize>,
    folded: Vec<Folded>,
    always: bool,
    /// The groups; all vectors below go by their positions.
    groups: RowSet,
    /// Input rows of each group: a group whose count is 0 is freed.
    counts: Vec<i64>,
    accumulators: Vec<Accumulator>,
    /// The shown row's aggregates and their NULLs (bit i for aggregate i), and whether a delta has
    /// shown it yet.
    values: Vec<Word>,
    value_nulls: Vec<Nulls>,
    shown: Vec<bool>,
    /// Marks of the running `apply`.
    touched: Vec<bool>,
}

/// The evaluated arguments of a batch: by aggregate, then by row.
type Arguments = Vec<Vec<Option<Argument>>>;

impl Aggregate {
    pub fn new(stage: &plan::AggregateStage, columns: &[(String, DataType)]) -> Result<Aggregate> {
        let mut own: Columns = Vec::new();
        let mut group = Vec::new();
        for name in &stage.group {
            let position = columns.iter().position(|(other, _)| other == name).ok_or_else(|| {
                KernelError::plan("CROWN-PLAN-MALFORMED", format!("stage '{}' groups by unknown '{name}'", stage.id))
            })?;
            own.push(columns[position].clone());
            group.push(position);
        }
        let groups = RowSet::new(own.iter().map(|(_, data_type)| *data_type));
        let mut folded = Vec::new();
        for column in &stage.aggregates {
            let aggregate = Folded::new(column, columns)?;
            own.push((column.name.clone(), aggregate.kind.result));
            folded.push(aggregate);
        }
        if stage.always && !group.is_empty() {
            let message = format!("stage '{}' groups although it is global", stage.id);
            return Err(KernelError::plan("CROWN-PLAN-MALFORMED", message));
        }
        let mut aggregate = Aggregate {
            columns: own,
            group,
            folded,
            always: stage.always,
            groups,
            counts: Vec::new(),
            accumulators: Vec::new(),
            values: Vec::new(),
            value_nulls: Vec::new(),
            shown: Vec::new(),
            touched: Vec::new(),
        };
        if aggregate.always {
            // The empty group has neither a key nor an interned value, so no interner is needed
            // yet.
            let interner = &mut Interner::default();
            aggregate.add_group(&[], 0, interner);
            let (values, nulls) = aggregate.results(0, interner)?;
            aggregate.values.copy_from_slice(&values);
            aggregate.value_nulls[0] = nulls;
        }
        Ok(aggregate)
    }

    pub fn columns(&self) -> &[(String, DataType)] {
        &self.columns
    }

    /// The first call, even with no input, shows the row of a global aggregate.
    pub fn apply(&mut self, input: &Chunk, interner: &mut Interner, out: &mut Chunk) -> Result<()> {
        let arguments = self.evaluate(input, interner)?;
        let (mut touched, overflowed) = self.fold(input, &arguments, 1, interner);
        if self.always && !self.shown[0] && touched.is_empty() {
            touched.push(0);
        }
        let results = if overflowed {
            Err(overflow())
        } else {
            touched.iter().map(|position| self.results(*position, interner)).collect::<Result<Vec<_>>>()
        };
        let results = match results {
            Ok(results) => results,
            Err(error) => {
                let (undone, _) = self.fold(input, &arguments, -1, interner);
                self.free_empty(undone, interner);
                return Err(error);
            }
        };
        for (position, (values, nulls)) in touched.iter().zip(results) {
            self.show(*position, &values, nulls, interner, out);
        }
        self.free_empty(touched, interner);
        Ok(())
    }

    fn evaluate(&self, input: &Chunk, interner: &mut Interner) -> Result<Arguments> {
        let mut values: Arguments = self.folded.iter().map(|_| Vec::with_capacity(input.len())).collect();
        self.folded.iter().for_each(|folded| folded.prepare(input, interner));
        let mut words = Vec::new();
        for index in 0..input.len() {
            let nulls = input.read(index, &mut words);
            for (folded, values) in self.folded.iter().zip(&mut values) {
                values.push(folded.evaluate(&words, nulls, interner)?);
            }
        }
        Ok(values)
    }

    /// Folds the rows `sign` times and returns the groups they touch, each once, and whether a
    /// count overflowed.
    ///
    /// Deleted rows are folded before inserted ones, so that no count is ever larger than before or
    /// after the whole change: it overflows only if the result does.
    fn fold(&mut self, input: &Chunk, arguments: &Arguments, sign: i64, interner: &mut Interner) -> (Vec<usize>, bool) {
        let mut touched = Vec::new();
        let mut overflowed = false;
        let mut key = Vec::with_capacity(self.group.len());
        let going = |coming: bool| (0..input.len()).filter(move |index| (sign * input.weights[*index] > 0) == coming);
        for index in going(false).chain(going(true)) {
            key.clear();
            key.extend(self.group.iter().map(|column| input.columns[*column][index]));
            let nulls = input.nulls_at(index).gather(self.group.iter().copied().zip(0..));
            let position = match self.groups.find(&key, nulls) {
                Some(position) => position,
                None => self.add_group(&key, nulls, interner),
            };
            if !std::mem::replace(&mut self.touched[position], true) {
                touched.push(position);
            }
            let weight = sign * input.weights[index];
            overflowed |= count_up(&mut self.counts[position], weight);
            let own = &mut self.accumulators[position * self.folded.len()..];
            for ((accumulator, folded), values) in own.iter_mut().zip(&self.folded).zip(arguments) {
                if let Some(argument) = &values[index] {
                    overflowed |= accumulator.fold(&folded.kind, argument, weight, interner);
                }
            }
        }
        touched.iter().for_each(|position| self.touched[*position] = false);
        (touched, overflowed)
    }

    fn add_group(&mut self, key: &[Word], nulls: Nulls, interner: &mut Interner) -> usize {
        let position = self.groups.insert(key, nulls, interner);
        self.counts.push(0);
        self.accumulators.extend(self.folded.iter().map(|folded| Accumulator::new(&folded.kind)));
        self.values.resize(self.values.len() + self.folded.len(), 0);
        self.value_nulls.push(0);
        self.shown.push(false);
        self.touched.push(false);
        position
    }

    fn results(&self, position: usize, interner: &mut Interner) -> Result<(Vec<Word>, Nulls)> {
        let mut nulls = mask::Builder::default();
        let mut values = Vec::with_capacity(self.folded.len());
        let own = &self.accumulators[position * self.folded.len()..];
        for (index, (accumulator, folded)) in own.iter().zip(&self.folded).enumerate() {
            let value = accumulator.result(&folded.kind, interner)?;
            nulls.set(index, value.is_none());
            values.push(value.unwrap_or(0));
        }
        Ok((values, nulls.finish()))
    }

    /// Emits the group's change and keeps the new values as the shown ones.
    fn show(&mut self, position: usize, values: &[Word], nulls: Nulls, interner: &mut Interner, out: &mut Chunk) {
        let range = position * self.folded.len()..(position + 1) * self.folded.len();
        let alive = self.always || self.counts[position] != 0;
        let same = &self.values[range.clone()] == values && self.value_nulls[position] == nulls;
        if self.shown[position] && alive && same {
            return;
        }
        let (key, key_nulls) = self.groups.row(position);
        let mut row = key.to_vec();
        if self.shown[position] {
            row.extend_from_slice(&self.values[range.clone()]);
            out.push(&row, key_nulls.union(self.value_nulls[position].shifted(key.len())), -1);
        }
        if alive {
            row.truncate(key.len());
            row.extend_from_slice(values);
            out.push(&row, key_nulls.union(nulls.shifted(key.len())), 1);
        }
        if alive {
            self.count_references(values, nulls, interner, Interner::retain);
        }
        let old = self.values[range.clone()].to_vec();
        if self.shown[position] {
            self.count_references(&old, self.value_nulls[position], interner, Interner::release);
        }
        self.values[range].copy_from_slice(values);
        self.value_nulls[position] = nulls;
        self.shown[position] = alive;
    }

    /// The interned values of a shown row are retained, so that the row can be looked up, and
    /// deleted exactly as it was inserted.
    fn count_references(
        &self,
        values: &[Word],
        nulls: Nulls,
        interner: &mut Interner,
        change: fn(&mut Interner, Word),
    ) {
        for (index, folded) in self.folded.iter().enumerate() {
            if folded.kind.result.interned() && !nulls.has(index) {
                change(interner, values[index]);
            }
        }
    }

    /// Frees those of the touched groups that have no rows.
    fn free_empty(&mut self, mut touched: Vec<usize>, interner: &mut Interner) {
        if self.always {
            return;
        }
        touched.retain(|position| self.counts[*position] == 0);
        // From the end, so that the group that moves into a freed place is never one that is still
        // to be freed.
        touched.sort_unstable_by(|left, right| right.cmp(left));
        let width = self.folded.len();
        for position in touched {
            self.groups.remove(position, interner);
            self.counts.swap_remove(position);
            self.value_nulls.swap_remove(position);
            self.shown.swap_remove(position);
            self.touched.swap_remove(position);
            let last = self.counts.len();
            for index in 0..width {
                self.accumulators.swap(position * width + index, last * width + index);
                self.values.swap(position * width + index, last * width + index);
            }
            self.accumulators.truncate(last * width);
            self.values.truncate(last * width);
        }
        shrink(&mut self.counts);
        shrink(&mut self.value_nulls);
        shrink(&mut self.shown);
        shrink(&mut self.touched);
        shrink(&mut self.accumulators);
        shrink(&mut self.values);
    }

    pub fn rows(&self) -> usize {
        self.groups.len()
    }

    pub fn read(&self, start: usize, limit: usize, out: &mut Chunk) -> usize {
        let end = self.rows().min(start.saturating_add(limit));
        let mut row = Vec::new();
        for position in start..end {
            let (key, nulls) = self.groups.row(position);
            row.clear();
            row.extend_from_slice(key);
            row.extend_from_slice(&self.values[position * self.folded.len()..][..self.folded.len()]);
            out.push(&row, nulls.union(self.value_nulls[position].shifted(key.len())), 1);
        }
        end
    }

    /// Appends the group of these values of its first columns; false unless all of them are given.
    pub fn lookup(&self, fixed: &[(usize, Option<Word>)], out: &mut Chunk) -> bool {
        let width = self.group.len();
        let value = |column: usize| fixed.iter().find(|(other, _)| *other == column).map(|(_, value)| *value);
        let Some(values) = (0..width).map(value).collect::<Option<Vec<_>>>() else { return false };
        let words: Vec<Word> = values.iter().map(|value| value.unwrap_or(0)).collect();
        let nulls = mask::of((0..width).filter(|column| values[*column].is_none()));
        if let Some(position) = self.groups.find(&words, nulls) {
            self.read(position, 1, out);
        }
        true
    }

    /// Counts what hangs on each group, so it takes time linear in the groups.
    pub fn bytes(&self) -> usize {
        self.groups.bytes()
            + (self.counts.capacity() + self.values.capacity() + self.value_nulls.capacity()) * 8
            + self.shown.capacity()
            + self.touched.capacity()
            + self.accumulators.capacity() * size_of::<Accumulator>()
            + self.accumulators.iter().map(Accumulator::bytes).sum::<usize>()
    }
}

impl Lookup for Aggregate {
    fn weight(&self, words: &[Word], nulls: Nulls) -> i64 {
        let (key, values) = words.split_at(self.group.len());
        let (key_nulls, value_nulls) = nulls.split(self.group.len());
        let Some(position) = self.groups.find(key, key_nulls) else { return 0 };
        let own = &self.values[position * self.folded.len()..][..self.folded.len()];
        i64::from(own == values && self.value_nulls[position] == value_nulls)
    }
}
