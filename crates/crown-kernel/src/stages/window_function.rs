//! One window function over the rows of a partition: which values a change may affect, and how they
//! are computed.

use super::accumulator::{Accumulator, Folded};
use super::window_frame::{Frames, Row};
use crate::chunk::Word;
use crate::error::{overflow, KernelError, Result};
use crate::expression::Compiled;
use crate::plan::{self, WindowFunction};
use crate::store::interner::Interner;
use crate::types::{float_word, DataType};
use std::ops::Range;

pub struct Function {
    function: WindowFunction,
    /// The position of its values in a row.
    column: usize,
    pub result: DataType,
    arguments: Vec<Compiled>,
    offset: i64,
    ignore_nulls: bool,
    pub frame: plan::WindowFrame,
    pub folded: Option<Folded>,
}

/// The new values of one function: of the rows from `start` on.
pub struct Fresh {
    pub start: usize,
    pub values: Vec<Option<Word>>,
}

impl Function {
    pub fn new(column: &plan::WindowColumn, columns: &[(String, DataType)], place: usize) -> Result<Function> {
        let arguments =
            column.arguments.iter().map(|argument| Compiled::new(argument, columns)).collect::<Result<Vec<_>>>()?;
        let folded = column.aggregate.as_ref().map(|aggregate| Folded::new(aggregate, columns)).transpose()?;
        let result = DataType::parse(&column.data_type)?;
        let types: Vec<DataType> = arguments.iter().map(Compiled::data_type).collect();
        let fits = match column.function {
            WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank => result == DataType::Int32,
            WindowFunction::Ntile => result == DataType::Int32 && column.offset > 0,
            WindowFunction::PercentRank | WindowFunction::CumeDist => result == DataType::Float64,
            WindowFunction::Lag => types == [result, result],
            WindowFunction::FirstValue | WindowFunction::LastValue => types == [result],
            WindowFunction::NthValue => types == [result] && column.offset > 0,
            WindowFunction::Aggregate => folded.as_ref().is_some_and(|folded| folded.kind.result == result),
        };
        if !fits {
            let message = format!("the window function '{}' has the wrong arguments or type", column.name);
            return Err(KernelError::plan("CROWN-PLAN-MALFORMED", message));
        }
        Ok(Function {
            function: column.function,
            column: place,
            result,
            arguments,
            offset: column.offset,
            ignore_nulls: column.ignore_nulls,
            frame: column.frame.clone().unwrap_or_default(),
            folded,
        })
    }

    /// The rows whose value may change if the rows from `first` to `last` were inserted, deleted or
    /// moved.
    pub fn reach(&self, frames: &Frames, first: usize, last: usize) -> Range<usize> {
        let end = frames.rows.len();
        let within = |from: i128, to: i128| {
            let clip = |position: i128| position.clamp(0, end as i128) as usize;
            clip(from)..clip(to).max(clip(from))
        };
        let (first_row, last_row) = (first as i128, last as i128);
        match self.function {
            WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank => first..end,
            WindowFunction::PercentRank | WindowFunction::CumeDist | WindowFunction::Ntile => 0..end,
            WindowFunction::Lag if self.ignore_nulls => 0..end,
            WindowFunction::Lag => {
                let offset = i128::from(self.offset);
                within(first_row + offset.min(0), last_row + offset.max(0))
            }
            _ => {
                let plan::WindowFrame { unit, start, end: stop } = &self.frame;
                match (unit, start, stop) {
                    (plan::FrameUnit::Rows, start, stop) => within(
                        stop.map_or(0, |stop| (first_row - i128::from(stop) - 1).min(first_row)),
                        start.map_or(end as i128, |start| (last_row - i128::from(start) + 1).max(last_row)),
                    ),
                    // Rows that are equal in the order to one that changed are before it too.
                    (plan::FrameUnit::Range, None, Some(0)) => {
                        let before = frames.peers(first.min(end.saturating_sub(1))).start;
                        before.min(first.checked_sub(1).map_or(0, |row| frames.peers(row).start))..end
                    }
                    (plan::FrameUnit::Range, ..) => 0..end,
                }
            }
        }
    }

    pub fn evaluate(
        &self,
        frames: &Frames,
        range: Range<usize>,
        first: usize,
        running: &mut Option<Accumulator>,
        interner: &mut Interner,
    ) -> Result<Fresh> {
        let start = range.start;
        if let Some(folded) = &self.folded {
            let values = self.fold(folded, frames, range, first, running, interner)?;
            return Ok(Fresh { start, values });
        }
        let rows = frames.rows;
        let mut values = Vec::with_capacity(range.len());
        for position in range {
            let value = match self.function {
                WindowFunction::RowNumber => Some(integer(position + 1)?),
                WindowFunction::Rank => Some(integer(frames.peers(position).start + 1)?),
                WindowFunction::DenseRank => {
                    Some(self.dense_rank(frames, position, values.last().copied().flatten())?)
                }
                WindowFunction::PercentRank => {
                    let others = (rows.len() - 1) as f64;
                    let before = frames.peers(position).start as f64;
                    Some(float_word(if rows.len() == 1 { 0.0 } else { before / others }))
                }
                WindowFunction::CumeDist => Some(float_word(frames.peers(position).end as f64 / rows.len() as f64)),
                WindowFunction::Ntile => Some(integer(bucket(position, rows.len(), self.offset as usize))?),
                WindowFunction::Lag => self.lag(frames, position, interner)?,
                _ => self.in_frame(frames, position, interner)?,
            };
            values.push(value);
        }
        Ok(Fresh { start, values })
    }

    fn dense_rank(&self, frames: &Frames, position: usize, before: Option<Word>) -> Result<Word> {
        let Some(row) = position.checked_sub(1) else { return Ok(1) };
        let same = frames.rows[row].peers() == frames.rows[position].peers();
        // Rows before the first changed one have their ranks.
        let rank = before.unwrap_or(frames.rows[row].words[self.column]);
        integer((rank + Word::from(!same)) as usize)
    }

    fn argument(&self, frames: &Frames, row: usize, interner: &mut Interner) -> Result<Option<Word>> {
        self.arguments[0].evaluate(&frames.rows[row].words, frames.rows[row].nulls, interner)
    }

    fn lag(&self, frames: &Frames, position: usize, interner: &mut Interner) -> Result<Option<Word>> {
        let row = &frames.rows[position];
        let mut left = self.offset.unsigned_abs() as usize;
        let step = self.offset.signum();
        let mut at = position as i64;
        if !self.ignore_nulls || left == 0 {
            at -= self.offset;
            if (0..frames.rows.len() as i64).contains(&at) {
                return self.argument(frames, at as usize, interner);
            }
        } else {
            loop {
                at -= step;
                if !(0..frames.rows.len() as i64).contains(&at) {
                    break;
                }
                let value = self.argument(frames, at as usize, interner)?;
                left -= usize::from(value.is_some());
                if left == 0 {
                    return Ok(value);
                }
            }
        }
        self.arguments[1].evaluate(&row.words, row.nulls, interner)
    }

    /// FIRST_VALUE, LAST_VALUE and NTH_VALUE.
    fn in_frame(&self, frames: &Frames, position: usize, interner: &mut Interner) -> Result<Option<Word>> {
        let frame = frames.bounds(position, &self.frame);
        let number = if self.function == WindowFunction::NthValue { self.offset as usize } else { 1 };
        if !self.ignore_nulls {
            let row = match self.function {
                WindowFunction::LastValue => frame.clone().next_back(),
                _ => frame.clone().nth(number - 1),
            };
            return row.map_or(Ok(None), |row| self.argument(frames, row, interner));
        }
        let mut left = number;
        let backwards = self.function == WindowFunction::LastValue;
        for step in 0..frame.len() {
            let row = if backwards { frame.end - 1 - step } else { frame.start + step };
            let value = self.argument(frames, row, interner)?;
            left -= usize::from(value.is_some());
            if left == 0 {
                return Ok(value);
            }
        }
        Ok(None)
    }

    /// An aggregate of each row's frame. Frames move forward only, so each row enters and leaves
    /// once.
    fn fold(
        &self,
        folded: &Folded,
        frames: &Frames,
        range: Range<usize>,
        first: usize,
        running: &mut Option<Accumulator>,
        interner: &mut Interner,
    ) -> Result<Vec<Option<Word>>> {
        let rows = frames.rows;
        let keeps = self.frame.start.is_none();
        // A running aggregate has the rows before the first changed one.
        let mut inside = if running.is_some() { 0..first } else { 0..0 };
        let mut accumulator = running.take().unwrap_or_else(|| Accumulator::new(&folded.kind));
        let mut values = Vec::with_capacity(range.len());
        let mut failed = None;
        if let Some(row) = range.clone().next() {
            let frame = frames.bounds(row, &self.frame);
            while failed.is_none() && inside.end > frame.end.max(inside.start) {
                inside.end -= 1;
                failed = fold(&mut accumulator, folded, &rows[inside.end], -1, interner).err();
            }
            if inside.is_empty() && !keeps {
                inside = frame.start..frame.start;
            }
        }
        for position in range {
            let frame = frames.bounds(position, &self.frame);
            let end = frame.end.max(frame.start);
            while failed.is_none() && inside.end < end {
                failed = fold(&mut accumulator, folded, &rows[inside.end], 1, interner).err();
                inside.end += usize::from(failed.is_none());
            }
            while failed.is_none() && inside.start < frame.start {
                failed = fold(&mut accumulator, folded, &rows[inside.start], -1, interner).err();
                inside.start += usize::from(failed.is_none());
            }
            if failed.is_none() {
                match accumulator.result(&folded.kind, interner) {
                    Ok(value) => values.push(value),
                    Err(error) => failed = Some(error),
                }
            }
        }
        if keeps && failed.is_none() {
            while failed.is_none() && inside.end < rows.len() {
                failed = fold(&mut accumulator, folded, &rows[inside.end], 1, interner).err();
                inside.end += usize::from(failed.is_none());
            }
            if failed.is_none() {
                *running = Some(accumulator);
                return Ok(values);
            }
        }
        // Release what the accumulators hold.
        for row in &rows[inside] {
            let _ = fold(&mut accumulator, folded, row, -1, interner);
        }
        failed.map_or(Ok(values), Err)
    }
}

/// Adds a row to an aggregate, or removes it.
pub fn fold(
    accumulator: &mut Accumulator,
    folded: &Folded,
    row: &Row,
    weight: i64,
    interner: &mut Interner,
) -> Result<()> {
    match folded.evaluate(&row.words, row.nulls, interner)? {
        Some(argument) if accumulator.fold(&folded.kind, &argument, weight, interner) => Err(overflow()),
        _ => Ok(()),
    }
}

fn integer(number: usize) -> Result<Word> {
    i32::try_from(number).map(|number| number as i64 as Word).map_err(|_| overflow())
}

/// NTILE: the first buckets have a row more if the rows can't be divided.
fn bucket(position: usize, rows: usize, buckets: usize) -> usize {
    let (size, larger) = (rows / buckets, rows % buckets);
    let in_larger = larger * (size + 1);
    if position < in_larger {
        position / (size + 1) + 1
    } else {
        larger + (position - in_larger) / size.max(1) + 1
    }
}
