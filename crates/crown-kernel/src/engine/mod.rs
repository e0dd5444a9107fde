//! The engine: one cell of one plan. Tables of changes in, the net change of the view out.
//!
//! The law it rests on: every stage maps the net change of its sources to the net change of its
//! rows, so the stages run once per batch, in the plan's order. Everything about a batch is checked
//! before any stage is touched.
//!
//! - `build`: from a plan to sources, readers and stages
//! - `batch`: changes resolved, checked and netted per atom; `table_net`: netted before that, per
//!   table
//! - `apply`: a batch through the stages; `updates`: one change at a time
//! - `promise`: what set operations need of their inputs; `row_weights`: how often a stage has a
//!   row;
//!   `undefined`: rows that fail from the start
//! - `recursion`: the rounds of a recursive query
//! - `part`: as one of the engines of a view over several cells
//! - `results`: the views that a plan shows; `read`: their full results, counts, samples; `find`:
//!   rows by value or position; `order`: by position in an order
//! - `emit`: deltas on their way out; `snapshot`: saving and loading; `replay`: logged batches again
//! - `replan`: other stages and views over the same tables, while those that stay keep their state;
//!   `apart`: new stages built beside the running ones
//! - `stage`: one stage and its state; `stats`: figures

mod apart;
mod apply;
mod batch;
pub(crate) mod build;
mod emit;
mod find;
mod order;
mod part;
mod promise;
mod read;
mod recursion;
mod replan;
mod replay;
mod results;
mod row_weights;
mod snapshot;
mod stage;
mod stats;
mod table_net;
mod undefined;
mod updates;

pub use apart::Apart;
pub use batch::{Input, OnInvalid};
pub use emit::{Emit, PerView};
pub(crate) use part::{Steps, TableChanges};
pub use read::ResultCursor;
pub use replan::{TableRows, Watch};

use results::View;
use undefined::Waiting;

use crate::binding::Binder;
use crate::chunk::Chunk;
use crate::error::{KernelError, Result};
use crate::plan::Plan;
use crate::source::Source;
use crate::store::interner::Interner;
use crate::store::net::Net;
use crate::store::pool::ColumnPool;
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use stage::RunningStage;
use std::sync::{Arc, Weak};

/// A plan at work: the stages with their state, and the tables that feed them.
pub struct Engine {
    plan: Plan,
    sources: Vec<Source>,
    /// For each source the atoms that read it.
    readers: Vec<Vec<Reader>>,
    stages: Vec<RunningStage>,
    interner: Interner,
    deltas: bool,
    /// A log is being replayed: the changes of views are not wanted.
    quiet: bool,
    direct: Option<Direct>,
    /// Per stage and atom, what the running batch changes.
    nets: Vec<Vec<Net>>,
    /// The views of the plan, in its order.
    views: Vec<View>,
    /// Rows that a stage could not evaluate over empty tables.
    undefined: Vec<Waiting>,
    /// Stages for which rows wait in another cell of the view, so that rows may wait here too.
    tolerant: Vec<usize>,
    /// The input that stages with such rows received in this batch, instead of the original one.
    around: Vec<(usize, Chunk)>,
    rejected: Vec<Rejection>,
    counters: Counters,
    undoable: bool,
    /// Nothing is left of the last batch.
    settled: bool,
    applied: Option<Applied>,
    /// Rows of the last delta: the next one may well have as many.
    last_delta: usize,
    /// The memory of its columns.
    pool: ColumnPool,
    /// Orders in which pages are read.
    ordered: Vec<order::Ordered>,
    /// The stage and the order of the last page that was not.
    order_asked: Option<(usize, String)>,
    /// Applied batches, for stages that are built apart in the meantime.
    log: Weak<apart::Log>,
}

/// The tree whose rows are those of the view, if the plan has nothing else, except perhaps a
/// reordering of columns.
#[derive(Clone)]
struct Direct {
    tree: usize,
    /// The view's columns by their position in the tree's rows.
    projection: Option<Vec<usize>>,
    /// One update of a set without anti-joins only inserts or only deletes, and returns each row
    /// once.
    monotone: bool,
}

/// What the last batch did, while it can still be undone.
struct Applied {
    /// The net change of each stage; none after a direct run.
    outputs: Vec<Chunk>,
    before: Unshown,
    /// Of the time before it; set once it is done.
    mark: Option<batch::Mark>,
}

/// What no delta has shown yet.
#[derive(Clone, Default)]
struct Unshown {
    /// For each view, its rows before any change, and whether its first delta shows the whole
    /// result.
    views: Vec<(Option<Chunk>, bool)>,
    undefined: Vec<Waiting>,
}

/// One atom over a table.
pub(crate) struct Reader {
    pub stage: usize,
    pub atom: usize,
    /// The bit of the atom's route.
    pub route: u64,
    /// Whether the atom has all columns of the table, so that a row that it has is in all others
    /// that want it.
    pub complete: bool,
    pub binder: Binder,
}

impl Reader {
    /// Whether the atom alone shows if a row without NULLs is in the table.
    fn is_witness(&self) -> bool {
        self.complete && self.binder.takes_all()
    }
}

/// A change that was quarantined.
#[derive(Clone, Debug)]
pub struct Rejection {
    /// The table that it was meant for.
    pub table: String,
    /// Its position among the changes of its table in the call.
    pub position: u64,
    /// The stable error code.
    pub code: &'static str,
    /// Why it was quarantined.
    pub reason: String,
    /// Its row as JSON.
    pub row: String,
}

/// Counters of an engine since it was created.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Batches applied.
    pub batches: u64,
    /// Changes in these batches.
    pub changes: u64,
    /// Changes that were quarantined.
    pub rejects: u64,
}

impl Engine {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The strings and other values that words represent.
    pub fn interner(&self) -> &Interner {
        &self.interner
    }

    /// Quarantined changes since the last call: table, position, reason, row.
    pub fn take_rejected(&mut self) -> Result<RecordBatch> {
        let rejected = self.list_rejected();
        self.rejected.clear();
        rejected
    }

    /// The same, and leaves them where they are.
    pub fn list_rejected(&self) -> Result<RecordBatch> {
        let rejected = &self.rejected;
        let text = |get: fn(&Rejection) -> String| Arc::new(StringArray::from_iter_values(rejected.iter().map(get)));
        let positions = Int64Array::from_iter_values(rejected.iter().map(|rejection| rejection.position as i64));
        let columns: [(&str, ArrayRef); 4] = [
            ("table", text(|rejection| rejection.table.clone())),
            ("position", Arc::new(positions)),
            ("reason", text(|rejection| format!("[{}] {}", rejection.code, rejection.reason))),
            ("row", text(|rejection| rejection.row.clone())),
        ];
        RecordBatch::try_from_iter(columns).map_err(|error| {
            KernelError::state("CROWN-INTERNAL", format!("the list of rejected changes can't be built: {error}"))
        })
    }

    /// Keeps what is needed to `undo` the last batch.
    pub fn set_undoable(&mut self, undoable: bool) {
        self.undoable = undoable;
    }

    /// See `RunningStage::set_bounded`.
    fn set_bounded(&mut self, bounded: bool) {
        self.stages.iter_mut().for_each(|stage| stage.set_bounded(bounded));
    }

    /// The names of the tables that the plan reads.
    pub fn table_names(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().map(|source| source.name.as_str())
    }

    pub(crate) fn source_position(&self, table: &str) -> Option<usize> {
        self.sources.iter().position(|source| source.name == table)
    }

    /// The columns of a table, if the plan reads it.
    pub fn table_columns(&self, table: &str) -> Option<&[crate::arrow_in::InputColumn]> {
        self.source_position(table).map(|position| &*self.sources[position].columns)
    }
}
