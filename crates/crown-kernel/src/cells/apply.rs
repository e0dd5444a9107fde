//! Applies a batch to all cells of a view; if one cell rejects it, the others undo it.

use super::undefined::{share_tolerance, shown, undefined};
use super::{Cells, Home, Spread, MERGED};
use crate::arrow_in::Changes;
use crate::arrow_out::Output;
use crate::engine::{Emit, Engine, Input, OnInvalid, PerView, TableChanges};
use crate::error::{KernelError, RefusedChange, Result};
use crate::store::interner::Interner;
use crate::store::pool::ColumnPool;
use arrow::array::RecordBatch;
use std::panic::resume_unwind;

/// Changes on their way to the cells.
pub(super) struct Routed {
    pub table: String,
    pub batches: Vec<RecordBatch>,
    /// The position of the first one, if these are the original changes.
    pub first: Option<First>,
}

#[derive(Clone, Copy)]
pub(super) struct First {
    /// Among all changes of the call.
    pub position: u64,
    /// Among those of its table.
    pub row: u64,
}

/// Batches of fewer changes than this are not worth a thread for each cell.
const WORTH_THREADS: usize = 64;

impl Cells {
    /// Applies tables of changes in order and emits the net change of the view; as `Engine::apply`.
    pub fn apply(
        &mut self,
        inputs: Vec<Input>,
        per_update: bool,
        on_invalid: OnInvalid,
        emit: &mut dyn Emit,
    ) -> Result<()> {
        if self.spread.is_none() {
            return self.engines[0].apply(inputs, per_update, on_invalid, emit);
        }
        let changes = inputs.iter().map(rows).sum();
        let deltas = if per_update {
            self.apply_updates(inputs, on_invalid).map(|delta| vec![delta])
        } else {
            let deltas = self.resolve(inputs, on_invalid).and_then(|routed| self.run(&routed));
            self.finish(deltas)
        }?;
        self.count_batch(changes);
        show(deltas, emit)
    }

    /// Moves the clock of a table's time window forward and emits the net change of the view.
    pub fn advance(&mut self, table: &str, watermark: i64, emit: &mut dyn Emit) -> Result<()> {
        let Some(spread) = &mut self.spread else { return self.engines[0].advance(table, watermark, emit) };
        let Some(front) = &mut spread.front else {
            let message = format!("table '{table}' has no time window to advance");
            return Err(KernelError::invalid("CROWN-CHANGE-WINDOW", message));
        };
        let leaving = front.advance_tables(table, watermark);
        let routed = leaving.map(|changes| changes.into_iter().map(resolved).collect::<Vec<_>>());
        let delta = routed.and_then(|routed| self.run(&routed));
        let delta = self.finish(delta)?;
        self.count_batch(0);
        show(delta, emit)
    }

    fn count_batch(&mut self, changes: u64) {
        if let Some(spread) = &mut self.spread {
            spread.batches += 1;
            spread.changes += changes;
        }
    }

    /// Makes the batch final, or undoes it everywhere.
    fn finish<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_ok() {
            self.parts_mut().for_each(Engine::settle);
            if let Some(spread) = &mut self.spread {
                spread.started = true;
            }
            return result;
        }
        for engine in self.parts_mut() {
            engine.undo().map_err(broken)?;
        }
        self.withhold();
        result
    }

    /// Resolves the changes in the engine in front; tables that it does not handle pass unchanged.
    fn resolve(&mut self, inputs: Vec<Input>, on_invalid: OnInvalid) -> Result<Vec<Routed>> {
        let Some(Spread { front, .. }) = self.spread.as_deref_mut() else { return Ok(Vec::new()) };
        let (mut first, mut routed, mut base) = (Vec::new(), Vec::new(), 0);
        for input in inputs {
            let length = rows(&input);
            if front.as_ref().is_some_and(|front| front.source_position(table(&input)).is_some()) {
                first.push(input);
            } else {
                routed.push(plain(input, &self.engines[0], base)?);
            }
            base += length;
        }
        if let Some(front) = front {
            routed.extend(front.apply_tables(first, on_invalid)?.into_iter().map(resolved));
        }
        Ok(routed)
    }

    /// Sends the changes to the cells and merges what they give; the delta of each view.
    fn run(&mut self, routed: &[Routed]) -> Result<Vec<Vec<RecordBatch>>> {
        let Some(spread) = self.spread.as_deref_mut() else { return Ok(Vec::new()) };
        let mut shares: Vec<Vec<Input>> = self.engines.iter().map(|_| Vec::new()).collect();
        for Routed { table, batches, .. } in routed {
            if !spread.router.reads(table) {
                continue;
            }
            for (cell, batches) in spread.router.route(table, batches)? {
                shares[cell as usize].push(Input::Arrow { table: table.clone(), batches });
            }
        }
        let before = undefined(&self.engines);
        share_tolerance(&mut self.engines);
        let everyone = !spread.started;
        let busy = shares.into_iter().zip(&mut self.engines).enumerate();
        let busy: Vec<_> = busy.filter(|(_, (share, _))| everyone || !share.is_empty()).collect();
        let names: Vec<String> = busy.first().map_or(Vec::new(), |(_, (_, engine))| names(engine));
        let mut deltas: Vec<Vec<RecordBatch>> = names.iter().map(|_| Vec::new()).collect();
        let mut failures = Vec::new();
        for (cell, done) in run_cells(busy) {
            match done {
                Ok(of_cell) => deltas.iter_mut().zip(of_cell).for_each(|(all, mut delta)| all.append(&mut delta)),
                Err(error) => failures.push(spread.original(routed, cell, error)?),
            }
        }
        // The change that one engine would have refused first.
        let place = |error: &KernelError| error.change.as_ref().map_or(u64::MAX, |change| change.position);
        if let Some(error) = failures.into_iter().min_by_key(place) {
            return Err(error);
        }
        spread.withhold(&self.engines);
        let mut merged = spread.merged(&names, &deltas, routed)?;
        let engines = &mut self.engines;
        let shown = self.views.iter().map(|(_, home)| match home {
            Home::Cells(number) => {
                let delta = deltas.get(*number).cloned().unwrap_or_default();
                shown(engines, *number, &before, delta)
            }
            Home::Merge(number) => Ok(merged.get_mut(*number).map(std::mem::take).unwrap_or_default()),
        });
        shown.collect()
    }
}

fn names(engine: &Engine) -> Vec<String> {
    engine.view_names().map(String::from).collect()
}

impl Spread {
    /// The merge's deltas from those of the cells, and from the changes of tables that it reads
    /// itself.
    fn merged(
        &mut self,
        names: &[String],
        deltas: &[Vec<RecordBatch>],
        routed: &[Routed],
    ) -> Result<Vec<Vec<RecordBatch>>> {
        let Some(merge) = &mut self.merge else { return Ok(Vec::new()) };
        let mut inputs = Vec::new();
        for (name, delta) in names.iter().zip(deltas) {
            if merge.source_position(&merged_table(name)).is_some() {
                inputs.extend(merge_inputs(name, delta.clone()));
            }
        }
        for Routed { table, batches, .. } in
            routed.iter().filter(|routed| merge.source_position(&routed.table).is_some())
        {
            inputs.push(Input::Arrow { table: table.clone(), batches: batches.clone() });
        }
        let mut shown = PerView::default();
        merge.apply(inputs, false, OnInvalid::Raise, &mut shown)?;
        Ok(shown.views)
    }

    /// A cell's error, saying which of the caller's changes it was.
    pub(super) fn original(&mut self, routed: &[Routed], cell: usize, error: KernelError) -> Result<KernelError> {
        let Some(change) = error.change.as_deref() else { return Ok(error) };
        let mut before = 0;
        for Routed { table, batches, first } in routed {
            if !self.router.reads(table) {
                continue;
            }
            let rows = self.router.rows_of(table, batches, cell)?;
            let own = change.position.checked_sub(before).and_then(|position| rows.get(position as usize));
            if let (Some(row), Some(first)) = (own, first) {
                let (table, reason) = (change.table.clone(), change.reason.clone());
                let change = RefusedChange { table, row: first.row + row, position: first.position + row, reason };
                return Ok(KernelError::refused(error.code, change));
            }
            before += rows.len() as u64;
        }
        Ok(error)
    }
}

/// The table by which the merge reads a view of the cells.
pub(super) fn merged_table(view: &str) -> String {
    if view.is_empty() {
        MERGED.into()
    } else {
        format!("{MERGED}:{view}")
    }
}

pub(super) fn merge_inputs(view: &str, deltas: Vec<RecordBatch>) -> Vec<Input> {
    let deltas: Vec<RecordBatch> = deltas.into_iter().filter(|batch| batch.num_rows() > 0).collect();
    let input = |batches| Input::Arrow { table: merged_table(view), batches };
    (!deltas.is_empty()).then(|| input(deltas)).into_iter().collect()
}

type Share<'a> = (usize, (Vec<Input>, &'a mut Engine));

/// Each cell's delta or failure; each runs on a separate thread if the batch is large enough.
fn run_cells(busy: Vec<Share>) -> Vec<(usize, Result<Vec<Vec<RecordBatch>>>)> {
    let apply = |(cell, (share, engine)): Share| {
        let mut deltas = PerView::default();
        let done = engine.apply(share, false, OnInvalid::Raise, &mut deltas);
        (cell, done.map(|()| deltas.views))
    };
    let changes: u64 = busy.iter().flat_map(|(_, (share, _))| share.iter().map(rows)).sum();
    if busy.len() < 2 || changes < WORTH_THREADS as u64 {
        return busy.into_iter().map(apply).collect();
    }
    std::thread::scope(|scope| {
        let runs: Vec<_> = busy.into_iter().map(|share| scope.spawn(move || apply(share))).collect();
        runs.into_iter().map(|run| run.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

fn show(deltas: Vec<Vec<RecordBatch>>, emit: &mut dyn Emit) -> Result<()> {
    // (The batch is final; the only possible failure is a reader that is gone.)
    emit.validated()?;
    for (view, delta) in deltas.into_iter().enumerate() {
        emit.view(view);
        delta.into_iter().filter(|batch| batch.num_rows() > 0).try_for_each(|batch| emit.emit(batch))?;
    }
    Ok(())
}

/// A part that can't undo a batch: the parts no longer agree.
pub(super) fn broken(error: KernelError) -> KernelError {
    KernelError::state("CROWN-STATE-BROKEN", format!("a failed batch could not be rolled back: {}", error.message))
}

pub(super) fn table(input: &Input) -> &str {
    let (Input::Arrow { table, .. } | Input::Words { table, .. }) = input;
    table
}

pub(super) fn rows(input: &Input) -> u64 {
    match input {
        Input::Arrow { batches, .. } => batches.iter().map(|batch| batch.num_rows() as u64).sum(),
        Input::Words { changes, .. } => changes.len() as u64,
    }
}

fn resolved(changes: TableChanges) -> Routed {
    Routed { table: changes.table, batches: vec![changes.rows], first: None }
}

pub(super) fn plain(input: Input, cell: &Engine, position: u64) -> Result<Routed> {
    let first = Some(First { position, row: 0 });
    match input {
        Input::Arrow { table, batches } => Ok(Routed { table, batches, first }),
        Input::Words { table, changes, values } => {
            let batch = arrow(cell, &table, changes, &values)?;
            Ok(Routed { table, batches: vec![batch], first })
        }
    }
}

/// Changes that came as words, for the router.
fn arrow(cell: &Engine, table: &str, changes: Changes, values: &Interner) -> Result<RecordBatch> {
    let columns = cell.table_columns(table).ok_or_else(|| {
        KernelError::invalid("CROWN-CHANGE-TABLE", format!("the view does not read a table '{table}'"))
    })?;
    let columns = columns.iter().map(|column| (column.name.as_str(), column.data_type, true));
    let output = Output::new(columns, true, true, false, ColumnPool::default());
    let Changes { mut rows, .. } = changes;
    output.batch(&mut rows, Vec::new(), values)
}
