//! What the engine holds and what its updates cost.

use super::stage::{RunningStage, State};
use super::Engine;
use serde_json::{json, Value};

impl Engine {
    /// Rows of the result (null if counting them takes long), rows, keys and bytes per node and
    /// stage, counts of updates and rejects, counter changes per update.
    pub fn stats(&self) -> Value {
        let stages: Vec<Value> = self.stages.iter().flat_map(stages_stats).collect();
        let tables: Vec<Value> = self
            .sources
            .iter()
            .map(|source| {
                json!({
                    "name": source.name,
                    "stored_rows": source.stored_count(),
                    "late": source.late(),
                    "bytes": source.bytes(),
                })
            })
            .collect();
        let sum = |key: &str| stages.iter().filter_map(|stage| stage[key].as_u64()).sum::<u64>();
        let (updates, counter_changes) = (sum("updates"), sum("counter_changes"));
        let counter_changes_per_update = if updates > 0 { counter_changes as f64 / updates as f64 } else { 0.0 };
        let table_bytes: usize = self.sources.iter().map(|source| source.bytes()).sum();
        let order_bytes: usize = self.ordered.iter().map(|order| order.bytes()).sum();
        let interner = json!({ "values": self.interner.len(), "bytes": self.interner.bytes() });
        json!({
            "result_rows": self.known_count().and_then(|count| u64::try_from(count).ok()),
            "batches": self.counters.batches,
            "changes": self.counters.changes,
            "rejects": self.counters.rejects,
            "updates": updates,
            "counter_changes": counter_changes,
            "counter_changes_per_update": counter_changes_per_update,
            "bytes": sum("bytes") + (table_bytes + order_bytes + self.interner.bytes()) as u64,
            "tables": tables,
            "stages": stages,
            "interner": interner,
        })
    }
}

impl Engine {
    /// The keys of each tree's nodes that the most rows share; see `Tree::hot_keys`.
    pub fn hot_keys(&self, limit: usize) -> Value {
        let of_stage = |stage: &RunningStage| -> Vec<Value> {
            let State::Tree { tree, .. } = &stage.state else { return Vec::new() };
            let keys = tree.hot_keys(limit, &self.interner).into_iter();
            keys.map(|hot| {
                let key: serde_json::Map<String, Value> = hot.key.into_iter().collect();
                json!({ "stage": stage.id, "node": hot.node, "key": key, "rows": hot.rows, "parents": hot.parents })
            })
            .collect()
        };
        self.stages.iter().flat_map(of_stage).collect()
    }
}

/// A recursion comes after the stages of its step.
fn stages_stats(stage: &RunningStage) -> Vec<Value> {
    let step = match &stage.state {
        State::Recursion(recursion) => recursion.step(),
        _ => &[],
    };
    step.iter().chain([stage]).map(stage_stats).collect()
}

fn stage_stats(stage: &RunningStage) -> Value {
    let plain =
        |kind: &str, rows: usize, bytes: usize| json!({ "id": stage.id, "kind": kind, "rows": rows, "bytes": bytes });
    match &stage.state {
        State::Tree { tree, .. } => {
            let stats = tree.stats();
            let nodes: Vec<Value> = stats
                .nodes
                .iter()
                .map(|node| {
                    json!({
                        "name": node.name,
                        "rows": node.rows,
                        "semi_join_rows": node.semi_join_rows,
                        "keys": node.keys,
                        "bytes": node.bytes,
                        "updates": node.updates,
                        "moves": node.moves,
                        "counter_changes": node.counter_changes,
                    })
                })
                .collect();
            json!({
                "id": stage.id,
                "kind": "tree",
                "rows": stats.nodes.iter().map(|node| node.rows).sum::<usize>(),
                "bytes": stats.bytes,
                "updates": stats.updates,
                "counter_changes": stats.counter_changes,
                "nodes": nodes,
            })
        }
        State::Bag { bag, .. } => {
            let stats = bag.stats();
            plain("bag", stats.rows, stats.bytes)
        }
        State::Map(_) => plain("map", 0, 0),
        State::SetOperation(_) => plain("set_operation", 0, 0),
        State::Aggregate(state) => plain("aggregate", state.rows(), state.bytes()),
        State::Distinct(state) => plain("distinct", state.rows(), state.bytes()),
        State::Materialize(state) => plain("materialize", state.rows(), state.bytes()),
        State::Top(state) => plain("top", state.state_rows(), state.bytes()),
        State::WindowFunctions(state) => plain("window", state.rows(), state.bytes()),
        State::Port => plain("port", 0, 0),
        State::Recursion(state) => json!({
            "id": stage.id,
            "kind": "recursion",
            "rows": state.rows.len(),
            "bytes": state.rows.bytes(),
            "rounds": state.rounds,
        }),
    }
}
