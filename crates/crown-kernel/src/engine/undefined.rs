//! Rows on which a stage's expressions fail over empty tables.
//!
//! A global aggregate has a row before any change, and an expression over that row may fail:
//! `COUNT(x) / COUNT(*)` divides by zero. Such a view exists but has no value yet: the row is held
//! at the stage where it fails, changes are applied around it, and nothing is shown until it has
//! been deleted or can be evaluated. Reading the result meanwhile returns the error of that row, as
//! the query itself would. A *batch* that produces a failing row is rejected as a whole, so only
//! rows of the initial state are undefined, and a view that has a value never loses it. (One cell
//! of a view may lose it while another one has none: see `cells::undefined`.)

use super::results::View;
use super::stage::State;
use super::{Engine, Unshown};
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Kind, Result};
use crate::mask::Bits;
use crate::store::net::{net_chunks, Net};

/// A row of an input of a stage (one of its `inputs`, or of its `feeds`).
#[derive(Clone)]
pub(super) struct Waiting {
    pub stage: usize,
    input: usize,
    words: Vec<Word>,
    nulls: Nulls,
    weight: i64,
    error: Option<KernelError>,
}

impl Engine {
    /// The error of a view's result when it has no value.
    pub(crate) fn check_defined(&self, view: usize) -> Result<()> {
        let View { below, withheld, .. } = &self.views[view];
        let mut waiting = self.undefined.iter().filter(|row| below[row.stage]);
        match waiting.find_map(|row| row.error.as_ref()).or(withheld.as_ref()) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Whether a view has no value.
    pub(super) fn is_undefined(&self, view: usize) -> bool {
        let View { below, withheld, .. } = &self.views[view];
        withheld.is_some() || self.undefined.iter().any(|row| below[row.stage])
    }

    /// Hides the views that read one of `tables`, whose rows come from views without a value, for
    /// the reason given with each; and shows the whole of the others that were withheld.
    pub(crate) fn withhold(&mut self, tables: &[(String, KernelError)]) {
        for number in 0..self.views.len() {
            let below = &self.views[number].below;
            let reads = |table: &str| {
                let readers = self.source_position(table).map(|source| &self.readers[source]);
                readers.is_some_and(|readers| readers.iter().any(|reader| below[reader.stage]))
            };
            let withheld = tables.iter().find(|(table, _)| reads(table)).map(|(_, error)| error.clone());
            let view = &mut self.views[number];
            if withheld.is_some() {
                (view.initial, view.unshown) = (Some(Chunk::new(view.columns.len())), true);
            }
            view.withheld = withheld;
        }
    }

    /// Lets all rows of a stage's inputs wait.
    pub(super) fn set_undefined(&mut self, stage: usize, outputs: &[Chunk]) {
        let stage_inputs = self.stages[stage].read_stages();
        for (number, input) in stage_inputs.into_iter().enumerate() {
            for index in 0..outputs[input].len() {
                let mut words = Vec::new();
                let nulls = outputs[input].read(index, &mut words);
                let weight = outputs[input].weights[index];
                self.undefined.push(Waiting { stage, input: number, words, nulls, weight, error: None });
            }
        }
    }

    /// The rest of a change of an input, after the waiting rows have absorbed their part.
    pub(super) fn around_undefined(&mut self, stage: usize, input: usize, change: &Chunk) -> Chunk {
        let mut left = Chunk::new(change.columns.len());
        let mut words = Vec::new();
        for index in 0..change.len() {
            let nulls = change.read(index, &mut words);
            let same =
                |row: &&mut Waiting| (row.stage, row.input, row.nulls) == (stage, input, nulls) && row.words == words;
            match self.undefined.iter_mut().find(same) {
                Some(row) => row.weight += change.weights[index],
                None => left.push(&words, nulls, change.weights[index]),
            }
        }
        self.undefined.retain(|row| row.weight != 0);
        left
    }

    /// As `run_stage`, for a stage for which rows may wait. The view has no value, so further rows
    /// on which the stage fails may join them.
    pub(super) fn run_around_undefined(&mut self, stage: usize, outputs: &[Chunk]) -> Result<Chunk> {
        let before = self.undefined.clone();
        let has_atoms = self.stages[stage].has_atoms();
        let inputs = self.stages[stage].read_stages();
        let around = |engine: &mut Engine| -> Vec<Chunk> {
            let changes = inputs.iter().enumerate();
            changes.map(|(number, input)| engine.around_undefined(stage, number, &outputs[*input])).collect()
        };
        let mut changes = around(self);
        let mut done = self.run_changes(stage, &changes);
        if done.as_ref().is_err_and(|error| error.kind == Kind::InvalidChange) {
            self.undefined = before;
            changes = around(self);
            for (input, change) in changes.iter_mut().enumerate() {
                self.set_coming_undefined(stage, input, change);
            }
            done = self.run_changes(stage, &changes);
        }
        let mut rows = done?;
        let mut taken = if has_atoms { Chunk::default() } else { changes.swap_remove(0) };
        self.take_in(stage, &mut rows, &mut taken)?;
        if !has_atoms {
            self.around.push((stage, taken));
        }
        Ok(rows)
    }

    fn run_changes(&mut self, stage: usize, changes: &[Chunk]) -> Result<Chunk> {
        for feed in &self.stages[stage].feeds {
            self.nets[stage][feed.atom].clear();
        }
        for (number, change) in changes.iter().enumerate().take(self.stages[stage].feeds.len()) {
            self.bind_feed(stage, number, change)?;
        }
        self.run_on(stage, &changes.iter().collect::<Vec<_>>())
    }

    /// Makes the inserted rows of a change wait, and keeps the deleted ones in it.
    fn set_coming_undefined(&mut self, stage: usize, input: usize, change: &mut Chunk) {
        let mut going = Chunk::new(change.columns.len());
        let mut words = Vec::new();
        for index in 0..change.len() {
            let (nulls, weight) = (change.read(index, &mut words), change.weights[index]);
            if weight < 0 {
                going.push(&words, nulls, weight);
            } else {
                self.undefined.push(Waiting { stage, input, words: words.clone(), nulls, weight, error: None });
            }
        }
        *change = going;
        self.hold_undefined();
    }

    /// Holds the values of rows that wait for as long as the engine lives: they are few, and few
    /// leave.
    pub(super) fn hold_undefined(&mut self) {
        for row in &self.undefined {
            let stage = &self.stages[row.stage];
            let input = stage.read_stages()[row.input];
            for (column, (_, data_type)) in self.stages[input].columns.iter().enumerate() {
                if data_type.interned() && !row.nulls.has(column) {
                    self.interner.retain(row.words[column]);
                }
            }
        }
    }

    /// Runs the stages on the inverse of a batch, before which the rows of `before` were waiting.
    ///
    /// Together, a stage and the rows that wait for it have received all changes of its input. So
    /// the stage gets the inverse, and in addition the rows that wait now without those that
    /// waited before: what it took in leaves it, and what left it returns.
    pub(super) fn run_back(&mut self, before: &Unshown) -> Result<()> {
        let now = std::mem::take(&mut self.undefined);
        let negative = before.undefined.iter().map(|row| Waiting { weight: -row.weight, ..row.clone() });
        let moved: Vec<Waiting> = now.into_iter().chain(negative).collect();
        let mut outputs: Vec<Chunk> = Vec::with_capacity(self.stages.len());
        for position in 0..self.stages.len() {
            let rows = if moved.iter().any(|row| row.stage == position) {
                let inputs = self.stages[position].read_stages();
                let changes = inputs.iter().enumerate().map(|(number, input)| {
                    let mut change = outputs[*input].clone();
                    for row in moved.iter().filter(|row| (row.stage, row.input) == (position, number)) {
                        change.push(&row.words, row.nulls, row.weight);
                    }
                    let width = change.columns.len();
                    net_chunks(&[change], width)
                });
                let changes = changes.collect::<Result<Vec<Chunk>>>()?;
                self.run_changes(position, &changes)?
            } else {
                self.run_plainly(position, &outputs)?
            };
            outputs.push(rows);
        }
        Ok(())
    }

    pub(super) fn has_undefined(&self, stage: usize) -> bool {
        self.undefined.iter().any(|row| row.stage == stage)
    }

    /// Whether rows on which a stage fails may wait: those over it have no value anyway.
    pub(super) fn tolerates(&self, stage: usize) -> bool {
        self.has_undefined(stage) || self.tolerant.contains(&stage)
    }

    /// The stages for which rows wait.
    pub(crate) fn waiting_stages(&self) -> impl Iterator<Item = usize> + '_ {
        self.undefined.iter().map(|row| row.stage)
    }

    /// Lets rows wait for these stages until the next call, because rows of other cells do.
    pub(crate) fn tolerate(&mut self, stages: &[usize]) {
        self.tolerant.clear();
        self.tolerant.extend_from_slice(stages);
    }

    /// Gives a stage those of the rows that wait for it that it can evaluate by now. `output` gets
    /// what this changes, and is net again; `taken` the rows.
    pub(super) fn take_in(&mut self, stage: usize, output: &mut Chunk, taken: &mut Chunk) -> Result<()> {
        for mut row in std::mem::take(&mut self.undefined) {
            if row.stage == stage {
                match self.take_row(&row, output) {
                    Ok(()) => {
                        taken.push(&row.words, row.nulls, row.weight);
                        continue;
                    }
                    Err(error) if error.kind == Kind::InvalidChange => row.error = Some(error),
                    Err(error) => return Err(error),
                }
            }
            self.undefined.push(row);
        }
        self.stages[stage].lenient = self.has_undefined(stage);
        *output = net_chunks(&[std::mem::take(output)], self.stages[stage].columns.len())?;
        Ok(())
    }

    fn take_row(&mut self, row: &Waiting, output: &mut Chunk) -> Result<()> {
        let (earlier, later) = self.stages.split_at_mut(row.stage);
        let stage = &mut later[0];
        let mut change = Chunk::new(stage.columns.len());
        if !stage.has_atoms() {
            let mut input = Chunk::new(row.words.len());
            input.push(&row.words, row.nulls, row.weight);
            stage.apply_inputs(earlier, &[&input], &mut self.interner, &mut change)?;
            output.append(&change);
            return Ok(());
        }
        let feed = &stage.feeds[row.input];
        let (atom, mut bound) = (feed.atom, Vec::new());
        if let Some(nulls) = feed.binder.bind(&row.words, row.nulls, &mut bound, &mut self.interner)? {
            let mut nets: Vec<Net> = self.nets[row.stage].iter().map(Net::like).collect();
            nets[atom].add(&bound, nulls, row.weight);
            stage.apply_atoms(&nets, &mut self.interner, &mut change)?;
            self.nets[row.stage][atom].add(&bound, nulls, row.weight);
        }
        output.append(&change);
        Ok(())
    }

    /// Whether a stage evaluates expressions over rows of other stages, and so may fail on them.
    pub(super) fn can_be_undefined(&self, stage: usize) -> bool {
        let stage = &self.stages[stage];
        !stage.feeds.is_empty()
            || matches!(stage.state, State::Map(_) | State::Top(_) | State::WindowFunctions(_) | State::Aggregate(_))
    }
}
