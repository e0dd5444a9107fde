//! One change at a time over several cells: a delta for every update.

use super::apply::{broken, merge_inputs, plain, rows, table, First, Routed};
use super::undefined::{share_tolerance, shown, undefined};
use super::{Cells, Spread};
use crate::arrow_out::UPDATE;
use crate::engine::{Engine, Input, OnInvalid, Steps};
use crate::error::{KernelError, Result};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::compute::concat_batches;
use std::sync::Arc;

/// What one change does, in the order of the call.
struct Update {
    position: u64,
    table: String,
    rows: RecordBatch,
    /// Its position, if this is an original change.
    first: Option<First>,
}

impl Cells {
    pub(super) fn apply_updates(&mut self, inputs: Vec<Input>, on_invalid: OnInvalid) -> Result<Vec<RecordBatch>> {
        if self.views.len() != 1 {
            let message = "a delta for every update is shown of one view only";
            return Err(KernelError::invalid("CROWN-ARGUMENT", message));
        }
        let updates = self.resolve_updates(inputs, on_invalid)?;
        let mut steps: Vec<Steps> = self.engines.iter_mut().map(Engine::steps).collect();
        let merge = self.spread.as_deref_mut().and_then(|spread| spread.merge.as_mut());
        let mut merge_steps = merge.map(Engine::steps);
        let started = self.spread.as_ref().is_some_and(|spread| spread.started);
        let result = updates.into_iter().try_fold(Vec::new(), |mut deltas, update| {
            deltas.extend(self.run_update(update, &mut steps, &mut merge_steps)?);
            Ok(deltas)
        });
        let keep = result.is_ok();
        for (engine, steps) in self.engines.iter_mut().zip(steps) {
            engine.end_steps(steps, keep).map_err(broken)?;
        }
        if let Some(Spread { front, merge, started: now, .. }) = self.spread.as_deref_mut() {
            if let (Some(merge), Some(steps)) = (merge, merge_steps) {
                merge.end_steps(steps, keep).map_err(broken)?;
            }
            if let Some(front) = front {
                if keep {
                    front.settle();
                } else {
                    front.undo().map_err(broken)?;
                }
            }
            if !keep {
                *now = started;
            }
        }
        self.withhold();
        let deltas = result?;
        let schema = self.delta_schema(0, true);
        concat_batches(&schema, &deltas).map(|batch| vec![batch]).map_err(|error| {
            KernelError::plan("CROWN-PLAN-MALFORMED", format!("the result does not match its schema: {error}"))
        })
    }

    /// The updates in order; those of tables in front after keys, windows and faults.
    fn resolve_updates(&mut self, inputs: Vec<Input>, on_invalid: OnInvalid) -> Result<Vec<Update>> {
        let Some(Spread { front, .. }) = self.spread.as_deref_mut() else { return Ok(Vec::new()) };
        let (mut first, mut bases, mut updates, mut base) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for input in inputs {
            let length = rows(&input);
            if front.as_ref().is_some_and(|front| front.source_position(table(&input)).is_some()) {
                first.push(input);
                bases.push(base);
            } else {
                let Routed { table, batches, .. } = plain(input, &self.engines[0], base)?;
                let rows = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| batch.slice(row, 1)));
                updates.extend((0..).zip(rows).map(|(row, rows)| {
                    let (position, table) = (base + row, table.clone());
                    Update { position, table, rows, first: Some(First { position, row }) }
                }));
            }
            base += length;
        }
        if let Some(front) = front {
            for (changes, base) in front.apply_table_updates(first, on_invalid)?.into_iter().zip(bases) {
                let mut from = 0;
                for group in changes.causes.chunk_by(|left, right| left == right) {
                    let (position, table) = (base + group[0], changes.table.clone());
                    let rows = changes.rows.slice(from, group.len());
                    updates.push(Update { position, table, rows, first: None });
                    from += group.len();
                }
            }
        }
        updates.sort_by_key(|update| update.position);
        Ok(updates)
    }

    fn run_update(
        &mut self,
        update: Update,
        steps: &mut [Steps],
        merge_steps: &mut Option<Steps>,
    ) -> Result<Vec<RecordBatch>> {
        let Update { position, table, rows, first } = update;
        let Some(spread) = self.spread.as_deref_mut() else { return Ok(Vec::new()) };
        let routed = [Routed { table: table.clone(), batches: vec![rows], first }];
        let mut shares: Vec<Vec<Input>> = self.engines.iter().map(|_| Vec::new()).collect();
        for (cell, batches) in spread.router.route(&table, &routed[0].batches)? {
            shares[cell as usize].push(Input::Arrow { table: table.clone(), batches });
        }
        let before = undefined(&self.engines);
        share_tolerance(&mut self.engines);
        let mut deltas = Vec::new();
        for (cell, (share, engine)) in shares.into_iter().zip(&mut self.engines).enumerate() {
            if !share.is_empty() || !spread.started {
                if let Err(error) = engine.step(share, &mut steps[cell], &mut deltas) {
                    return Err(spread.original(&routed, cell, error)?);
                }
            }
        }
        spread.started = true;
        spread.withhold(&self.engines);
        if let (Some(merge), Some(steps)) = (&mut spread.merge, merge_steps) {
            let mut merged = Vec::new();
            merge.step(merge_inputs("", deltas), steps, &mut merged)?;
            deltas = merged;
        } else {
            deltas = shown(&mut self.engines, 0, &before, deltas)?;
        }
        let schema = self.delta_schema(0, true);
        deltas.into_iter().map(|delta| numbered(&delta, position, &schema)).collect()
    }
}

fn numbered(delta: &RecordBatch, update: u64, schema: &arrow::datatypes::SchemaRef) -> Result<RecordBatch> {
    debug_assert_eq!(schema.fields().last().map(|field| field.name().as_str()), Some(UPDATE));
    let mut columns: Vec<ArrayRef> = delta.columns().to_vec();
    columns.push(Arc::new(Int64Array::from_value(update as i64, delta.num_rows())));
    RecordBatch::try_new(schema.clone(), columns).map_err(|error| {
        KernelError::plan("CROWN-PLAN-MALFORMED", format!("the result does not match its schema: {error}"))
    })
}
