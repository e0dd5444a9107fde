//! From a plan to an empty engine.

use super::promise;
use super::results;
use super::stage::{Feed, RunningStage};
use super::{Counters, Direct, Engine, Reader};
use crate::binding::Binder;
use crate::error::{KernelError, Result};
use crate::plan::{self, Plan};
use crate::router::RouteBits;
use crate::source::Source;
use crate::store::interner::Interner;
use crate::store::net::Net;
use crate::store::pool::ColumnPool;
use crate::types::DataType;
use std::sync::Weak;

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
        if plan.stages.is_empty() && plan.results.is_none() {
            return Err(KernelError::plan("CROWN-PLAN-MALFORMED", "the plan has no stages"));
        }
        Engine::without_views(plan, deltas)
    }

    /// As `new`; the plan may have no stage and no view yet.
    pub fn without_views(plan: Plan, deltas: bool) -> Result<Engine> {
        let sources = plan.tables.iter().map(Source::new).collect::<Result<Vec<Source>>>()?;
        let wants = |position| gives_deltas(&plan, position, deltas);
        let (assembly, done) = assemble(&plan, &sources, &wants, &mut |_, _| None);
        done?;
        let Assembly { readers, stages, nets, .. } = assembly;
        let views = results::views(&plan, &stages)?;
        let mut engine = Engine {
            sources,
            readers,
            stages,
            interner: Interner::default(),
            deltas,
            quiet: false,
            direct: direct(&plan),
            plan,
            nets,
            views,
            undefined: Vec::new(),
            tolerant: Vec::new(),
            around: Vec::new(),
            rejected: Vec::new(),
            counters: Counters::default(),
            undoable: false,
            settled: true,
            applied: None,
            ordered: Vec::new(),
            order_asked: None,
            last_delta: 0,
            pool: ColumnPool::default(),
            log: Weak::new(),
        };
        engine.start()?;
        Ok(engine)
    }
}

/// The stages of a plan, in its order, with what feeds them.
#[derive(Default)]
pub(super) struct Assembly {
    pub readers: Vec<Vec<Reader>>,
    pub stages: Vec<RunningStage>,
    pub nets: Vec<Vec<Net>>,
    /// The origin of a stage that was taken over; `None` for a new one.
    pub origins: Vec<Option<Origin>>,
}

/// The previous position of a stage, and the positions that it referred to.
pub(super) struct Origin {
    pub position: usize,
    pub inputs: Vec<usize>,
    pub feeds: Vec<Feed>,
}

/// Returns a running stage for this data with its position, if there is one with (or without)
/// deltas, as requested.
pub(super) type TakeOver<'a> = dyn FnMut(&plan::Stage, bool) -> Option<(usize, RunningStage)> + 'a;

/// Builds the stages that can't be taken over. `wants` says which of them must produce deltas.
/// Returns what was assembled even on failure.
pub(super) fn assemble(
    plan: &Plan,
    sources: &[Source],
    wants: &dyn Fn(usize) -> bool,
    take_over: &mut TakeOver,
) -> (Assembly, Result<()>) {
    let mut assembly = Assembly { readers: sources.iter().map(|_| Vec::new()).collect(), ..Assembly::default() };
    let done = RouteBits::new(plan).and_then(|routes| {
        let mut routes = (0..).map(|number| routes.of(number));
        (0..plan.stages.len())
            .try_for_each(|position| add_stage(plan, position, sources, wants, take_over, &mut routes, &mut assembly))
    });
    (assembly, done)
}

fn add_stage(
    plan: &Plan,
    position: usize,
    sources: &[Source],
    wants: &dyn Fn(usize) -> bool,
    take_over: &mut TakeOver,
    routes: &mut impl Iterator<Item = u64>,
    assembly: &mut Assembly,
) -> Result<()> {
    let Assembly { readers, stages, nets, origins } = assembly;
    let data = &plan.stages[position];
    let mut feeds = Vec::new();
    let mut atom_nets = Vec::new();
    for (atom, atom_data) in atoms(data).iter().enumerate() {
        if let Some(source) = sources.iter().position(|source| source.name == atom_data.source) {
            let columns: Vec<(String, DataType)> =
                sources[source].columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
            let binder = Binder::new(atom_data, &columns)?;
            atom_nets.push(Net::new(binder.width()));
            let complete = binder.is_complete(columns.len());
            let route = routes.next().unwrap_or(u64::MAX);
            readers[source].push(Reader { stage: position, atom, route, complete, binder });
        } else {
            let input = find(stages, &atom_data.source)?;
            let binder = Binder::new(atom_data, &stages[input].columns)?;
            atom_nets.push(Net::new(binder.width()));
            feeds.push(Feed { atom, input, binder });
        }
    }
    let wants_deltas = wants(position);
    let read = if atoms(data).is_empty() { data.sources() } else { Vec::new() };
    let inputs = read.into_iter().map(|id| find(stages, id)).collect::<Result<Vec<usize>>>()?;
    let (stage, origin) = match take_over(data, wants_deltas) {
        Some((position, mut stage)) => {
            let inputs = std::mem::replace(&mut stage.inputs, inputs);
            let feeds = std::mem::replace(&mut stage.feeds, feeds);
            (stage, Some(Origin { position, inputs, feeds }))
        }
        None => (RunningStage::new(data, feeds, stages, wants_deltas)?, None),
    };
    nets.push(atom_nets);
    stages.push(stage);
    origins.push(origin);
    promise::check(stages, position)
}

/// Whether a stage must produce deltas, for the stages that read it or for the readers of its view.
pub(super) fn gives_deltas(plan: &Plan, position: usize, deltas: bool) -> bool {
    if direct(plan).is_some() {
        return deltas;
    }
    let Some(results) = &plan.results else { return deltas || position + 1 < plan.stages.len() };
    let id = plan.stages[position].id();
    let shown = results.iter().any(|result| result.stage == id);
    (shown && deltas) || plan.stages[position + 1..].iter().any(|stage| stage.sources().contains(&id))
}

/// The one tree of a plan, when its rows are the view's. No column may be dropped: rows could
/// become equal.
pub(super) fn direct(plan: &Plan) -> Option<Direct> {
    match (plan.results.as_deref(), plan.stages.last()) {
        (None, _) => {}
        (Some([result]), Some(last)) if result.stage == last.id() => {}
        _ => return None,
    }
    let (tree, projection) = match &plan.stages[..] {
        [plan::Stage::Tree(tree)] => (tree, None),
        [plan::Stage::Tree(tree), plan::Stage::Map(map)] if map.filter.is_none() => {
            let ring = tree.ring.iter().map(|component| &component.name);
            let columns: Vec<&String> = tree.outputs.iter().chain(ring).collect();
            let position = |column: &plan::MapColumn| match &column.expression {
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
