//! UNION, EXCEPT and INTERSECT by looking rows up, so that no branch is materialised.
//!
//! The law: a row of the result changes only if the row changes in an input. Its new weights are
//! looked up in the inputs, which have already applied their changes; its old weights are the new
//! ones minus the changes.
//!
//! The full result is read from the rows of the inputs, each of which must appear once, with its
//! total weight. `engine::promise` defines and checks which inputs guarantee that. Only UNION ALL
//! needs no guarantee: it adds up changes, and lists the rows of one input after those of the
//! other, so a row may appear twice. If a stage above needs each row once, UNION ALL looks rows up
//! as the others do (`gathers`).

use super::{Columns, Lookup, WeightedRows};
use crate::chunk::Chunk;
use crate::error::{KernelError, Result};
use crate::plan::{self, SetOperator};
use crate::store::interner::Interner;
use crate::store::net::{net_chunks, too_many_copies};
use crate::types::DataType;

pub struct SetOperation {
    operator: SetOperator,
    all: bool,
    columns: Columns,
    gathers: bool,
}

impl SetOperation {
    /// `left` and `right` are the inputs' columns: the same types, named as on the left.
    pub fn new(
        stage: &plan::SetOperationStage,
        left: &[(String, DataType)],
        right: &[(String, DataType)],
    ) -> Result<SetOperation> {
        if !left.iter().map(|(_, kind)| kind).eq(right.iter().map(|(_, kind)| kind)) {
            let message = format!("the inputs of the set operation '{}' have different column types", stage.id);
            return Err(KernelError::plan("CROWN-PLAN-MALFORMED", message));
        }
        Ok(SetOperation { operator: stage.operator, all: stage.all, columns: left.to_vec(), gathers: false })
    }

    pub fn columns(&self) -> &[(String, DataType)] {
        &self.columns
    }

    /// Whether the right input alone can give rows.
    pub fn reads_right(&self) -> bool {
        self.operator == SetOperator::Union
    }

    /// Whether changes add up: of UNION ALL they do; all others look rows up in their inputs.
    pub fn is_linear(&self) -> bool {
        self.operator == SetOperator::Union && self.all
    }

    /// Makes `read` give each row once.
    pub fn gather(&mut self) {
        self.gathers = true;
    }

    /// Whether `read` looks rows up.
    pub fn gathers(&self) -> bool {
        self.gathers || !self.is_linear()
    }

    /// The result's weight of a row that the inputs have `left` and `right` times, neither less
    /// than 0.
    pub fn combine(&self, left: i64, right: i64) -> Result<i64> {
        Ok(match (self.operator, self.all) {
            (SetOperator::Union, true) => left.checked_add(right).ok_or_else(too_many_copies)?,
            (SetOperator::Union, false) => i64::from(left > 0 || right > 0),
            (SetOperator::Except, true) => (left - right).max(0),
            (SetOperator::Except, false) => i64::from(left > 0 && right == 0),
            (SetOperator::Intersect, true) => left.min(right),
            (SetOperator::Intersect, false) => i64::from(left > 0 && right > 0),
        })
    }

    /// `changes` are the net changes of the two inputs, `inputs` the inputs after them.
    pub fn apply(
        &self,
        changes: [&Chunk; 2],
        inputs: [&dyn Lookup; 2],
        interner: &mut Interner,
        out: &mut Chunk,
    ) -> Result<()> {
        let width = self.columns.len();
        if self.is_linear() {
            out.append(&net_chunks(&[changes[0].clone(), changes[1].clone()], width)?);
            return Ok(());
        }
        let mut words = Vec::new();
        let mut right_changes = WeightedRows::new(self.columns.iter().map(|(_, kind)| *kind));
        right_changes.add_all(changes[1], interner, |_, _, _, _| {})?;
        let mut emit = |words: &[_], nulls, delta: [i64; 2]| {
            let [left, right] = inputs.map(|input| input.weight(words, nulls));
            let weight = self.combine(left, right)? - self.combine(left - delta[0], right - delta[1])?;
            if weight != 0 {
                out.push(words, nulls, weight);
            }
            Ok(())
        };
        for index in 0..changes[0].len() {
            let nulls = changes[0].read(index, &mut words);
            let right = right_changes.weight(&words, nulls);
            right_changes.add(&words, nulls, -right, interner);
            emit(&words, nulls, [changes[0].weights[index], right])?;
        }
        let mut rest = Chunk::new(width);
        right_changes.read(0, usize::MAX, |weight| weight, &mut rest);
        for index in 0..rest.len() {
            let nulls = rest.read(index, &mut words);
            emit(&words, nulls, [0, rest.weights[index]])?;
            right_changes.add(&words, nulls, -rest.weights[index], interner);
        }
        Ok(())
    }

    /// The result from the rows of its inputs: of rows of input `side` (0 or 1), those that the
    /// result shows, with their weight. `other` is the other input; it is read only if `gathers`.
    /// Calling it with all rows of side 0, then of side 1, gives the whole result.
    pub fn read(&self, side: usize, rows: &Chunk, other: &dyn Lookup, out: &mut Chunk) -> Result<()> {
        if !self.gathers() {
            out.append(rows);
            return Ok(());
        }
        let mut words = Vec::new();
        for index in 0..rows.len() {
            let nulls = rows.read(index, &mut words);
            let (own, elsewhere) = (rows.weights[index], other.weight(&words, nulls));
            let weight = match side {
                0 => self.combine(own, elsewhere)?,
                // What the left input has was shown with its rows.
                _ if self.reads_right() && elsewhere == 0 => self.combine(0, own)?,
                _ => 0,
            };
            if weight != 0 {
                out.push(&words, nulls, weight);
            }
        }
        Ok(())
    }
}
