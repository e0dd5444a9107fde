//! Deltas of an aggregate whose connex part is one node: each of its rows is one result, so there
//! is nothing to walk.
//!
//! Most GROUP BY queries are of this kind, and most of their deltas have two rows, an old and a new
//! value.

use super::id::RowId;
use super::propagate::Scratch;
use super::ring::Value;
use super::{Sink, Tree};
use crate::chunk::{Chunk, Word};
use crate::error::{overflow, Result};
use crate::store::interner::Interner;

impl Tree {
    /// Emits the old and the new value of rows that stay and have another annotation.
    pub(super) fn emit_valued_directly(
        &mut self,
        node: usize,
        scratch: &mut Scratch,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) {
        let width = self.shape.components.len();
        let Scratch { change, words, .. } = scratch;
        for (row, pair) in change.valued.iter().zip(change.value_pairs.chunks_exact(2 * width)) {
            let pushed = self.words(pair, words, interner).map(|()| {
                let (old, new) = words.split_at(width);
                if old != new {
                    self.push(node, *row, old, -1, sink.chunk());
                    self.push(node, *row, new, 1, sink.chunk());
                }
            });
            if !self.goes_on(pushed.and_then(|()| sink.flush_if_full())) {
                return;
            }
        }
    }

    /// Emits the rows that were inserted or deleted, with their annotations.
    pub(super) fn emit_moved_directly(
        &mut self,
        node: usize,
        rows: &[RowId],
        sign: i64,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) {
        let (mut values, mut words) = (Vec::new(), Vec::new());
        for row in rows {
            values.clear();
            let overflowed = self.weight(node, *row, self.rows[node].multiplicity(*row), None, &mut values);
            let known = if overflowed { Err(overflow()) } else { self.words(&values, &mut words, interner) };
            let pushed = known.map(|()| self.push(node, *row, &words, sign, sink.chunk()));
            if !self.goes_on(pushed.and_then(|()| sink.flush_if_full())) {
                return;
            }
            self.total += i128::from(sign);
        }
    }

    /// The output words of annotations.
    #[inline]
    fn words(&self, values: &[Value], words: &mut Vec<Word>, interner: &mut Interner) -> Result<()> {
        words.clear();
        for (value, component) in values.iter().zip(self.shape.components.iter().cycle()) {
            words.push(component.word(*value, interner)?);
        }
        Ok(())
    }

    #[inline]
    fn push(&self, node: usize, row: RowId, annotation: &[Word], weight: i64, out: &mut Chunk) {
        let step = &self.programs[node].as_ref().expect("connex nodes have programs").steps[0];
        for (column, position) in &step.columns {
            out.columns[*column].push(self.rows[node].word(row, *position));
        }
        for (column, word) in out.columns[self.shape.outputs..].iter_mut().zip(annotation) {
            column.push(*word);
        }
        let nulls = step.nulls(self, row);
        if nulls != 0 || !out.nulls.is_empty() {
            out.nulls.resize(out.weights.len(), 0);
            out.nulls.push(nulls);
        }
        out.weights.push(weight);
    }

    /// Notes an error; false if there is one.
    fn goes_on(&mut self, result: Result<()>) -> bool {
        result.map_err(|error| self.failure = Some(error)).is_ok()
    }
}
