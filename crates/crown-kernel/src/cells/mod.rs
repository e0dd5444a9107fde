//! A view over one engine, or over one per HyperCube cell; both behave the same.
//!
//! Where there are several cells, an engine in front resolves the tables that need all their rows in one place (primary
//! keys, windows, faulty changes that are set aside), a router sends each change to the cells that need it, and where
//! the cells' outputs are not disjoint a last engine merges them. A batch is final once every part has taken
//! it; when one refuses, all others take it back.
//!
//! - `apply`: a batch through all parts; `updates`: one change at a time; `read`: the result

mod apply;
mod read;
mod updates;

pub use read::CellsCursor;

use crate::arrow_in::InputColumn;
use crate::engine::Engine;
use crate::error::{KernelError, Result};
use crate::plan::Plan;
use crate::router::Router;
use crate::types::DataType;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde_json::{json, Value};

/// The only table of the plan that merges the cells' outputs.
pub const MERGED: &str = "cells";

/// A view over one engine, or over several that each hold a cell of it.
pub struct Cells {
    engines: Vec<Engine>,
    spread: Option<Box<Spread>>,
}

/// What several cells have around them.
struct Spread {
    front: Option<Engine>,
    router: Router,
    merge: Option<Engine>,
    /// Every cell has taken part in a batch, so that its output shows the rows that it had from the start.
    started: bool,
    batches: u64,
    changes: u64,
}

/// The plans of a view over several cells.
pub struct SpreadPlans {
    /// The plan of each cell.
    pub cell: Plan,
    /// The number of cells.
    pub cells: usize,
    /// The plan that resolves keys and windows in front of the router, where there are any.
    pub front: Option<Plan>,
    /// The plan that merges the deltas of the cells, where they are not disjoint.
    pub merge: Option<Plan>,
    /// Whether the view shows its deltas.
    pub deltas: bool,
}

/// The saved parts of a view by name.
pub type Parts = Vec<(String, Vec<Vec<u8>>)>;

/// Returns the chunks of a saved part by its name.
pub type Saved<'a> = dyn Fn(&str) -> Result<Vec<&'a [u8]>> + 'a;

impl Cells {
    /// A view over one engine.
    pub fn one(engine: Engine) -> Cells {
        Cells { engines: vec![engine], spread: None }
    }

    /// Empty, or as it was saved.
    pub fn many(plans: SpreadPlans, saved: Option<&Saved>) -> Result<Cells> {
        let SpreadPlans { cell, cells, front, merge, deltas } = plans;
        let open = |name: &str, plan: Plan, deltas: bool| {
            let mut engine = match saved {
                Some(saved) => Engine::load(plan, &saved(name)?, deltas)?,
                None => Engine::new(plan, deltas)?,
            };
            engine.set_undoable(true);
            Ok::<Engine, KernelError>(engine)
        };
        let router = Router::new(&cell)?;
        // Cells whose outputs are merged must give them, whether or not the view shows its deltas.
        let inner = deltas || merge.is_some();
        let engine = |number: usize| open(&cell_name(number), cell.clone(), inner);
        let engines = (0..cells).map(engine).collect::<Result<Vec<Engine>>>()?;
        let mut front = front.map(|plan| open("tables", plan, true)).transpose()?;
        if let Some(front) = &mut front {
            front.check_for(&cell)?;
        }
        let merge = merge.map(|plan| open("merge", plan, deltas)).transpose()?;
        let spread = Spread { front, router, merge, started: saved.is_some(), batches: 0, changes: 0 };
        Ok(Cells { engines, spread: Some(Box::new(spread)) })
    }

    fn parts(&self) -> impl Iterator<Item = (String, &Engine)> {
        let front = self.spread.as_deref().and_then(|spread| spread.front.as_ref());
        let merge = self.spread.as_deref().and_then(|spread| spread.merge.as_ref());
        let engines = self.engines.iter().enumerate().map(|(number, engine)| (cell_name(number), engine));
        let named = |name: &str, engine| (name.to_string(), engine);
        front.map(|engine| named("tables", engine)).into_iter().chain(engines).chain(merge.map(|e| named("merge", e)))
    }

    fn parts_mut(&mut self) -> impl Iterator<Item = &mut Engine> {
        let (front, merge) = match self.spread.as_deref_mut() {
            Some(spread) => (spread.front.as_mut(), spread.merge.as_mut()),
            None => (None, None),
        };
        front.into_iter().chain(&mut self.engines).chain(merge)
    }

    /// The engines that together hold the result.
    fn ends(&mut self) -> &mut [Engine] {
        match self.spread.as_deref_mut() {
            Some(Spread { merge: Some(merge), .. }) => std::slice::from_mut(merge),
            _ => &mut self.engines,
        }
    }

    fn known_count(&self) -> Option<i128> {
        match self.spread.as_deref() {
            Some(Spread { merge: Some(merge), .. }) => merge.known_count(),
            _ => self.engines.iter().map(Engine::known_count).sum(),
        }
    }

    fn end(&self) -> &Engine {
        match self.spread.as_deref() {
            Some(Spread { merge: Some(merge), .. }) => merge,
            _ => &self.engines[0],
        }
    }

    /// The schema of deltas, with a column that numbers the updates if they are shown one by one.
    pub fn delta_schema(&self, per_update: bool) -> SchemaRef {
        self.end().delta_schema(per_update)
    }

    /// Name and type of each column of the view.
    pub fn columns(&self) -> Vec<(String, DataType)> {
        self.end().columns()
    }

    /// The tables that the view reads, with their columns.
    pub fn tables(&self) -> Vec<(String, Vec<InputColumn>)> {
        let columns = |name: &str| (name.to_string(), self.engines[0].table_columns(name).unwrap_or(&[]).to_vec());
        self.engines[0].table_names().map(columns).collect()
    }

    /// Quarantined changes since the last call: table, position, reason, row.
    pub fn take_rejected(&mut self) -> Result<RecordBatch> {
        match self.spread.as_deref_mut() {
            Some(Spread { front: Some(front), .. }) => front.take_rejected(),
            _ => self.engines[0].take_rejected(),
        }
    }

    /// The same, and leaves them where they are.
    pub fn list_rejected(&self) -> Result<RecordBatch> {
        match self.spread.as_deref() {
            Some(Spread { front: Some(front), .. }) => front.list_rejected(),
            _ => self.engines[0].list_rejected(),
        }
    }

    /// The keys that the most rows share, for each cell; see `Tree::hot_keys`.
    pub fn hot_keys(&self, limit: usize) -> Value {
        self.engines.iter().map(|engine| engine.hot_keys(limit)).collect()
    }

    /// The parts by name; one engine alone is "engine".
    pub fn save(&self) -> Result<Parts> {
        if self.spread.is_none() {
            return Ok(vec![("engine".into(), self.engines[0].save()?)]);
        }
        self.parts().map(|(name, engine)| Ok((name, engine.save()?))).collect()
    }

    /// As `Engine::stats`; for several cells the sums, and each part under `engines`.
    pub fn stats(&self) -> Value {
        let Some(spread) = &self.spread else { return self.engines[0].stats() };
        let parts: Vec<(String, Value)> = self.parts().map(|(name, engine)| (name, engine.stats())).collect();
        let sum = |key: &str| parts.iter().filter_map(|(_, part)| part[key].as_u64()).sum::<u64>();
        let (updates, counter_changes) = (sum("updates"), sum("counter_changes"));
        let is_cell = |name: &str| name.starts_with("cell-");
        let list = |key: &str, wanted: &dyn Fn(&str) -> bool| -> Vec<Value> {
            let lists = parts.iter().filter(|(name, _)| wanted(name)).filter_map(|(_, part)| part[key].as_array());
            lists.flatten().cloned().collect()
        };
        let mut tables = list("tables", &|name| name == "tables");
        let known: Vec<Value> = tables.iter().map(|table| table["name"].clone()).collect();
        tables.extend(list("tables", &|name| name == "cell-0").into_iter().filter(|t| !known.contains(&t["name"])));
        json!({
            "result_rows": self.known_count().and_then(|count| u64::try_from(count).ok()),
            "batches": spread.batches,
            "changes": spread.changes,
            "rejects": sum("rejects"),
            "updates": updates,
            "counter_changes": counter_changes,
            "counter_changes_per_update": if updates > 0 { counter_changes as f64 / updates as f64 } else { 0.0 },
            "bytes": sum("bytes"),
            "tables": tables,
            "stages": list("stages", &is_cell),
            "engines": parts.into_iter().collect::<serde_json::Map<String, Value>>(),
        })
    }
}

fn cell_name(number: usize) -> String {
    format!("cell-{number}")
}
