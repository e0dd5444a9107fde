//! One stage of the plan with its state.

use super::build::find;
use super::emit::Discard;
use super::promise::{promise, Promise};
use super::recursion::Recursion;
use super::row_weights;
use crate::bag::Bag;
use crate::binding::Binder;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Result};
use crate::expression::Compiled;
use crate::mask;
use crate::plan;
use crate::stages::{Aggregate, Distinct, Map, Materialize, SetOperation, Top, WindowFunctions};
use crate::store::interner::Interner;
use crate::store::net::{net_chunks, Net};
use crate::tree::{AtomChange, Sink, Tree};
use crate::types::DataType;

pub(super) struct RunningStage {
    pub id: String,
    pub columns: Vec<(String, DataType)>,
    /// The stages whose rows are its input, for stages without atoms.
    pub inputs: Vec<usize>,
    /// The atoms over earlier stages.
    pub feeds: Vec<Feed>,
    pub state: State,
    pub promise: Promise,
    /// The initial rows of a stage without inputs.
    constants: Vec<Vec<Compiled>>,
    /// Rows on which its expressions fail are waiting for this stage, so it skips failing rows.
    pub lenient: bool,
    /// Whether its changes are needed.
    pub deltas: bool,
}

/// An atom over an earlier stage.
pub(super) struct Feed {
    pub atom: usize,
    pub input: usize,
    pub binder: Binder,
}

pub(super) enum State {
    Tree {
        tree: Box<Tree>,
        mode: plan::Mode,
    },
    /// `loaded` is the output that it produced while its atoms were loaded.
    Bag {
        bag: Box<Bag>,
        loaded: Chunk,
    },
    Map(Map),
    Aggregate(Aggregate),
    Distinct(Distinct),
    Materialize(Materialize),
    SetOperation(SetOperation),
    Top(Top),
    WindowFunctions(WindowFunctions),
    Recursion(Box<Recursion>),
    /// Rows from outside, in the step of a recursion: nothing is stored.
    Port,
}

impl Feed {
    /// Adds what its atom makes of the net change of its input to the atom's net.
    pub fn bind(&self, input: &Chunk, net: &mut Net, interner: &mut Interner) -> Result<()> {
        if input.is_empty() {
            return Ok(());
        }
        self.binder.bind_all(input, interner, |row, nulls, weight| net.add(row, nulls, weight))
    }
}

impl RunningStage {
    pub fn new(data: &plan::Stage, feeds: Vec<Feed>, earlier: &[RunningStage], deltas: bool) -> Result<RunningStage> {
        let input = |id: &String| find(earlier, id).map(|position| (position, &earlier[position].columns[..]));
        let mut constants = Vec::new();
        let (id, inputs, state, columns) = match data {
            plan::Stage::Tree(stage) => {
                let mut columns = variables(&stage.variables, &stage.outputs)?;
                for component in &stage.ring {
                    columns.push((component.name.clone(), DataType::parse(&component.data_type)?));
                }
                let tree = Box::new(Tree::new(stage, deltas)?);
                (&stage.id, Vec::new(), State::Tree { tree, mode: stage.mode }, columns)
            }
            plan::Stage::Bag(stage) => {
                let bag = Box::new(Bag::new(stage)?);
                let columns = bag.columns().to_vec();
                let loaded = Chunk::new(columns.len());
                (&stage.id, Vec::new(), State::Bag { bag, loaded }, columns)
            }
            plan::Stage::Map(stage) => {
                let (position, columns) = input(&stage.input)?;
                let map = Map::new(stage, columns)?;
                let columns = map.columns().to_vec();
                (&stage.id, vec![position], State::Map(map), columns)
            }
            plan::Stage::Aggregate(stage) => {
                let (position, columns) = input(&stage.input)?;
                let aggregate = Aggregate::new(stage, columns)?;
                let columns = aggregate.columns().to_vec();
                (&stage.id, vec![position], State::Aggregate(aggregate), columns)
            }
            plan::Stage::Distinct(stage) => {
                let (position, columns) = input(&stage.input)?;
                (&stage.id, vec![position], State::Distinct(Distinct::new(columns)), columns.to_vec())
            }
            plan::Stage::Materialize(stage) => {
                let (position, columns) = input(&stage.input)?;
                (&stage.id, vec![position], State::Materialize(Materialize::new(columns)), columns.to_vec())
            }
            plan::Stage::SetOperation(stage) => {
                let ((left, left_columns), (right, right_columns)) = (input(&stage.inputs.0)?, input(&stage.inputs.1)?);
                let operation = SetOperation::new(stage, left_columns, right_columns)?;
                let columns = operation.columns().to_vec();
                (&stage.id, vec![left, right], State::SetOperation(operation), columns)
            }
            plan::Stage::Top(stage) => {
                let (position, columns) = input(&stage.input)?;
                let top = Top::new(stage, columns)?;
                let columns = top.columns().to_vec();
                (&stage.id, vec![position], State::Top(top), columns)
            }
            plan::Stage::Window(stage) => {
                let (position, columns) = input(&stage.input)?;
                let window = WindowFunctions::new(stage, columns)?;
                let columns = window.columns().to_vec();
                (&stage.id, vec![position], State::WindowFunctions(window), columns)
            }
            plan::Stage::Values(stage) => {
                let names: Vec<String> = stage.columns.iter().map(|column| column.name.clone()).collect();
                let columns = variables(&stage.columns, &names)?;
                constants = compile_rows(stage, &columns)?;
                (&stage.id, Vec::new(), State::Materialize(Materialize::new(&columns)), columns)
            }
            plan::Stage::Recursion(stage) => {
                let inputs = data.sources().into_iter().map(|id| find(earlier, id)).collect::<Result<Vec<_>>>()?;
                let recursion = Recursion::new(stage, &inputs, earlier)?;
                let columns = earlier[inputs[0]].columns.clone();
                (&stage.id, inputs, State::Recursion(Box::new(recursion)), columns)
            }
        };
        let promise = promise(&state, &inputs, earlier);
        Ok(RunningStage { id: id.clone(), columns, inputs, feeds, state, promise, constants, lenient: false, deltas })
    }

    /// A stand-in for rows from outside.
    pub fn port(id: &str, columns: &[(String, DataType)]) -> RunningStage {
        let promise = Promise { looks_up: false, lists_once: false };
        let (inputs, feeds, constants) = (Vec::new(), Vec::new(), Vec::new());
        let (id, columns, state) = (id.to_string(), columns.to_vec(), State::Port);
        RunningStage { id, columns, inputs, feeds, state, promise, constants, lenient: false, deltas: true }
    }

    pub fn has_atoms(&self) -> bool {
        matches!(self.state, State::Tree { .. } | State::Bag { .. })
    }

    /// The stages that it reads: by its atoms, or as they are.
    pub fn read_stages(&self) -> Vec<usize> {
        if self.has_atoms() {
            self.feeds.iter().map(|feed| feed.input).collect()
        } else {
            self.inputs.clone()
        }
    }

    pub fn interned(&self) -> bool {
        self.columns.iter().any(|(_, data_type)| data_type.interned())
    }

    pub fn atom_multiplicity(&self, atom: usize, row: &[Word], nulls: Nulls) -> u64 {
        match &self.state {
            State::Tree { tree, .. } => tree.atom_multiplicity(atom, row, nulls),
            State::Bag { bag, .. } => bag.atom_multiplicity(atom, row, nulls).unsigned_abs(),
            _ => 0,
        }
    }

    /// Prefetches the slot of an atom's row without NULLs that is looked up soon; returns its hash.
    pub fn prefetch_slot(&self, atom: usize, row: &[Word]) -> u64 {
        match &self.state {
            State::Tree { tree, .. } => tree.prefetch_slot(atom, row),
            _ => 0,
        }
    }

    /// Prefetches the row itself, once its slot has been loaded.
    pub fn prefetch_row(&self, atom: usize, hash: u64) {
        if let State::Tree { tree, .. } = &self.state {
            tree.prefetch_row(atom, hash);
        }
    }

    /// Whether what a net batch gives is net by itself.
    pub fn is_net(&self) -> bool {
        match &self.state {
            State::Tree { tree, .. } => tree.is_net(),
            State::Bag { .. } => false,
            _ => true,
        }
    }

    /// Whether `is_net` can turn false during a batch.
    pub fn may_lose_net(&self) -> bool {
        matches!(self.state, State::Tree { mode: plan::Mode::Bag, .. })
    }

    /// Applies the net changes of its atoms, deletions first. On an error the stage is as before.
    pub fn apply_atoms(&mut self, nets: &[Net], interner: &mut Interner, sink: &mut impl Sink) -> Result<()> {
        let order = match &self.state {
            State::Tree { tree, .. } if tree.is_quiet() => tree.upwards(),
            _ => (0..nets.len()).collect(),
        };
        let ordered = || ordered(nets, &order);
        let failed = match &mut self.state {
            State::Tree { tree, .. } => {
                make_room(tree, nets);
                tree.apply_all(ordered(), interner, sink).err()
            }
            State::Bag { bag, .. } => ordered().enumerate().find_map(|(done, change)| {
                let AtomChange { atom, words, nulls, weight } = change;
                bag.apply(atom, words, nulls, weight, interner, sink.chunk()).err().map(|error| (done, error))
            }),
            _ => None,
        };
        let Some((done, error)) = failed else { return Ok(()) };
        let undone: Vec<AtomChange> = ordered().take(done).collect();
        let mut discard = Discard::new(self.columns.len());
        for AtomChange { atom, words, nulls, weight } in undone.into_iter().rev() {
            self.apply_atom(atom, words, nulls, -weight, interner, &mut discard)?;
        }
        Err(error)
    }

    /// The net change of its rows, of the net changes of its atoms or of its input stages, which
    /// have them already. On an error the stage is as before.
    pub fn run(
        &mut self,
        earlier: &[RunningStage],
        nets: &[Net],
        inputs: &[&Chunk],
        interner: &mut Interner,
    ) -> Result<Chunk> {
        let width = self.columns.len();
        let mut rows = Chunk::new(width);
        if self.has_atoms() {
            nets.iter().try_for_each(Net::check)?;
            self.apply_exactly(nets, interner, &mut rows)?;
        } else {
            self.apply_inputs(earlier, inputs, interner, &mut rows)?;
        }
        if self.is_net() {
            return Ok(rows);
        }
        // (It can't fail: what a row's changes add up to is the difference of two multiplicities,
        // which fit.)
        net_chunks(&[rows], width)
    }

    /// Gives its atoms the inverse of what they got.
    pub fn take_back_atoms(&mut self, nets: &mut [Net], interner: &mut Interner) -> Result<()> {
        nets.iter_mut().for_each(Net::negate);
        let width = self.columns.len();
        let done = self.apply_atoms(nets, interner, &mut Discard::new(width));
        done.or_else(|_| self.apply_exactly(nets, interner, &mut Chunk::new(width)))
    }

    /// As `apply_atoms`, into a chunk, and fails for an overflow only if the result after all
    /// changes overflows: where a value or a count on the way does, the tree takes all changes
    /// first and then compares its results.
    pub fn apply_exactly(&mut self, nets: &[Net], interner: &mut Interner, output: &mut Chunk) -> Result<()> {
        let start = output.len();
        let failed = self.apply_atoms(nets, interner, output);
        match (&mut self.state, failed) {
            (State::Tree { tree, .. }, Err(error)) if error.code == "CROWN-OVERFLOW" => {
                output.truncate(start);
                let order: Vec<usize> = (0..nets.len()).collect();
                let changes: Vec<AtomChange> = ordered(nets, &order).collect();
                output.append(&tree.apply_by_difference(&changes, self.columns.len(), interner)?);
                Ok(())
            }
            (_, failed) => failed,
        }
    }

    /// The rows that the stage's own map makes of rows of its input.
    pub fn map(&self, map: &Map, input: &Chunk, interner: &mut Interner, output: &mut Chunk) -> Result<()> {
        if !self.lenient {
            return map.evaluate(input, interner, output);
        }
        let mut words = Vec::new();
        for index in 0..input.len() {
            let mut row = Chunk::new(input.columns.len());
            let nulls = input.read(index, &mut words);
            row.push(&words, nulls, input.weights[index]);
            // What fails is the row that waits.
            let _ = map.evaluate(&row, interner, output);
        }
        Ok(())
    }

    pub fn apply_atom(
        &mut self,
        atom: usize,
        row: &[Word],
        nulls: Nulls,
        weight: i64,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) -> Result<()> {
        match &mut self.state {
            State::Tree { tree, .. } => tree.apply(atom, row, nulls, weight, interner, sink),
            State::Bag { bag, .. } => bag.apply(atom, row, nulls, weight, interner, sink.chunk()),
            _ => Ok(()),
        }
    }

    /// Calls `each` with the rows of an atom and their copies.
    pub fn each_atom_row(&self, atom: usize, mut each: impl FnMut(&[Word], Nulls, u64) -> Result<()>) -> Result<()> {
        match &self.state {
            State::Tree { tree, .. } => {
                tree.atom_rows(atom).try_for_each(|(words, nulls, count)| each(words, nulls, count))
            }
            State::Bag { bag, .. } => {
                bag.atom_rows(atom).try_for_each(|(words, nulls, count)| each(words, nulls, count.unsigned_abs()))
            }
            _ => Ok(()),
        }
    }

    /// Adds rows without output; `loaded` must follow.
    pub fn load_atoms<'a>(
        &mut self,
        mut changes: impl Iterator<Item = AtomChange<'a>>,
        interner: &mut Interner,
    ) -> Result<()> {
        match &mut self.state {
            State::Tree { tree, .. } => tree.load_all(changes, interner),
            State::Bag { bag, loaded } => changes.try_for_each(|AtomChange { atom, words, nulls, weight }| {
                bag.apply(atom, words, nulls, weight, interner, loaded)
            }),
            _ => Ok(()),
        }
    }

    /// Makes room for `rows` more rows of an atom.
    pub fn reserve(&mut self, atom: usize, rows: usize) {
        if let State::Tree { tree, .. } = &mut self.state {
            tree.reserve(atom, rows);
        }
    }

    /// The atoms in the order in which they are best loaded.
    pub fn load_order(&self) -> Vec<usize> {
        match &self.state {
            State::Tree { tree, .. } => tree.upwards(),
            _ => Vec::new(),
        }
    }

    pub fn loaded(&mut self, interner: &mut Interner) -> Result<()> {
        match &mut self.state {
            State::Tree { tree, .. } => tree.loaded(self.columns.len(), interner),
            _ => Ok(()),
        }
    }

    /// While it is quiet, a tree returns no changes; `loaded` must follow.
    pub fn set_quiet(&mut self, quiet: bool) {
        if let State::Tree { tree, .. } = &mut self.state {
            tree.set_quiet(quiet);
        }
    }

    /// Applies the net changes of its input stages, which have them already. On an error the stage
    /// is as before.
    pub fn apply_inputs(
        &mut self,
        earlier: &[RunningStage],
        inputs: &[&Chunk],
        interner: &mut Interner,
        output: &mut Chunk,
    ) -> Result<()> {
        match &mut self.state {
            State::Tree { .. } | State::Bag { .. } | State::Port => Ok(()),
            State::Recursion(recursion) => recursion.apply(inputs, interner, output),
            State::Map(map) => map.apply(inputs[0], interner, output),
            State::Aggregate(aggregate) => aggregate.apply(inputs[0], interner, output),
            State::Distinct(distinct) => distinct.apply(inputs[0], interner, output),
            State::Materialize(materialize) => match inputs.first() {
                Some(input) => materialize.apply(input, interner, output),
                None => Ok(()),
            },
            State::Top(top) => top.apply(inputs[0], interner, output),
            State::WindowFunctions(window) => window.apply(inputs[0], interner, output),
            State::SetOperation(operation) => {
                let needed = if operation.is_linear() { &[] } else { inputs };
                let left = row_weights::Found::new(earlier, self.inputs[0], needed, interner)?;
                let right = row_weights::Found::new(earlier, self.inputs[1], needed, interner)?;
                operation.apply([inputs[0], inputs[1]], [&left, &right], interner, output)
            }
        }
    }

    /// Releases the values that its trees hold, before it is given up.
    pub fn release(&mut self, interner: &mut Interner) {
        match &mut self.state {
            State::Tree { tree, .. } => tree.release(interner),
            State::Recursion(recursion) => recursion.release(interner),
            _ => {}
        }
    }

    /// Whether a recursion in this stage is bounded. Undoing a batch, or loading rows of an earlier
    /// state, leads to rows that existed before, so it terminates.
    pub fn set_bounded(&mut self, bounded: bool) {
        if let State::Recursion(recursion) = &mut self.state {
            recursion.bounded = bounded;
        }
    }

    /// Takes the rows that are part of the plan.
    pub fn take_constants(&mut self, interner: &mut Interner, output: &mut Chunk) -> Result<()> {
        let State::Materialize(materialize) = &mut self.state else { return Ok(()) };
        let mut rows = Chunk::new(self.columns.len());
        for row in std::mem::take(&mut self.constants) {
            let mut nulls = mask::Builder::default();
            let mut words = Vec::with_capacity(row.len());
            for (position, expression) in row.iter().enumerate() {
                let value = expression.evaluate(&[], 0, interner)?;
                nulls.set(position, value.is_none());
                words.push(value.unwrap_or(0));
            }
            rows.push(&words, nulls.finish(), 1);
        }
        materialize.apply(&net_chunks(&[rows], self.columns.len())?, interner, output)
    }

    /// The row that a tree has before any change. (A global aggregate shows its own at its first
    /// batch.)
    pub fn initial_row(&self, interner: &mut Interner) -> Option<Vec<Word>> {
        match &self.state {
            State::Tree { tree, .. } => tree.initial_row(interner),
            _ => None,
        }
    }
}

/// The changes of the atoms in an order, deletions first.
fn ordered<'a>(nets: &'a [Net], order: &'a [usize]) -> impl Iterator<Item = AtomChange<'a>> {
    let of_sign = move |sign: i64| {
        let change = move |atom, (words, nulls, weight): (_, _, i64)| {
            (weight.signum() == sign).then_some(AtomChange { atom, words, nulls, weight })
        };
        order.iter().flat_map(move |atom| nets[*atom].rows().filter_map(move |row| change(*atom, row)))
    };
    of_sign(-1).chain(of_sign(1))
}

/// Reserves memory for the rows that large nets add, which otherwise grows in small steps, each of
/// which copies.
fn make_room(tree: &mut Tree, nets: &[Net]) {
    const LARGE: usize = 4096;
    for (atom, net) in nets.iter().enumerate().filter(|(_, net)| net.len() >= LARGE) {
        let added = net.rows().map(|(_, _, weight)| weight.signum()).sum::<i64>();
        tree.reserve(atom, usize::try_from(added).unwrap_or(0));
    }
}

fn compile_rows(stage: &plan::ValuesStage, columns: &[(String, DataType)]) -> Result<Vec<Vec<Compiled>>> {
    let malformed = || KernelError::plan("CROWN-PLAN-MALFORMED", format!("a row of '{}' has other columns", stage.id));
    let compile = |row: &Vec<plan::Expression>| {
        let row = row.iter().map(|value| Compiled::new(value, &[])).collect::<Result<Vec<_>>>()?;
        let types = row.iter().map(Compiled::data_type);
        if types.eq(columns.iter().map(|column| column.1)) {
            Ok(row)
        } else {
            Err(malformed())
        }
    };
    stage.rows.iter().map(compile).collect()
}

fn variables(variables: &[plan::Variable], names: &[String]) -> Result<Vec<(String, DataType)>> {
    let find = |name: &String| {
        let variable = variables.iter().find(|variable| variable.name == *name).ok_or_else(|| {
            KernelError::plan("CROWN-PLAN-MALFORMED", format!("the output '{name}' is not a variable of its stage"))
        })?;
        Ok((name.clone(), DataType::parse(&variable.data_type)?))
    };
    names.iter().map(find).collect()
}
