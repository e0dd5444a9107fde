//! Results by some of their values, and by their position, without enumerating all.
//!
//! Rows of a node are found by all their values, and the rows of an edge's entry by its key. From
//! live rows of any connex node the walk of a delta leads to all results that contain them: so
//! values that fix a node's row, or its key, are enough to find the results that have them, and
//! nothing else is visited.

use super::enumerate::{Emission, Walk};
use super::id::RowId;
use super::Tree;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::Result;
use crate::mask::{self, Bits};
use crate::plan::Mode;
use crate::store::hash::hash_words;
use crate::store::interner::Interner;

/// An output column and its value; `None` is NULL.
pub type Fixed = (usize, Option<Word>);

impl Tree {
    /// Appends the results that have these values, perhaps with others that only differ in columns
    /// that no key has; false when no key is fixed by them, and nothing was done.
    pub fn lookup(&self, fixed: &[Fixed], interner: &mut Interner, out: &mut Chunk) -> Result<bool> {
        if self.shape.always {
            return Ok(false);
        }
        let Some((node, rows)) = self.fixed_rows(fixed) else { return Ok(false) };
        let program = self.programs[node].as_ref().expect("`fixed_rows` has seen to it");
        let plain = self.shape.mode == Mode::Set || (self.shape.mode == Mode::Bag && self.is_plain());
        let emission = Emission { sign: 1, values: None, pairs: false, plain, totals: None };
        let mut walk = Walk::default();
        while !walk.run(self, program, &rows, &emission, interner, out, 65536)? {}
        Ok(true)
    }

    /// A connex node with its live rows that can have these values, the fewest that a key finds.
    fn fixed_rows(&self, fixed: &[Fixed]) -> Option<(usize, Vec<RowId>)> {
        let mut best: Option<(usize, Vec<RowId>)> = None;
        for node in (0..self.shape.nodes.len()).filter(|node| self.programs[*node].is_some()) {
            let values: Vec<Option<Option<Word>>> = self.projections[node]
                .iter()
                .map(|column| fixed.iter().find(|(other, _)| other == column).map(|(_, value)| *value))
                .collect();
            let Some(found) = self.found_rows(node, &values) else { continue };
            if found.len() <= 1 {
                return Some((node, found));
            }
            if best.as_ref().is_none_or(|(_, rows)| found.len() < rows.len()) {
                best = Some((node, found));
            }
        }
        best
    }

    fn found_rows(&self, node: usize, values: &[Option<Option<Word>>]) -> Option<Vec<RowId>> {
        let shape = &self.shape.nodes[node];
        let whole = !values.is_empty() && values.iter().all(Option::is_some) && !shape.optional;
        let key = &shape.key.child_columns;
        let keyed = shape.parent.is_some() && !key.is_empty() && key.iter().all(|column| values[*column].is_some());
        if !whole && !keyed {
            return None;
        }
        let (words, nulls) = row_of(values);
        if !nulls.within(shape.nullable) {
            return Some(Vec::new());
        }
        let mut row = words;
        if shape.nullable != 0 {
            row.push(nulls);
        }
        if whole {
            let found = self.find(node, &row).filter(|row| self.rows[node].missing(*row) == 0);
            return Some(found.filter(|row| self.has_live_parent(node, *row)).into_iter().collect());
        }
        let mut words = Vec::new();
        shape.key.read(key, &row, &mut words);
        let Some(entry) = self.edges[node].find(hash_words(words.iter().copied()), &words) else {
            return Some(Vec::new());
        };
        let state = self.edges[node].entry(entry);
        if state.live == 0 {
            return Some(Vec::new());
        }
        let below = (0..state.children.len).map(|position| self.children[node].get(&state.children, position));
        Some(below.filter(|row| self.has_values(node, *row, values)).collect())
    }

    fn has_values(&self, node: usize, row: RowId, values: &[Option<Option<Word>>]) -> bool {
        let (rows, shape) = (&self.rows[node], &self.shape.nodes[node]);
        let nulls = if shape.nullable == 0 { 0 } else { rows.word(row, shape.variables.len()) };
        values.iter().enumerate().all(|(position, value)| match value {
            None => true,
            Some(None) => nulls.has(position),
            Some(Some(word)) => !nulls.has(position) && rows.word(row, position) == *word,
        })
    }
}

/// Words and NULL mask of a row; 0 where there is no value.
fn row_of(values: &[Option<Option<Word>>]) -> (Vec<Word>, Nulls) {
    let words = values.iter().map(|value| value.flatten().unwrap_or(0)).collect();
    let nulls = values.iter().enumerate().filter(|(_, value)| **value == Some(None));
    (words, mask::of(nulls.map(|(position, _)| position)))
}
