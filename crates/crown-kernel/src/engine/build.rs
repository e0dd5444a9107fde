//! From a plan to an empty engine.

use super::promise;
use super::stage::{Feed, RunningStage};
use super::{Counters, Direct, Engine, Reader};
use crate::binding::Binder;
use crate::error::{KernelError, Result};
use crate::mask::Bits;
use crate::plan::{self, Plan};
use crate::router::RouteBits;
use crate::source::Source;
use crate::store::interner::Interner;
use crate::store::net::Net;
use crate::store::pool::ColumnPool;
use crate::types::DataType;

impl Engine {
    /// Reads a plan's JSON form.
    pub fn parse_plan(json: &str) -> Result<Plan> {
        let plan = plan::parse(json)?;
        if plan.version != 1 {
            let message = format!("this kernel reads plans of version 1, not {}", plan.version);
            return Err(KernelError::plan("CROWN-PLAN-VERSION", message));
        }
        Ok(plan)
    }

    /// Without `deltas` nothing is kept for them and no rows are emitted.
    pub fn new(plan: Plan, deltas: bool) -> Result<Engine> {
        let sources = plan.tables.iter().map(Source::new).collect::<Result<Vec<Source>>>()?;
        let mut readers: Vec<Vec<Reader>> = sources.iter().map(|_| Vec::new()).collect();
        let mut stages: Vec<RunningStage> = Vec::new();
        let mut nets = Vec::new();
        let interner = Interner::default();
        let routes = RouteBits::new(&plan)?;
        let mut number = 0;
        let last = plan.stages.len().wrapping_sub(1);
        let direct = direct(&plan);
        for (position, data) in plan.stages.iter().enumerate() {
            let mut feeds = Vec::new();
            let mut atom_nets = Vec::new();
            for (atom, atom_data) in atoms(data).iter().enumerate() {
                if let Some(source) = sources.iter().position(|source| source.name == atom_data.source) {
                    let columns: Vec<(String, DataType)> =
                        sources[source].columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
                    let binder = Binder::new(atom_data, &columns)?;
                    atom_nets.push(Net::new(binder.width()));
                    let complete = binder.is_complete(columns.len());
                    readers[source].push(Reader { stage: position, atom, route: routes.of(number), complete, binder });
                    number += 1;
                } else {
                    let input = find(&stages, &atom_data.source)?;
                    let binder = Binder::new(atom_data, &stages[input].columns)?;
                    atom_nets.push(Net::new(binder.width()));
                    feeds.push(Feed { atom, input, binder });
                }
            }
            nets.push(atom_nets);
            // A view that is only pulled needs no deltas of its last stage, but the stages below feed it by theirs.
            let feeds_others = position != last && direct.is_none();
            let stage = RunningStage::new(data, feeds, &stages, deltas || feeds_others)?;
            stages.push(stage);
            promise::check(&mut stages, position)?;
        }
        check_columns(&plan, stages.last())?;
        let mut engine = Engine {
            sources,
            readers,
            stages,
            interner,
            deltas,
            direct,
            plan,
            nets,
            initial: None,
            unshown: false,
            aside: Vec::new(),
            around: Vec::new(),
            rejected: Vec::new(),
            counters: Counters::default(),
            undoable: false,
            settled: true,
            applied: None,
            last_delta: 0,
            pool: ColumnPool::default(),
        };
        engine.initial = engine.start()?;
        engine.retain_initial();
        Ok(engine)
    }

    /// Keeps the values of the initial rows, which may be shown long after they were computed.
    fn retain_initial(&mut self) {
        let Engine { initial: Some(rows), stages, interner, .. } = self else { return };
        let Some(stage) = stages.last() else { return };
        for (position, _) in stage.columns.iter().enumerate().filter(|(_, column)| column.1.interned()) {
            for row in (0..rows.len()).filter(|row| !rows.nulls_at(*row).has(position)) {
                interner.retain(rows.columns[position][row]);
            }
        }
    }
}

/// The one tree of a plan, when its rows are the view's. No column may be dropped: rows could become equal.
fn direct(plan: &Plan) -> Option<Direct> {
    let (tree, projection) = match &plan.stages[..] {
        [plan::Stage::Tree(tree)] => (tree, None),
        [plan::Stage::Tree(tree), plan::Stage::Map(map)] if map.filter.is_none() => {
            let ring = tree.ring.iter().map(|component| &component.name);
            let columns: Vec<&String> = tree.outputs.iter().chain(ring).collect();
            let position = |column: &plan::OutputColumn| match &column.expression {
                plan::Expression::Column { name, .. } => columns.iter().position(|other| *other == name),
                _ => None,
            };
            let positions: Vec<usize> = map.columns.iter().map(position).collect::<Option<_>>()?;
            let all = (0..columns.len()).all(|column| positions.contains(&column));
            (tree, Some(all.then_some(positions)?))
        }
        _ => return None,
    };
    let flips = |node: &plan::Node| matches!(node.edge, plan::EdgeKind::Anti | plan::EdgeKind::Optional);
    let anti = tree.nodes.iter().any(flips);
    Some(Direct { tree: 0, projection, monotone: tree.mode == plan::Mode::Set && !anti })
}

/// The atoms of a stage that has some.
pub(super) fn atoms(stage: &plan::Stage) -> &[plan::Atom] {
    match stage {
        plan::Stage::Tree(tree) => &tree.atoms,
        plan::Stage::Bag(bag) => &bag.atoms,
        _ => &[],
    }
}

pub(super) fn find(stages: &[RunningStage], id: &str) -> Result<usize> {
    stages.iter().position(|stage| stage.id == id).ok_or_else(|| {
        KernelError::plan("CROWN-PLAN-MALFORMED", format!("'{id}' is neither a table nor an earlier stage"))
    })
}

fn check_columns(plan: &Plan, last: Option<&RunningStage>) -> Result<()> {
    let Some(last) = last else {
        return Err(KernelError::plan("CROWN-PLAN-MALFORMED", "the plan has no stages"));
    };
    if matches!(plan.stages.last(), Some(plan::Stage::Bag(_))) {
        return Err(KernelError::plan("CROWN-PLAN-MALFORMED", "the last stage can't be a bag"));
    }
    if plan.columns.len() != last.columns.len() {
        let message = format!("the view has {} columns, its last stage has {}", plan.columns.len(), last.columns.len());
        return Err(KernelError::plan("CROWN-PLAN-MALFORMED", message));
    }
    for (column, (_, data_type)) in plan.columns.iter().zip(&last.columns) {
        if DataType::parse(&column.data_type)? != *data_type {
            let message = format!("column '{}' is {}, its stage has {data_type:?}", column.name, column.data_type);
            return Err(KernelError::plan("CROWN-PLAN-MALFORMED", message));
        }
    }
    Ok(())
}
