//! The full result: enumerated, counted, drawn from, looked up.

use super::row_weights;
use super::stage::{RunningStage, State};
use super::Engine;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Result};
use crate::mask::Bits;
use crate::random::Random;
use crate::stages::{TopCursor, WindowFunctionsCursor};
use crate::store::interner::Interner;
use crate::store::net::{net_chunks, too_many_copies};
use crate::tree::Cursor;
use crate::types::DataType;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

/// A place in the enumeration of a view; valid until the next change.
pub struct ResultCursor {
    view: usize,
    stage: StageCursor,
}

enum StageCursor {
    Tree(Box<Cursor>),
    /// A position in a stage that keeps its rows.
    Position(usize),
    /// A place in the order of a top stage.
    Top(TopCursor),
    WindowFunctions(WindowFunctionsCursor),
    Map(Box<StageCursor>),
    /// The side of a set operation that is read, and the place in it.
    Side(usize, Box<StageCursor>),
}

impl Engine {
    /// An error if the view has no value, here and below.
    pub fn cursor(&self, view: usize) -> Result<ResultCursor> {
        self.check_defined(view)?;
        Ok(ResultCursor { view, stage: start(&self.stages, self.views[view].stage) })
    }

    /// Appends about `rows` further rows with their multiplicity as weight; false at the end. Their
    /// strings and the like become words of `values`, which the caller keeps.
    pub fn fill_apart(
        &mut self,
        cursor: &mut ResultCursor,
        output: &mut Chunk,
        values: &mut Interner,
        rows: usize,
    ) -> Result<bool> {
        let start = output.len();
        let more = self.fill(cursor, output, rows)?;
        for (position, (_, data_type)) in self.stages[self.views[cursor.view].stage].columns.iter().enumerate() {
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

    pub(super) fn fill(&mut self, cursor: &mut ResultCursor, output: &mut Chunk, rows: usize) -> Result<bool> {
        let stage = self.views[cursor.view].stage;
        fill(&self.stages, stage, &mut cursor.stage, output, rows, &mut self.interner)
    }

    /// The full result in record batches. With `multiplicity` each distinct row once, else repeated
    /// as SQL does.
    pub fn rows(
        &mut self,
        view: usize,
        chunk_rows: usize,
        multiplicity: bool,
    ) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let output = self.output(view, false, multiplicity, false);
        let width = self.views[view].columns.len();
        let distinct = self.stages[self.views[view].stage].promise.lists_once;
        let mut batches = Vec::new();
        let mut gathered = Vec::new();
        let mut cursor = self.cursor(view)?;
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
                    written += copies(&chunk);
                    check_rows(written)?;
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
    pub fn count(&mut self, view: usize) -> Result<i128> {
        self.check_defined(view)?;
        let counted = count(&self.stages, self.views[view].stage, &mut self.interner);
        self.interner.sweep();
        counted
    }

    /// The same of the only view, where it takes constant time.
    pub fn known_count(&self) -> Option<i128> {
        let [view] = &self.views[..] else { return None };
        self.check_defined(0).ok().and_then(|()| known_count(&self.stages, view.stage))
    }

    /// How often the result has the row, whose strings and the like are words of `values`. Nothing
    /// of them stays.
    pub fn multiplicity(&mut self, view: usize, words: &[Word], nulls: Nulls, values: &Interner) -> Result<i64> {
        self.check_defined(view)?;
        let types = &self.stages[self.views[view].stage].columns;
        let own = |(position, (word, (_, data_type))): (usize, (&Word, &(String, DataType)))| {
            let interned = data_type.interned() && !nulls.has(position);
            if interned {
                self.interner.intern(values.get(*word))
            } else {
                *word
            }
        };
        let words: Vec<Word> = words.iter().zip(types).enumerate().map(own).collect();
        let found = self.find(view, &words, nulls);
        self.interner.sweep();
        found
    }

    fn find(&mut self, view: usize, words: &[Word], nulls: Nulls) -> Result<i64> {
        let stage = self.views[view].stage;
        if let Some(weight) = row_weights::weight(&self.stages, stage, words, nulls, &mut self.interner)? {
            return Ok(weight);
        }
        let mut cursor = self.cursor(view)?;
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
    pub fn sample(&mut self, view: usize, rows: usize, seed: u64) -> Result<(SchemaRef, RecordBatch)> {
        self.check_defined(view)?;
        let output = self.output(view, false, false, false);
        let mut random = Random(seed);
        let mut drawn = Chunk::new(self.views[view].columns.len());
        if !self.sample_tree(view, rows, &mut random, &mut drawn)? {
            self.sample_all(view, rows, &mut random, &mut drawn)?;
        }
        let batch = output.batch(&mut drawn, Vec::new(), &self.interner)?;
        self.interner.sweep();
        Ok((output.schema(), batch))
    }

    /// Draws from a tree, through maps that keep every row; false when the view is not of that
    /// shape.
    fn sample_tree(&mut self, view: usize, rows: usize, random: &mut Random, drawn: &mut Chunk) -> Result<bool> {
        let mut position = self.views[view].stage;
        let mut maps = Vec::new();
        while let (State::Map(map), false) = (&self.stages[position].state, maps.len() > self.stages.len()) {
            if map.filters() {
                return Ok(false);
            }
            maps.push(position);
            position = self.stages[position].inputs[0];
        }
        let mut chunk = Chunk::new(self.stages[position].columns.len());
        let State::Tree { tree, .. } = &mut self.stages[position].state else { return Ok(false) };
        tree.count_positions();
        for _ in 0..rows {
            if !tree.draw(&mut self.interner, &mut |below| random.below(below), &mut chunk)? {
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
    fn sample_all(&mut self, view: usize, rows: usize, random: &mut Random, drawn: &mut Chunk) -> Result<()> {
        let total = u128::try_from(self.count(view)?).unwrap_or(0);
        if total == 0 {
            return Ok(());
        }
        let mut wanted: Vec<(u128, usize)> = (0..rows).map(|draw| (random.below_wide(total), draw)).collect();
        wanted.sort_unstable();
        let mut picked: Vec<(usize, Vec<Word>, Nulls)> = Vec::with_capacity(rows);
        let mut wanted = wanted.into_iter().peekable();
        let mut cursor = self.cursor(view)?;
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
    let mut cursor = start(stages, position);
    while fill(stages, position, &mut cursor, output, 65536, interner)? {}
    Ok(())
}

fn start(stages: &[RunningStage], position: usize) -> StageCursor {
    let stage = &stages[position];
    match &stage.state {
        State::Tree { tree, .. } => StageCursor::Tree(Box::new(tree.cursor())),
        State::Map(_) => StageCursor::Map(Box::new(start(stages, stage.inputs[0]))),
        State::SetOperation(_) => StageCursor::Side(0, Box::new(start(stages, stage.inputs[0]))),
        State::Top(_) => StageCursor::Top(None),
        State::WindowFunctions(_) => StageCursor::WindowFunctions(None),
        _ => StageCursor::Position(0),
    }
}

fn fill(
    stages: &[RunningStage],
    position: usize,
    cursor: &mut StageCursor,
    output: &mut Chunk,
    rows: usize,
    interner: &mut Interner,
) -> Result<bool> {
    let stage = &stages[position];
    match (&stage.state, cursor) {
        (State::Tree { tree, .. }, StageCursor::Tree(cursor)) => cursor.fill(tree, interner, output, rows),
        (State::Map(map), StageCursor::Map(inner)) => {
            let mut input = Chunk::new(stages[stage.inputs[0]].columns.len());
            let more = fill(stages, stage.inputs[0], inner, &mut input, rows, interner)?;
            stage.map(map, &input, interner, output)?;
            Ok(more)
        }
        (State::SetOperation(operation), StageCursor::Side(side, inner)) => {
            let mut input = Chunk::new(stage.columns.len());
            let more = fill(stages, stage.inputs[*side], inner, &mut input, rows, interner)?;
            let asked: &[&Chunk] = if operation.gathers() { &[&input] } else { &[] };
            let other = row_weights::Found::new(stages, stage.inputs[1 - *side], asked, interner)?;
            operation.read(*side, &input, &other, output)?;
            if more || *side == 1 || !operation.reads_right() {
                return Ok(more);
            }
            *side = 1;
            **inner = start(stages, stage.inputs[1]);
            Ok(true)
        }
        (State::Top(top), StageCursor::Top(inner)) => Ok(top.read(inner, rows, output)),
        (State::WindowFunctions(window), StageCursor::WindowFunctions(inner)) => Ok(window.read(inner, rows, output)),
        (state, StageCursor::Position(from)) => {
            let (next, total) = match state {
                State::Aggregate(state) => (state.read(*from, rows, output), state.rows()),
                State::Distinct(state) => (state.read(*from, rows, output), state.rows()),
                State::Materialize(state) => (state.read(*from, rows, output), state.rows()),
                State::Recursion(state) => (state.rows.read(*from, rows, output), state.rows.len()),
                _ => (0, 0),
            };
            *from = next;
            Ok(next < total)
        }
        _ => Ok(false),
    }
}

pub(super) fn known_count(stages: &[RunningStage], position: usize) -> Option<i128> {
    let stage = &stages[position];
    match &stage.state {
        State::Tree { tree, .. } => tree.known_count(),
        State::Map(map) if !map.filters() => known_count(stages, stage.inputs[0]),
        State::Aggregate(state) => Some(state.rows() as i128),
        State::Distinct(state) => Some(state.rows() as i128),
        State::Top(state) => Some(state.count()),
        State::WindowFunctions(state) => Some(state.rows() as i128),
        State::Recursion(state) => Some(state.rows.count()),
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
    let mut cursor = start(stages, position);
    let mut chunk = Chunk::new(stage.columns.len());
    let (mut total, mut more) = (0i128, true);
    while more {
        chunk.clear();
        more = fill(stages, position, &mut cursor, &mut chunk, 65536, interner)?;
        total += chunk.weights.iter().map(|weight| i128::from(*weight)).sum::<i128>();
    }
    Ok(total)
}

/// More rows than fit into any memory: requested by mistake, from a table with large
/// multiplicities.
const MOST_ROWS: i128 = 1 << 36;

/// Refuses to list so many rows, copies counted.
pub(super) fn check_rows(rows: i128) -> Result<()> {
    if rows <= MOST_ROWS {
        return Ok(());
    }
    let message = "the result has too many duplicate rows to list them all; use multiplicity=True";
    Err(KernelError::invalid("CROWN-TOO-MANY-ROWS", message))
}

pub(super) fn copies(rows: &Chunk) -> i128 {
    rows.weights.iter().map(|weight| i128::from(*weight)).sum()
}

/// Each row as often as its weight says.
pub(super) fn repeated(rows: Chunk) -> Chunk {
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
