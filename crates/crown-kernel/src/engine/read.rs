//! The full result: enumerated, counted, drawn from, looked up.

use super::lookup;
use super::stage::{RunningStage, State};
use super::Engine;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Result};
use crate::mask::Bits;
use crate::random::Random;
use crate::stages::{TopPlace, WindowPlace};
use crate::store::interner::Interner;
use crate::store::net::{net_chunks, too_many_copies};
use crate::tree::Cursor;
use crate::types::DataType;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

/// A place in the enumeration of the view; valid until the next change.
pub struct ResultCursor {
    place: Place,
}

enum Place {
    Tree(Box<Cursor>),
    /// A position in a stage that keeps its rows.
    Position(usize),
    /// A place in the order of a top stage.
    Top(TopPlace),
    Window(WindowPlace),
    Map(Box<Place>),
    /// The side of a set operation that is read, and the place in it.
    Side(usize, Box<Place>),
}

impl Engine {
    fn last(&self) -> usize {
        self.stages.len() - 1
    }

    /// An error if the view has no value, here and below.
    pub fn cursor(&self) -> Result<ResultCursor> {
        self.check_defined()?;
        Ok(ResultCursor { place: start(&self.stages, self.last()) })
    }

    /// Appends about `rows` further rows with their multiplicity as weight; false at the end. Their strings and the like
    /// become words of `values`, which the caller keeps.
    pub fn fill_apart(
        &mut self,
        cursor: &mut ResultCursor,
        output: &mut Chunk,
        values: &mut Interner,
        rows: usize,
    ) -> Result<bool> {
        let start = output.len();
        let more = self.fill(cursor, output, rows)?;
        for (position, (_, data_type)) in self.stages[self.last()].columns.iter().enumerate() {
            if !data_type.interned() {
                continue;
            }
            for row in start..output.len() {
                if !output.nulls_at(row).has(position) {
                    let word = &mut output.columns[position][row];
                    *word = values.intern(self.interner.get(*word));
                }
            }
        }
        self.interner.sweep();
        Ok(more)
    }

    fn fill(&mut self, cursor: &mut ResultCursor, output: &mut Chunk, rows: usize) -> Result<bool> {
        let last = self.last();
        fill(&self.stages, last, &mut cursor.place, output, rows, &mut self.interner)
    }

    /// The full result in record batches. With `multiplicity` each distinct row once, else repeated as SQL does.
    pub fn rows(&mut self, chunk_rows: usize, multiplicity: bool) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let output = self.output(false, multiplicity, false);
        let width = self.plan.columns.len();
        let distinct = self.stages[self.last()].promise.lists_once;
        let mut batches = Vec::new();
        let mut gathered = Vec::new();
        let mut cursor = self.cursor()?;
        let mut more = true;
        let mut chunk = Chunk::new(width);
        let mut written = 0;
        while more {
            more = self.fill(&mut cursor, &mut chunk, chunk_rows)?;
            let room = if more { chunk.len() } else { 0 };
            if multiplicity && !distinct {
                gathered.push(std::mem::replace(&mut chunk, Chunk::new(width)));
            } else if !chunk.is_empty() {
                if !multiplicity {
                    written += chunk.weights.iter().map(|weight| i128::from(*weight)).sum::<i128>();
                    if written > MOST_ROWS {
                        return Err(too_many_rows());
                    }
                    chunk = repeated(chunk);
                }
                batches.push(output.batch(&mut chunk, Vec::new(), &self.interner)?);
                output.renew(&mut chunk, width, room);
            }
        }
        if !gathered.is_empty() {
            batches.push(output.batch(&mut net_chunks(&gathered, width)?, Vec::new(), &self.interner)?);
        }
        self.interner.sweep();
        Ok((output.schema(), batches))
    }

    /// How many rows the result has, copies counted.
    pub fn count(&mut self) -> Result<i128> {
        self.check_defined()?;
        let last = self.last();
        let counted = count(&self.stages, last, &mut self.interner);
        self.interner.sweep();
        counted
    }

    /// The same where it takes constant time.
    pub fn known_count(&self) -> Option<i128> {
        self.check_defined().ok().and_then(|()| known_count(&self.stages, self.last()))
    }

    /// How often the result has the row, whose strings and the like are words of `values`. Nothing of them stays.
    pub fn multiplicity(&mut self, words: &[Word], nulls: Nulls, values: &Interner) -> Result<i64> {
        self.check_defined()?;
        let types = &self.stages[self.last()].columns;
        let own = |(position, (word, (_, data_type))): (usize, (&Word, &(String, DataType)))| {
            let interned = data_type.interned() && !nulls.has(position);
            if interned {
                self.interner.intern(values.get(*word))
            } else {
                *word
            }
        };
        let words: Vec<Word> = words.iter().zip(types).enumerate().map(own).collect();
        let found = self.find(&words, nulls);
        self.interner.sweep();
        found
    }

    fn find(&mut self, words: &[Word], nulls: Nulls) -> Result<i64> {
        let last = self.last();
        if let Some(weight) = lookup::weight(&self.stages, last, words, nulls, &mut self.interner)? {
            return Ok(weight);
        }
        let mut cursor = self.cursor()?;
        let mut chunk = Chunk::new(words.len());
        let (mut row, mut total, mut more) = (Vec::new(), 0i64, true);
        while more {
            chunk.clear();
            more = self.fill(&mut cursor, &mut chunk, 4096)?;
            for index in 0..chunk.len() {
                if chunk.read(index, &mut row) == nulls && row == words {
                    total = total.checked_add(chunk.weights[index]).ok_or_else(too_many_copies)?;
                }
            }
        }
        Ok(total)
    }

    /// Rows drawn with replacement, each copy of a row as likely as any other.
    pub fn sample(&mut self, rows: usize, seed: u64) -> Result<(SchemaRef, RecordBatch)> {
        self.check_defined()?;
        let output = self.output(false, false, false);
        let mut random = Random(seed);
        let mut drawn = Chunk::new(self.plan.columns.len());
        if !self.sample_tree(rows, &mut random, &mut drawn)? {
            self.sample_all(rows, &mut random, &mut drawn)?;
        }
        let batch = output.batch(&mut drawn, Vec::new(), &self.interner)?;
        self.interner.sweep();
        Ok((output.schema(), batch))
    }

    /// Draws from a tree, through maps that keep every row; false when the view is not of that shape.
    fn sample_tree(&mut self, rows: usize, random: &mut Random, drawn: &mut Chunk) -> Result<bool> {
        let mut position = self.last();
        let mut maps = Vec::new();
        while let (State::Map(map), false) = (&self.stages[position].state, maps.len() > self.stages.len()) {
            if map.filters() {
                return Ok(false);
            }
            maps.push(position);
            position = self.stages[position].inputs[0];
        }
        let State::Tree { tree, .. } = &self.stages[position].state else { return Ok(false) };
        let sampler = tree.sampler();
        let mut chunk = Chunk::new(self.stages[position].columns.len());
        for _ in 0..rows {
            if !sampler.draw(tree, &mut self.interner, &mut |below| random.below(below), &mut chunk)? {
                break;
            }
        }
        for map in maps.into_iter().rev() {
            let mut mapped = Chunk::new(self.stages[map].columns.len());
            if let State::Map(map) = &self.stages[map].state {
                map.evaluate(&chunk, &mut self.interner, &mut mapped)?;
            }
            chunk = mapped;
        }
        *drawn = chunk;
        Ok(true)
    }

    /// Draws numbers of rows first, then enumerates and picks.
    fn sample_all(&mut self, rows: usize, random: &mut Random, drawn: &mut Chunk) -> Result<()> {
        let total = u128::try_from(self.count()?).unwrap_or(0);
        if total == 0 {
            return Ok(());
        }
        let mut wanted: Vec<(u128, usize)> = (0..rows).map(|draw| (random.below_wide(total), draw)).collect();
        wanted.sort_unstable();
        let mut picked: Vec<(usize, Vec<Word>, Nulls)> = Vec::with_capacity(rows);
        let mut wanted = wanted.into_iter().peekable();
        let mut cursor = self.cursor()?;
        let mut chunk = Chunk::new(drawn.columns.len());
        let (mut passed, mut more) = (0u128, true);
        while more && wanted.peek().is_some() {
            chunk.clear();
            more = self.fill(&mut cursor, &mut chunk, 4096)?;
            for index in 0..chunk.len() {
                passed += u128::from(chunk.weights[index].unsigned_abs());
                while let Some((_, draw)) = wanted.next_if(|(number, _)| *number < passed) {
                    let mut row = Vec::new();
                    let nulls = chunk.read(index, &mut row);
                    picked.push((draw, row, nulls));
                }
            }
        }
        picked.sort_unstable();
        for (_, row, nulls) in picked {
            drawn.push(&row, nulls, 1);
        }
        Ok(())
    }
}

/// Appends all rows of a stage.
pub(super) fn read_stage(
    stages: &[RunningStage],
    position: usize,
    output: &mut Chunk,
    interner: &mut Interner,
) -> Result<()> {
    let mut place = start(stages, position);
    while fill(stages, position, &mut place, output, 65536, interner)? {}
    Ok(())
}

fn start(stages: &[RunningStage], position: usize) -> Place {
    let stage = &stages[position];
    match &stage.state {
        State::Tree { tree, .. } => Place::Tree(Box::new(tree.cursor())),
        State::Map(_) => Place::Map(Box::new(start(stages, stage.inputs[0]))),
        State::SetOperation(_) => Place::Side(0, Box::new(start(stages, stage.inputs[0]))),
        State::Top(_) => Place::Top(None),
        State::Window(_) => Place::Window(None),
        _ => Place::Position(0),
    }
}

fn fill(
    stages: &[RunningStage],
    position: usize,
    place: &mut Place,
    output: &mut Chunk,
    rows: usize,
    interner: &mut Interner,
) -> Result<bool> {
    let stage = &stages[position];
    match (&stage.state, place) {
        (State::Tree { tree, .. }, Place::Tree(cursor)) => cursor.fill(tree, interner, output, rows),
        (State::Map(map), Place::Map(inner)) => {
            let mut input = Chunk::new(stages[stage.inputs[0]].columns.len());
            let more = fill(stages, stage.inputs[0], inner, &mut input, rows, interner)?;
            stage.map(map, &input, interner, output)?;
            Ok(more)
        }
        (State::SetOperation(operation), Place::Side(side, inner)) => {
            let mut input = Chunk::new(stage.columns.len());
            let more = fill(stages, stage.inputs[*side], inner, &mut input, rows, interner)?;
            let asked: &[&Chunk] = if operation.gathers() { &[&input] } else { &[] };
            let other = lookup::Found::new(stages, stage.inputs[1 - *side], asked, interner)?;
            operation.read(*side, &input, &other, output)?;
            if more || *side == 1 || !operation.reads_right() {
                return Ok(more);
            }
            *side = 1;
            **inner = start(stages, stage.inputs[1]);
            Ok(true)
        }
        (State::Top(top), Place::Top(place)) => Ok(top.read(place, rows, output)),
        (State::Window(window), Place::Window(place)) => Ok(window.read(place, rows, output)),
        (state, Place::Position(from)) => {
            let (next, total) = match state {
                State::Aggregate(state) => (state.read(*from, rows, output), state.rows()),
                State::Distinct(state) => (state.read(*from, rows, output), state.rows()),
                State::Materialize(state) => (state.read(*from, rows, output), state.rows()),
                _ => (0, 0),
            };
            *from = next;
            Ok(next < total)
        }
        _ => Ok(false),
    }
}

fn known_count(stages: &[RunningStage], position: usize) -> Option<i128> {
    let stage = &stages[position];
    match &stage.state {
        State::Tree { tree, .. } => tree.known_count(),
        State::Map(map) if !map.filters() => known_count(stages, stage.inputs[0]),
        State::Aggregate(state) => Some(state.rows() as i128),
        State::Distinct(state) => Some(state.rows() as i128),
        State::Top(state) => Some(state.count()),
        State::Window(state) => Some(state.rows() as i128),
        State::SetOperation(operation) if operation.is_linear() => {
            Some(known_count(stages, stage.inputs[0])? + known_count(stages, stage.inputs[1])?)
        }
        _ => None,
    }
}

fn count(stages: &[RunningStage], position: usize, interner: &mut Interner) -> Result<i128> {
    if let Some(known) = known_count(stages, position) {
        return Ok(known);
    }
    let stage = &stages[position];
    match &stage.state {
        State::Tree { tree, .. } => {
            if let Some(count) = tree.count() {
                return Ok(count);
            }
        }
        State::Map(map) if !map.filters() => return count(stages, stage.inputs[0], interner),
        State::SetOperation(operation) if operation.is_linear() => {
            return Ok(count(stages, stage.inputs[0], interner)? + count(stages, stage.inputs[1], interner)?);
        }
        _ => {}
    }
    let mut place = start(stages, position);
    let mut chunk = Chunk::new(stage.columns.len());
    let (mut total, mut more) = (0i128, true);
    while more {
        chunk.clear();
        more = fill(stages, position, &mut place, &mut chunk, 65536, interner)?;
        total += chunk.weights.iter().map(|weight| i128::from(*weight)).sum::<i128>();
    }
    Ok(total)
}

/// More rows than any memory holds: asked for by mistake, of a table with large multiplicities.
const MOST_ROWS: i128 = 1 << 36;

fn too_many_rows() -> KernelError {
    let message = "the result has too many duplicate rows to list them all; use multiplicity=True";
    KernelError::invalid("CROWN-TOO-MANY-ROWS", message)
}

/// Each row as often as its weight says.
fn repeated(rows: Chunk) -> Chunk {
    if rows.weights.iter().all(|weight| *weight == 1) {
        return rows;
    }
    let mut result = Chunk::new(rows.columns.len());
    let mut words = Vec::new();
    for index in 0..rows.len() {
        let nulls = rows.read(index, &mut words);
        for _ in 0..rows.weights[index] {
            result.push(&words, nulls, 1);
        }
    }
    result
}
