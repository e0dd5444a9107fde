//! UNION, EXCEPT and INTERSECT by looking rows up, so that no branch is materialised.
//!
//! The law: a row of the result changes only if the row changes in an input. Its new weights are looked up in the
//! inputs, which have already applied their changes; its old weights are the new ones minus the changes.

use super::{Columns, Lookup, WeightedRows};
use crate::chunk::Chunk;
use crate::error::{KernelError, Result};
use crate::plan::{self, SetOperator};
use crate::store::interner::Interner;
use crate::store::net::net_chunks;
use crate::types::DataType;

pub struct SetOperation {
    operator: SetOperator,
    all: bool,
    columns: Columns,
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
            return Err(KernelError::plan("CROWN-PLAN-SET-OPERATION", message));
        }
        Ok(SetOperation { operator: stage.operator, all: stage.all, columns: left.to_vec() })
    }

    pub fn columns(&self) -> &[(String, DataType)] {
        &self.columns
    }

    /// Whether the right input alone can give rows.
    pub fn reads_right(&self) -> bool {
        self.operator == SetOperator::Union
    }

    /// Whether the stage looks rows up in its inputs; UNION ALL does not.
    pub fn needs_lookup(&self) -> bool {
        !(self.operator == SetOperator::Union && self.all)
    }

    /// The result's weight of a row that the inputs have `left` and `right` times.
    pub fn combine(&self, left: i64, right: i64) -> i64 {
        match (self.operator, self.all) {
            (SetOperator::Union, true) => left + right,
            (SetOperator::Union, false) => i64::from(left + right > 0),
            (SetOperator::Except, true) => (left - right).max(0),
            (SetOperator::Except, false) => i64::from(left > 0 && right == 0),
            (SetOperator::Intersect, true) => left.min(right),
            (SetOperator::Intersect, false) => i64::from(left > 0 && right > 0),
        }
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
        if !self.needs_lookup() {
            let sum = net_chunks(&[changes[0].clone(), changes[1].clone()], width);
            let mut words = Vec::new();
            for index in 0..sum.len() {
                let nulls = sum.read(index, &mut words);
                out.push(&words, nulls, sum.weights[index]);
            }
            return Ok(());
        }
        let mut words = Vec::new();
        let mut right_changes = WeightedRows::new(self.columns.iter().map(|(_, kind)| *kind));
        for index in 0..changes[1].len() {
            let nulls = changes[1].read(index, &mut words);
            right_changes.add(&words, nulls, changes[1].weights[index], interner);
        }
        let mut emit = |words: &[_], nulls, delta: [i64; 2]| {
            let [left, right] = inputs.map(|input| input.weight(words, nulls));
            let weight = self.combine(left, right) - self.combine(left - delta[0], right - delta[1]);
            if weight != 0 {
                out.push(words, nulls, weight);
            }
        };
        for index in 0..changes[0].len() {
            let nulls = changes[0].read(index, &mut words);
            let right = right_changes.weight(&words, nulls);
            right_changes.add(&words, nulls, -right, interner);
            emit(&words, nulls, [changes[0].weights[index], right]);
        }
        let mut rest = Chunk::new(width);
        right_changes.read(0, usize::MAX, |weight| weight, &mut rest);
        for index in 0..rest.len() {
            let nulls = rest.read(index, &mut words);
            emit(&words, nulls, [0, rest.weights[index]]);
            right_changes.add(&words, nulls, -rest.weights[index], interner);
        }
        Ok(())
    }

    /// The result from its inputs' distinct rows: of all rows of input `side` (0 or 1), those that the result shows,
    /// with their weight. Calling it with all rows of side 0, then of side 1, gives each row of the result once
    /// (for UNION ALL, whose inputs need not know their rows, in up to two parts).
    pub fn read(&self, side: usize, rows: &Chunk, inputs: [&dyn Lookup; 2], out: &mut Chunk) {
        let mut words = Vec::new();
        for index in 0..rows.len() {
            let nulls = rows.read(index, &mut words);
            let own = rows.weights[index];
            let weight = if !self.needs_lookup() {
                own
            } else if side == 0 {
                self.combine(own, inputs[1].weight(&words, nulls))
            } else if self.operator == SetOperator::Union && inputs[0].weight(&words, nulls) == 0 {
                self.combine(0, own)
            } else {
                0
            };
            if weight != 0 {
                out.push(&words, nulls, weight);
            }
        }
    }
}
