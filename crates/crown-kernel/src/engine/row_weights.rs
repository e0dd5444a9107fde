//! Look-ups of single rows: how often a stage has a row.

use super::stage::{RunningStage, State};
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::Result;
use crate::mask::Bits;
use crate::stages::Lookup;
use crate::store::interner::Interner;
use crate::store::row_table::RowTable;

/// The weight of a row in stage `position`; `None` when the stage can't tell without enumerating.
pub(super) fn weight(
    stages: &[RunningStage],
    position: usize,
    words: &[Word],
    nulls: Nulls,
    interner: &mut Interner,
) -> Result<Option<i64>> {
    let stage = &stages[position];
    Ok(match &stage.state {
        State::Tree { tree, mode } => match mode {
            crate::plan::Mode::Ring => None,
            _ => Some(tree.multiplicity(words, nulls, interner)?),
        },
        State::Bag { .. } | State::Port => None,
        State::Aggregate(aggregate) => Some(aggregate.weight(words, nulls)),
        State::Distinct(distinct) => Some(distinct.weight(words, nulls)),
        State::Materialize(materialize) => Some(materialize.weight(words, nulls)),
        State::Top(top) => Some(top.weight(words, nulls, interner)),
        State::WindowFunctions(window) => Some(window.weight(words, nulls, interner)),
        State::Recursion(recursion) => Some(recursion.rows.weight(words, nulls)),
        State::SetOperation(operation) => {
            let left = weight(stages, stage.inputs[0], words, nulls, interner)?;
            let right = weight(stages, stage.inputs[1], words, nulls, interner)?;
            left.zip(right).map(|(left, right)| operation.combine(left, right)).transpose()?
        }
        State::Map(map) => {
            let Some(shown_at) = map.shown_at() else { return Ok(None) };
            let input: Vec<Word> = shown_at.iter().map(|column| words[*column]).collect();
            let input_nulls = nulls.gather(shown_at.iter().copied().zip(0..));
            // Only rows that the input has are evaluated: of others an expression may well fail.
            let found = weight(stages, stage.inputs[0], &input, input_nulls, interner)?;
            if found.is_none_or(|found| found == 0) {
                return Ok(found);
            }
            let (mut before, mut after) = (Chunk::new(input.len()), Chunk::new(words.len()));
            before.push(&input, input_nulls, 1);
            stage.map(map, &before, interner, &mut after)?;
            let mut row = Vec::new();
            let same = !after.is_empty() && after.read(0, &mut row) == nulls && row == words;
            found.filter(|_| same).or(Some(0))
        }
    })
}

/// The weights in one stage of the rows that a set operation will ask for: those that changed on
/// either side.
pub(super) struct Found {
    width: usize,
    rows: RowTable,
}

impl Found {
    pub fn new(stages: &[RunningStage], position: usize, changes: &[&Chunk], interner: &mut Interner) -> Result<Found> {
        let width = stages[position].columns.len();
        let mut rows = RowTable::new(width + 2, (0..=width).collect::<Vec<_>>());
        let mut row = Vec::new();
        for chunk in changes {
            for index in 0..chunk.len() {
                let nulls = chunk.read(index, &mut row);
                let found = weight(stages, position, &row, nulls, interner)?.ok_or_else(|| {
                    let message = format!("stage '{}' can't look up single rows", stages[position].id);
                    crate::error::KernelError::plan("CROWN-PLAN-MALFORMED", message)
                })?;
                row.extend([nulls, found as Word]);
                if rows.find(&row).is_none() {
                    rows.insert(&row);
                }
            }
        }
        Ok(Found { width, rows })
    }
}

impl Lookup for Found {
    fn weight(&self, words: &[Word], nulls: Nulls) -> i64 {
        let mut row = words.to_vec();
        row.push(nulls);
        self.rows.find(&row).map_or(0, |slot| self.rows.row(slot)[self.width + 1] as i64)
    }
}
