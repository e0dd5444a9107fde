//! Finds rows of a view by some of their values (`lookup`), and by their position (`page`, where it
//! decides whether to count or to walk).

use super::read::{check_rows, copies, known_count, read_stage, repeated};
use super::stage::{RunningStage, State};
use super::Engine;
use crate::chunk::{Chunk, Word};
use crate::error::Result;
use crate::mask::Bits;
use crate::store::interner::Interner;
use crate::tree::Fixed;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

/// Rows that are walked past in no time.
const NEAR: u64 = 512;

impl Engine {
    /// The rows with these values, duplicates repeated. The values of strings and the like are
    /// words of `values`.
    pub fn lookup(&mut self, view: usize, fixed: &[Fixed], values: &Interner) -> Result<(SchemaRef, RecordBatch)> {
        self.check_defined(view)?;
        let stage = self.views[view].stage;
        let mut own: Vec<Fixed> = Vec::with_capacity(fixed.len());
        for (column, value) in fixed {
            let interned = self.stages[stage].columns[*column].1.interned();
            // (What is not stored is forgotten again by the sweep.)
            let word = value.map(|word| if interned { self.interner.intern(values.get(word)) } else { word });
            own.push((*column, word));
        }
        let mut found = Chunk::new(self.stages[stage].columns.len());
        find(&self.stages, stage, &own, &mut self.interner, &mut found)?;
        let output = self.output(view, false, false, false);
        check_rows(copies(&found))?;
        let mut rows = repeated(found);
        let batch = output.batch(&mut rows, Vec::new(), &self.interner)?;
        self.interner.sweep();
        Ok((output.schema(), batch))
    }

    /// `limit` rows from position `offset` on, in the order of the enumeration.
    pub fn page(&mut self, view: usize, offset: u64, limit: u64) -> Result<(SchemaRef, RecordBatch)> {
        self.check_defined(view)?;
        let output = self.output(view, false, false, false);
        let mut rows = Chunk::new(self.views[view].columns.len());
        let stage = self.views[view].stage;
        if check_rows(limit.into()).is_err() {
            check_rows((self.count(view)? - i128::from(offset)).min(limit.into()))?;
        }
        // Near the start, and where most of what is passed over is shown, walking is faster.
        let counted = offset > NEAR.max(limit.saturating_mul(16))
            && count_to(&mut self.stages, stage, offset, limit, &mut self.interner, &mut rows)?;
        if !counted {
            self.walked_page(view, offset, limit, &mut rows)?;
        }
        let batch = output.batch(&mut rows, Vec::new(), &self.interner)?;
        self.interner.sweep();
        Ok((output.schema(), batch))
    }

    /// By walking past the rows before.
    fn walked_page(&mut self, view: usize, offset: u64, limit: u64, out: &mut Chunk) -> Result<()> {
        let (mut skip, mut left) = (i128::from(offset), i128::from(limit));
        let mut cursor = self.cursor(view)?;
        let mut chunk = Chunk::new(out.columns.len());
        let (mut row, mut more) = (Vec::new(), true);
        while more && left > 0 {
            chunk.clear();
            more =
                self.fill(&mut cursor, &mut chunk, usize::try_from(skip + left).map_or(4096, |rows| rows.min(4096)))?;
            for index in 0..chunk.len() {
                let copies = i128::from(chunk.weights[index]);
                let taken = (copies - skip).clamp(0, left);
                skip = (skip - copies).max(0);
                left -= taken;
                let nulls = chunk.read(index, &mut row);
                (0..taken).for_each(|_| out.push(&row, nulls, 1));
            }
        }
        Ok(())
    }
}

/// Appends `limit` rows of a stage from position `offset` on, without visiting those before; false,
/// having done nothing, where counting can't find them.
fn count_to(
    stages: &mut [RunningStage],
    position: usize,
    offset: u64,
    limit: u64,
    interner: &mut Interner,
    out: &mut Chunk,
) -> Result<bool> {
    let stage = &mut stages[position];
    let (first, count) = (usize::try_from(offset).unwrap_or(usize::MAX), usize::try_from(limit).unwrap_or(usize::MAX));
    match &mut stage.state {
        State::Tree { tree, .. } => {
            tree.count_positions();
            for number in offset..offset.saturating_add(limit) {
                match tree.nth(u128::from(number), interner, out)? {
                    None => return Ok(false),
                    Some(true) => {}
                    Some(false) => break,
                }
            }
        }
        State::Aggregate(state) => _ = state.read(first, count, out),
        State::Distinct(state) => _ = state.read(first, count, out),
        State::Map(map) if !map.filters() && !stage.lenient => {
            let input = stage.inputs[0];
            let mut rows = Chunk::new(stages[input].columns.len());
            if !count_to(stages, input, offset, limit, interner, &mut rows)? {
                return Ok(false);
            }
            let stage = &stages[position];
            if let State::Map(map) = &stage.state {
                stage.map(map, &rows, interner, out)?;
            }
        }
        State::SetOperation(operation) if !operation.gathers() => {
            let (left, right) = (stage.inputs[0], stage.inputs[1]);
            let Some(before) = known_count(stages, left).and_then(|count| u64::try_from(count).ok()) else {
                return Ok(false);
            };
            let mut rows = Chunk::new(out.columns.len());
            let of_left = limit.min(before.saturating_sub(offset));
            let found = (of_left == 0 || count_to(stages, left, offset, of_left, interner, &mut rows)?)
                && count_to(stages, right, offset.saturating_sub(before), limit - of_left, interner, &mut rows)?;
            if found {
                out.append(&rows);
            }
            return Ok(found);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Appends the rows of a stage with these values. Only rows that have a key are visited where the
/// values fix one.
fn find(
    stages: &[RunningStage],
    position: usize,
    fixed: &[Fixed],
    interner: &mut Interner,
    out: &mut Chunk,
) -> Result<()> {
    let stage = &stages[position];
    let mut found = Chunk::new(stage.columns.len());
    let done = match &stage.state {
        State::Tree { tree, .. } => tree.lookup(fixed, interner, &mut found)?,
        State::Map(map) => {
            let below: Vec<Fixed> =
                fixed.iter().filter_map(|(column, value)| Some((map.copied(*column)?, *value))).collect();
            let mut input = Chunk::new(stages[stage.inputs[0]].columns.len());
            find(stages, stage.inputs[0], &below, interner, &mut input)?;
            stage.map(map, &input, interner, &mut found)?;
            true
        }
        State::SetOperation(operation) if operation.is_linear() => {
            for input in &stage.inputs {
                find(stages, *input, fixed, interner, &mut found)?;
            }
            true
        }
        State::Aggregate(aggregate) => aggregate.lookup(fixed, &mut found),
        _ => false,
    };
    if !done {
        read_stage(stages, position, &mut found, interner)?;
    }
    keep(&found, fixed, out);
    Ok(())
}

/// Appends those rows that have the values.
fn keep(rows: &Chunk, fixed: &[Fixed], out: &mut Chunk) {
    let mut words: Vec<Word> = Vec::new();
    for index in 0..rows.len() {
        let nulls = rows.read(index, &mut words);
        let has = |(column, value): &Fixed| match value {
            None => nulls.has(*column),
            Some(word) => !nulls.has(*column) && words[*column] == *word,
        };
        if fixed.iter().all(has) {
            out.push(&words, nulls, rows.weights[index]);
        }
    }
}
