//! The rounds of a recursive query.
//!
//! The stages of the step run inside, over stand-ins (`State::Port`) for the rows of the recursion
//! itself and for the other stages that it reads. A batch runs in rounds: the step receives the
//! changed rows, and its output changes the rows again, until nothing changes. Each row is stored
//! with its supports ([`RecursiveRows`]), and two passes maintain them:
//!
//! 1. *down*: deletions from the base and the sides. Without duplicates, a row that loses any
//!    derivation is removed unless the base contains it, because its other derivations may depend
//!    on the row itself through a cycle. Removed rows that still have a derivation from the
//!    remaining rows are then shown again, with everything that follows from them.
//! 2. *up*: insertions.
//!
//! The step must be linear in the recursion's rows, and must return its rows with their
//! multiplicity, so that every lost derivation is noticed. If insertions into a side can remove
//! rows (below an anti-join or an outer join), a change of that side withdraws all rows, and pass 2
//! starts from the base.
//!
//! A pass down terminates because the number of rows decreases. A pass up terminates if the result
//! is finite; only `limit` detects that it may not be.

use super::build::{atoms, find};
use super::stage::{Feed, RunningStage};
use crate::binding::Binder;
use crate::chunk::Chunk;
use crate::error::{KernelError, Result};
use crate::plan;
use crate::stages::{RecursiveRows, Showing, Support};
use crate::store::interner::Interner;
use crate::store::net::{net_chunks, Net};

/// Nets with more rows are discarded after a round: the next one may have few.
const FEW: usize = 256;

pub(super) struct Recursion {
    name: String,
    all: bool,
    limit: Option<u64>,
    pub rows: RecursiveRows,
    /// The stand-ins, the first for the recursion itself, and then the step.
    stages: Vec<RunningStage>,
    ports: usize,
    /// For each stand-in, whether inserting its rows may delete rows of the step.
    flips: Vec<bool>,
    /// For each stage, the changes of its atoms in the current round.
    nets: Vec<Vec<Net>>,
    /// Whether `limit` applies.
    pub bounded: bool,
    /// The total number of rounds so far.
    pub rounds: u64,
}

/// What a batch has done so far.
struct Done {
    rows: Vec<(Support, Chunk)>,
    nets: Vec<Vec<Net>>,
}

impl Recursion {
    /// `inputs` are the positions of the base and of the sides.
    pub fn new(data: &plan::RecursionStage, inputs: &[usize], earlier: &[RunningStage]) -> Result<Recursion> {
        let columns = &earlier[inputs[0]].columns;
        let mut stages = vec![RunningStage::port(plan::ITSELF, columns)];
        let sides = data.sides().into_iter().zip(&inputs[1..]);
        stages.extend(sides.map(|(id, input)| RunningStage::port(id, &earlier[*input].columns)));
        let ports = stages.len();
        let mut recursive: Vec<bool> = (0..ports).map(|port| port == 0).collect();
        let (mut flips, mut nets) = (vec![false; ports], (0..ports).map(|_| Vec::new()).collect::<Vec<_>>());
        for stage in &data.stages {
            check_kind(stage, &data.id)?;
            let feeds = feeds(stage, &stages)?;
            mark_flips(stage, &feeds, &recursive, &mut flips)?;
            nets.push(feeds.iter().map(|feed| Net::new(feed.binder.width())).collect());
            let stage = RunningStage::new(stage, feeds, &stages, true)?;
            recursive.push(stage.read_stages().iter().any(|source| recursive[*source]));
            stages.push(stage);
        }
        let types = |columns: &[(String, _)]| columns.iter().map(|column| column.1).collect::<Vec<_>>();
        if types(&stages[stages.len() - 1].columns) != types(columns) || stages.len() == ports {
            return Err(malformed(format!("base and step of '{}' have different columns", data.id)));
        }
        let rows = RecursiveRows::new(data.all, types(columns));
        let (name, all, limit) = (data.name.clone(), data.all, data.limit);
        Ok(Recursion { name, all, limit, rows, stages, ports, flips, nets, bounded: true, rounds: 0 })
    }

    /// The stages of the step.
    pub fn step(&self) -> &[RunningStage] {
        &self.stages[self.ports..]
    }

    /// Applies the net changes of the base and of the sides. On an error everything is as before.
    pub fn apply(&mut self, inputs: &[&Chunk], interner: &mut Interner, output: &mut Chunk) -> Result<()> {
        let nets = self.nets.iter().map(|nets| nets.iter().map(Net::like).collect()).collect();
        let mut done = Done { rows: Vec::new(), nets };
        if let Err(error) = self.run(inputs, &mut done, interner) {
            self.take_back(done, interner)?;
            return Err(error);
        }
        let shown: Vec<Chunk> =
            done.rows.into_iter().filter(|(support, _)| *support == Support::Shown).map(|(_, rows)| rows).collect();
        output.append(&net_chunks(&shown, self.width())?);
        Ok(())
    }

    fn run(&mut self, inputs: &[&Chunk], done: &mut Done, interner: &mut Interner) -> Result<()> {
        let flipped = inputs.iter().zip(&self.flips).skip(1).any(|(side, flips)| *flips && !side.is_empty());
        let goes = |rows: &&Chunk| rows.weights.iter().any(|weight| *weight < 0);
        let mut fallen = Chunk::new(self.width());
        if flipped {
            self.rows.withdraw(&mut fallen);
            done.rows.push((Support::Shown, fallen.clone()));
            let mut ports = self.nothing();
            ports[0] = fallen.clone();
            let step = self.round(&ports, done, interner)?;
            self.add(Support::Step, step, Showing::Unchanged, done, interner)?;
        } else if inputs.iter().any(goes) {
            let showing = if self.all { Showing::Exact } else { Showing::WithBase };
            let mut ports: Vec<Chunk> = inputs.iter().map(|rows| rows.of_sign(-1)).collect();
            let base = std::mem::take(&mut ports[0]);
            ports[0] = self.add(Support::Base, base, showing, done, interner)?;
            fallen.append(&ports[0]);
            fallen.append(&self.go_round(ports, showing, None, done, interner)?);
        }
        let mut ports: Vec<Chunk> =
            inputs.iter().map(|rows| if flipped { (*rows).clone() } else { rows.of_sign(1) }).collect();
        let base = std::mem::take(&mut ports[0]);
        ports[0] = self.add(Support::Base, base, Showing::Exact, done, interner)?;
        let mut again = Chunk::new(self.width());
        self.rows.show(&fallen, interner, &mut again)?;
        done.rows.push((Support::Shown, again.clone()));
        ports[0].append(&again);
        let limit = self.limit.filter(|_| self.bounded);
        self.go_round(ports, Showing::Exact, limit, done, interner).map(|_| ())
    }

    /// Rounds until nothing changes; returns what the step has changed of the rows shown.
    fn go_round(
        &mut self,
        mut ports: Vec<Chunk>,
        showing: Showing,
        limit: Option<u64>,
        done: &mut Done,
        interner: &mut Interner,
    ) -> Result<Chunk> {
        let (mut shown, mut rounds) = (Chunk::new(self.width()), 0);
        while ports.iter().any(|rows| !rows.is_empty()) {
            rounds += 1;
            if let Some(limit) = limit.filter(|limit| rounds > *limit) {
                return Err(self.endless(limit));
            }
            let step = self.round(&ports, done, interner)?;
            ports = self.nothing();
            ports[0] = self.add(Support::Step, step, showing, done, interner)?;
            shown.append(&ports[0]);
        }
        Ok(shown)
    }

    /// Adds to a support; returns what that changes of the rows shown.
    fn add(
        &mut self,
        support: Support,
        changes: Chunk,
        showing: Showing,
        done: &mut Done,
        interner: &mut Interner,
    ) -> Result<Chunk> {
        let mut shown = Chunk::new(self.width());
        self.rows.add(support, &changes, showing, interner, &mut shown)?;
        done.rows.push((support, changes));
        done.rows.push((Support::Shown, shown.clone()));
        Ok(shown)
    }

    /// Runs the step on what the stand-ins change by.
    fn round(&mut self, ports: &[Chunk], done: &mut Done, interner: &mut Interner) -> Result<Chunk> {
        self.rounds += 1;
        let mut outputs: Vec<Chunk> = Vec::with_capacity(self.stages.len() - self.ports);
        for position in self.ports..self.stages.len() {
            let (earlier, later) = self.stages.split_at_mut(position);
            let (stage, nets) = (&mut later[0], &mut self.nets[position]);
            let change =
                |source: usize| if source < self.ports { &ports[source] } else { &outputs[source - self.ports] };
            for net in nets.iter_mut() {
                if net.len() > FEW {
                    *net = net.like();
                } else {
                    net.clear();
                }
            }
            for feed in &stage.feeds {
                feed.bind(change(feed.input), &mut nets[feed.atom], interner)?;
            }
            let inputs: Vec<&Chunk> = stage.inputs.iter().map(|input| change(*input)).collect();
            let rows = stage.run(earlier, nets, &inputs, interner)?;
            for (total, net) in done.nets[position].iter_mut().zip(nets) {
                net.rows().for_each(|(words, nulls, weight)| total.add(words, nulls, weight));
            }
            outputs.push(rows);
        }
        Ok(outputs.pop().unwrap_or_default())
    }

    fn take_back(&mut self, done: Done, interner: &mut Interner) -> Result<()> {
        for (stage, mut nets) in self.stages.iter_mut().zip(done.nets) {
            if nets.iter().any(|net| !net.is_empty()) {
                stage.take_back_atoms(&mut nets, interner)?;
            }
        }
        for (support, changes) in done.rows.into_iter().rev() {
            self.rows.take_back(support, &changes, interner);
        }
        Ok(())
    }

    /// Releases the values that it holds.
    pub fn release(&mut self, interner: &mut Interner) {
        self.rows.release(interner);
        self.stages.iter_mut().for_each(|stage| stage.release(interner));
    }

    fn nothing(&self) -> Vec<Chunk> {
        self.stages[..self.ports].iter().map(|port| Chunk::new(port.columns.len())).collect()
    }

    fn width(&self) -> usize {
        self.stages[0].columns.len()
    }

    fn endless(&self, limit: u64) -> KernelError {
        let message = format!("the recursive query {} has not come to an end after {limit} rounds", self.name);
        KernelError::invalid("CROWN-RECURSION-LIMIT", message)
    }
}

/// Accepts only stages that return each derivation as a separate copy of a row, and that store
/// nothing but atoms.
fn check_kind(stage: &plan::Stage, recursion: &str) -> Result<()> {
    let fits = match stage {
        plan::Stage::Tree(tree) => tree.mode != plan::Mode::Ring,
        plan::Stage::SetOperation(operation) => operation.operator == plan::SetOperator::Union && operation.all,
        plan::Stage::Bag(_) | plan::Stage::Map(_) => true,
        _ => false,
    };
    if fits {
        Ok(())
    } else {
        Err(malformed(format!("stage '{}' can't be part of the recursion '{recursion}'", stage.id())))
    }
}

fn feeds(stage: &plan::Stage, stages: &[RunningStage]) -> Result<Vec<Feed>> {
    let feed = |(atom, data): (usize, &plan::Atom)| {
        let input = find(stages, &data.source)?;
        Ok(Feed { atom, input, binder: Binder::new(data, &stages[input].columns)? })
    };
    atoms(stage).iter().enumerate().map(feed).collect()
}

/// Notes the stand-ins below an anti-join or outer join. The recursion's own rows may only be
/// joined.
fn mark_flips(stage: &plan::Stage, feeds: &[Feed], recursive: &[bool], flips: &mut [bool]) -> Result<()> {
    let plan::Stage::Tree(tree) = stage else { return Ok(()) };
    let mut below: Vec<(bool, bool)> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let above = node.parent.and_then(|parent| below.get(parent).copied()).unwrap_or((false, false));
        let flipping = matches!(node.edge, plan::EdgeKind::Anti | plan::EdgeKind::Optional);
        let (flipped, conditional) = (above.0 || flipping, above.1 || node.edge != plan::EdgeKind::Join);
        below.push((flipped, conditional));
        let Some(feed) = node.atom.and_then(|atom| feeds.get(atom)) else { continue };
        if conditional && recursive[feed.input] {
            return Err(malformed(format!("stage '{}' does not join the recursion's own rows", tree.id)));
        }
        match flips.get_mut(feed.input) {
            Some(flips) => *flips |= flipped,
            None => flips.iter_mut().for_each(|flips| *flips |= flipped),
        }
    }
    Ok(())
}

fn malformed(message: String) -> KernelError {
    KernelError::plan("CROWN-PLAN-MALFORMED", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Word;
    use serde_json::{json, Value};

    fn variables(names: &[&str]) -> Vec<Value> {
        names.iter().map(|name| json!({ "name": name, "type": "int64", "nullable": true })).collect()
    }

    fn column(name: &str) -> Value {
        json!({ "kind": "column", "name": name, "type": "int64" })
    }

    /// `WITH RECURSIVE r AS (base UNION [ALL] SELECT dst FROM r JOIN side ON src = r.x)`, where the
    /// side hangs by an edge of some kind.
    fn recursion(all: bool, limit: Option<u64>, edge: &str) -> Result<Recursion> {
        let bind = |pairs: &[(&str, &str)]| -> Vec<Value> {
            pairs.iter().map(|(v, c)| json!({ "variable": v, "expression": column(c) })).collect()
        };
        let atom = |name: &str, source: &str, pairs: &[(&str, &str)]| json!({ "name": name, "source": source, "bindings": bind(pairs), "filter": null, "not_null": ["k"] });
        let node =
            |name: &str, variables: &[&str], atom: Option<u64>, parent: Option<u64>, key: &[&str], edge: &str| {
                json!({ "name": name, "variables": variables, "atom": atom, "parent": parent, "key": key,
                    "connex": edge == "join", "edge": edge })
            };
        let outputs = if edge == "join" { vec!["k", "d"] } else { vec!["k"] };
        let tree = json!({
            "kind": "tree", "id": "$0", "variables": variables(&["k", "d"]),
            "atoms": [atom("r", plan::ITSELF, &[("k", "x")]), atom("e", "$side", &[("k", "src"), ("d", "dst")])],
            "nodes": [node("r", &["k"], Some(0), None, &[], "join"), node("e", &["k", "d"], Some(1), Some(0), &["k"], edge)],
            "outputs": outputs, "mode": "bag", "ring": [], "residual": [], "always": false, "ordered": [],
        });
        let shown =
            json!({ "name": "x", "type": "int64", "nullable": true, "expression": column(outputs[outputs.len() - 1]) });
        let map = json!({ "kind": "map", "id": "$1", "input": "$0", "columns": [shown], "filter": null });
        let data =
            json!({ "id": "$r", "name": "r", "base": "$base", "stages": [tree, map], "all": all, "limit": limit });
        let data: plan::RecursionStage = serde_json::from_value(data).unwrap();
        let int = crate::types::DataType::parse("int64").unwrap();
        let named = |names: &[&str]| names.iter().map(|name| (name.to_string(), int)).collect::<Vec<_>>();
        let earlier =
            [RunningStage::port("$base", &named(&["x"])), RunningStage::port("$side", &named(&["src", "dst"]))];
        Recursion::new(&data, &[0, 1], &earlier)
    }

    fn chunk<const WIDTH: usize>(rows: &[([Word; WIDTH], i64)]) -> Chunk {
        let mut chunk = Chunk::new(WIDTH);
        rows.iter().for_each(|(row, weight)| chunk.push(row, 0, *weight));
        chunk
    }

    fn apply(one: &mut Recursion, base: &[([Word; 1], i64)], edges: &[([Word; 2], i64)]) -> Result<Vec<(Word, i64)>> {
        let mut out = Chunk::new(1);
        one.apply(&[&chunk(base), &chunk(edges)], &mut Interner::default(), &mut out)?;
        let mut shown: Vec<(Word, i64)> = out.columns[0].iter().copied().zip(out.weights).collect();
        shown.sort_unstable();
        Ok(shown)
    }

    fn rows(one: &Recursion) -> Vec<(Word, i64)> {
        let mut all = Chunk::new(1);
        one.rows.read(0, usize::MAX, &mut all);
        let mut found: Vec<(Word, i64)> = all.columns[0].iter().copied().zip(all.weights).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn a_cycle_falls_with_what_led_to_it() {
        let mut one = recursion(false, None, "join").unwrap();
        let edges = [([1, 2], 1), ([2, 3], 1), ([3, 2], 1), ([1, 4], 1), ([4, 5], 1), ([1, 5], 1)];
        assert_eq!(apply(&mut one, &[([1], 1)], &edges).unwrap().len(), 5);
        // (5 falls with 4 and rises again: no delta of it.)
        assert_eq!(apply(&mut one, &[], &[([1, 2], -1), ([4, 5], -1)]).unwrap(), [(2, -1), (3, -1)]);
        assert_eq!(apply(&mut one, &[([1], -1), ([3], 1)], &[]).unwrap(), [(1, -1), (2, 1), (3, 1), (4, -1), (5, -1)]);
    }

    #[test]
    fn duplicates_are_paths() {
        let mut one = recursion(true, None, "join").unwrap();
        apply(&mut one, &[([1], 1)], &[([1, 2], 2), ([2, 3], 3), ([1, 3], 1)]).unwrap();
        assert_eq!(rows(&one), [(1, 1), (2, 2), (3, 7)]);
        assert_eq!(apply(&mut one, &[([2], 1)], &[([1, 2], -1)]).unwrap(), []);
        assert_eq!(apply(&mut one, &[], &[([2, 3], -3)]).unwrap(), [(3, -6)]);
    }

    #[test]
    fn rows_of_another_time_do_not_go_round_a_cycle_for_ever() {
        let mut one = recursion(true, Some(50), "join").unwrap();
        apply(&mut one, &[([1], 1)], &[([1, 2], 1)]).unwrap();
        // The cycle comes when nothing leads to it any more.
        apply(&mut one, &[([1], -1), ([7], 1)], &[([2, 1], 1)]).unwrap();
        assert_eq!(rows(&one), [(7, 1)]);
    }

    #[test]
    fn what_has_no_end_is_taken_back() {
        let mut one = recursion(true, Some(50), "join").unwrap();
        apply(&mut one, &[([1], 1)], &[([1, 2], 1)]).unwrap();
        let before = rows(&one);
        for _ in 0..2 {
            let error = apply(&mut one, &[([1], -1), ([2], 1)], &[([2, 1], 1), ([1, 3], 2)]).unwrap_err();
            assert_eq!((error.code, rows(&one)), ("CROWN-RECURSION-LIMIT", before.clone()));
        }
        assert_eq!(apply(&mut one, &[], &[([2, 3], 1)]).unwrap(), [(3, 1)], "no edge of the refused batch is left");
        one.bounded = false;
        assert_eq!(apply(&mut one, &[([1], -1)], &[]).unwrap(), [(1, -1), (2, -1), (3, -1)]);
        // Doubled in each round: the counts come to an end.
        let error = apply(&mut one, &[([1], 1)], &[([2, 1], 2)]).unwrap_err();
        assert_eq!((error.code, rows(&one).len()), ("CROWN-OVERFLOW", 0));
    }

    #[test]
    fn below_an_anti_join_all_is_derived_anew() {
        // What is not in the side comes again from itself: with duplicates it would have no end.
        let mut one = recursion(false, None, "anti").unwrap();
        assert_eq!(apply(&mut one, &[([1], 1), ([2], 1)], &[]).unwrap(), [(1, 1), (2, 1)]);
        assert_eq!(apply(&mut one, &[([1], -1)], &[([1, 9], 1), ([2, 9], 1)]).unwrap(), [(1, -1)]);
        assert_eq!(apply(&mut one, &[([2], -1)], &[([2, 9], -1)]).unwrap(), [(2, -1)]);
    }

    #[test]
    fn other_steps_are_refused() {
        let distinct = plan::Stage::Distinct(plan::DistinctStage { id: "$0".into(), input: plan::ITSELF.into() });
        assert_eq!(check_kind(&distinct, "$r").unwrap_err().code, "CROWN-PLAN-MALFORMED");
    }
}
