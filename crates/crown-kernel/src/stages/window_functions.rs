//! Window functions over ordered partitions.
//!
//! Each partition is stored in order. A change recomputes part of its partition: from the first to
//! the last row whose value it may affect, given the frames. Only rows whose values differ are
//! emitted. Each copy of a row is a separate row here.

use super::accumulator::Accumulator;
use super::sort_key::{append_columns, Order};
use super::window_frame::{Frames, Row};
use super::window_function::{fold, Fresh, Function};
use super::Columns;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Result};
use crate::expression::Compiled;
use crate::mask::{self, Bits};
use crate::plan::{self};
use crate::store::interner::Interner;
use crate::store::net::{net_in_place, too_many_copies};
use crate::types::DataType;
use std::collections::BTreeMap;
use std::mem::size_of;
use std::ops::Bound;

pub struct WindowFunctions {
    input: Columns,
    columns: Columns,
    partition: Vec<usize>,
    order: Vec<Order>,
    /// What a RANGE frame with a distance adds to, if there is one, and whether it descends.
    distance: Option<(Compiled, bool)>,
    nulls_first: bool,
    functions: Vec<Function>,
    interned: Vec<usize>,
    partitions: BTreeMap<Box<[u8]>, Partition>,
    rows: usize,
    key_bytes: usize,
}

#[derive(Default)]
struct Partition {
    rows: Vec<Row>,
    /// For aggregates of frames that begin with the partition: all its rows.
    running: Vec<Option<Accumulator>>,
}

/// A partition that a batch has changed, with what is needed to commit or to undo the change.
struct Changed {
    prefix: Box<[u8]>,
    removed: Vec<Row>,
    fresh: Vec<Fresh>,
}

/// The rows of a batch for one partition, in order: keys, the length of partition and order in
/// them, and positions.
type Changes = Vec<(Box<[u8]>, u32, usize)>;

/// The most copies of a row: each copy has separate values.
const MOST_COPIES: i64 = 1 << 24;

/// Where reading goes on: a partition, and a position in it.
pub type WindowFunctionsCursor = Option<(Box<[u8]>, usize)>;

impl WindowFunctions {
    pub fn new(stage: &plan::WindowStage, columns: &[(String, DataType)]) -> Result<WindowFunctions> {
        let malformed = |what: &str| KernelError::plan("CROWN-PLAN-MALFORMED", format!("stage '{}' {what}", stage.id));
        let position = |name: &String| {
            let found = columns.iter().position(|(other, _)| other == name);
            found.ok_or_else(|| malformed("partitions by a column that it does not have"))
        };
        let function = |(number, column)| Function::new(column, columns, columns.len() + number);
        let functions = stage.columns.iter().enumerate().map(function).collect::<Result<Vec<_>>>()?;
        let own = stage.columns.iter().zip(&functions).map(|(column, function)| (column.name.clone(), function.result));
        let by_distance = functions.iter().any(|function| Frames::has_distance(&function.frame));
        let distance = match &stage.order[..] {
            [only] if by_distance => {
                let value = Compiled::new(&only.expression, columns)?;
                let counted = matches!(
                    value.data_type(),
                    DataType::Int8
                        | DataType::Int16
                        | DataType::Int32
                        | DataType::Int64
                        | DataType::Date
                        | DataType::Timestamp
                        | DataType::TimestampNtz
                );
                if !counted {
                    return Err(malformed("adds a distance to values that can't be counted"));
                }
                Some((value, only.descending))
            }
            _ if by_distance => return Err(malformed("has a distance without one order")),
            _ => None,
        };
        Ok(WindowFunctions {
            input: columns.to_vec(),
            columns: columns.iter().cloned().chain(own).collect(),
            partition: stage.partition.iter().map(position).collect::<Result<_>>()?,
            order: Order::all(&stage.order, columns)?,
            distance,
            nulls_first: stage.order.first().is_some_and(|order| order.nulls_first),
            interned: (0..columns.len()).filter(|column| columns[*column].1.interned()).collect(),
            functions,
            partitions: BTreeMap::new(),
            rows: 0,
            key_bytes: 0,
        })
    }

    pub fn columns(&self) -> &[(String, DataType)] {
        &self.columns
    }

    pub fn apply(&mut self, input: &Chunk, interner: &mut Interner, out: &mut Chunk) -> Result<()> {
        let mut batch: BTreeMap<Box<[u8]>, Changes> = BTreeMap::new();
        let mut words = Vec::new();
        for index in 0..input.len() {
            let nulls = input.read(index, &mut words);
            let (key, partition, order) = self.key(&words, nulls, interner)?;
            batch.entry(key[..partition].into()).or_default().push((key, order, index));
        }
        let mut done: Vec<Changed> = Vec::with_capacity(batch.len());
        for (prefix, mut changes) in batch {
            changes.sort_unstable();
            let changed = self.change(prefix, &changes, input, interner);
            match changed {
                Ok(changed) => done.push(changed),
                Err(error) => {
                    done.into_iter().for_each(|changed| self.take_back(changed, interner));
                    return Err(error);
                }
            }
        }
        let mut emitted = Chunk::new(self.columns.len());
        for changed in done {
            self.commit(changed, interner, &mut emitted);
        }
        // (It can't fail: a row's copies before and after are between 0 and the largest count.)
        net_in_place(&mut emitted)?;
        out.append(&emitted);
        Ok(())
    }

    /// Changes the rows of a partition and computes their values. On an error the partition is as
    /// before.
    fn change(
        &mut self,
        prefix: Box<[u8]>,
        changes: &Changes,
        input: &Chunk,
        interner: &mut Interner,
    ) -> Result<Changed> {
        let Partition { rows, mut running } = self.partitions.remove(&prefix).unwrap_or_default();
        let first = rows.partition_point(|row| row.key < changes[0].0);
        running.resize_with(self.functions.len(), || None);
        for (function, accumulator) in self.functions.iter().zip(&mut running) {
            if let (Some(folded), Some(accumulator)) = (&function.folded, accumulator) {
                for row in rows[first..].iter().rev() {
                    // (Evaluating it again gives what it gave.)
                    let _ = fold(accumulator, folded, row, -1, interner);
                }
            }
        }
        let (rows, removed, last, problem) = self.merged(rows, first, changes, input, interner);
        let mut changed = Changed { prefix, removed, fresh: Vec::new() };
        let frames = Frames { rows: &rows, nulls_first: self.nulls_first };
        let result = problem.map_or(Ok(()), Err).and_then(|()| {
            for (function, accumulator) in self.functions.iter().zip(&mut running) {
                let range = function.reach(&frames, first, last);
                changed.fresh.push(function.evaluate(&frames, range, first, accumulator, interner)?);
            }
            Ok(())
        });
        let mut partition = Partition { rows, running };
        let evaluated = changed.fresh.len();
        if result.is_err() {
            // Those that were not evaluated have the rows before the first changed one.
            let rows = partition.rows.len();
            self.forget_running(&mut partition, |number| if number < evaluated { rows } else { first }, interner);
        }
        self.partitions.insert(changed.prefix.clone(), partition);
        match result {
            Ok(()) => Ok(changed),
            Err(error) => {
                self.take_back(changed, interner);
                Err(error)
            }
        }
    }

    /// The rows with the inserted ones added and the deleted ones, which are the last copies,
    /// removed; and the end of the changed part.
    fn merged(
        &self,
        mut rows: Vec<Row>,
        first: usize,
        changes: &Changes,
        input: &Chunk,
        interner: &mut Interner,
    ) -> (Vec<Row>, Vec<Row>, usize, Option<KernelError>) {
        let mut tail = rows.split_off(first).into_iter().peekable();
        let (mut removed, mut last, mut problem) = (Vec::new(), first, None);
        let mut words = Vec::new();
        for (key, order, index) in changes {
            while let Some(row) = tail.next_if(|row| row.key < *key) {
                rows.push(row);
            }
            let start = rows.len();
            while let Some(row) = tail.next_if(|row| row.key == *key) {
                rows.push(row);
            }
            let weight = input.weights[*index];
            if weight < 0 {
                let kept = rows.len().saturating_sub(weight.unsigned_abs() as usize).max(start);
                removed.extend(rows.drain(kept..));
            } else if weight + (rows.len() - start) as i64 > MOST_COPIES {
                problem = Some(too_many_copies());
            } else {
                let nulls = input.read(*index, &mut words);
                match self.distance_of(&words, nulls, interner) {
                    Ok(distance) => {
                        let row = Row::fresh(key.clone(), *order, &words, nulls, distance, self.columns.len());
                        rows.extend(std::iter::repeat_n(row, weight as usize));
                    }
                    Err(error) => problem = Some(error),
                }
            }
            last = rows.len();
        }
        rows.extend(tail);
        (rows, removed, last, problem)
    }

    fn distance_of(&self, words: &[Word], nulls: Nulls, interner: &mut Interner) -> Result<Option<i128>> {
        let Some((value, descending)) = &self.distance else { return Ok(None) };
        let value = value.evaluate(words, nulls, interner)?.map(|word| i128::from(word as i64));
        Ok(value.map(|value| if *descending { -value } else { value }))
    }

    /// Makes a partition as it was before the batch.
    fn take_back(&mut self, changed: Changed, interner: &mut Interner) {
        let Some(mut partition) = self.partitions.remove(&changed.prefix) else { return };
        let rows = partition.rows.len();
        self.forget_running(&mut partition, |_| rows, interner);
        partition.rows.retain(|row| !row.fresh);
        partition.rows.extend(changed.removed);
        // (Stable, so that copies that went are the last ones again.)
        partition.rows.sort_by(|left, right| left.key.cmp(&right.key));
        if !partition.rows.is_empty() {
            self.partitions.insert(changed.prefix, partition);
        }
    }

    /// Releases the values that running aggregates hold, for the first `count` rows of the
    /// partition each. They are recomputed when they are needed.
    fn forget_running(&self, partition: &mut Partition, count: impl Fn(usize) -> usize, interner: &mut Interner) {
        for (number, function) in self.functions.iter().enumerate() {
            let Some(accumulator) = partition.running.get_mut(number) else { return };
            if let (Some(folded), Some(mut accumulator)) = (&function.folded, accumulator.take()) {
                for row in &partition.rows[..count(number)] {
                    let _ = fold(&mut accumulator, folded, row, -1, interner);
                }
            }
        }
    }

    /// Writes the new values of a partition and emits what differs.
    fn commit(&mut self, changed: Changed, interner: &mut Interner, out: &mut Chunk) {
        let width = self.input.len();
        for row in &changed.removed {
            out.push(&row.words, row.nulls, -1);
            self.rows -= 1;
            self.key_bytes -= row.key.len();
            self.hold(row, interner, Interner::release);
        }
        let Some(mut partition) = self.partitions.remove(&changed.prefix) else { return };
        let start = changed.fresh.iter().map(|fresh| fresh.start).min().unwrap_or(0);
        let end = changed.fresh.iter().map(|fresh| fresh.start + fresh.values.len()).max().unwrap_or(0);
        for position in start..end {
            let row = &mut partition.rows[position];
            let mut words = row.words.clone();
            let mut nulls = mask::Builder::default();
            (0..width).for_each(|column| nulls.set(column, row.nulls.has(column)));
            for (number, fresh) in changed.fresh.iter().enumerate() {
                let value = position.checked_sub(fresh.start).and_then(|index| fresh.values.get(index));
                if let Some(value) = value {
                    words[width + number] = value.unwrap_or(0);
                }
                nulls.set(width + number, value.map_or(row.nulls.has(width + number), Option::is_none));
            }
            let nulls = nulls.finish();
            if !row.fresh && words == row.words && nulls == row.nulls {
                continue;
            }
            if row.fresh {
                self.rows += 1;
                self.key_bytes += row.key.len();
            } else {
                out.push(&row.words, row.nulls, -1);
            }
            out.push(&words, nulls, 1);
            let old = Row { words: std::mem::replace(&mut row.words, words), nulls: row.nulls, ..Row::default() };
            row.nulls = nulls;
            let was_fresh = std::mem::replace(&mut row.fresh, false);
            self.hold(row, interner, Interner::retain);
            if !was_fresh {
                self.hold(&old, interner, Interner::release);
            }
        }
        if !partition.rows.is_empty() {
            if partition.rows.capacity() > 4 * partition.rows.len().max(16) {
                partition.rows.shrink_to(2 * partition.rows.len());
            }
            self.partitions.insert(changed.prefix, partition);
        }
    }

    /// Retains or releases the interned values of a row.
    fn hold(&self, row: &Row, interner: &mut Interner, change: fn(&mut Interner, Word)) {
        let own = self.functions.iter().enumerate().filter(|(_, function)| function.result.interned());
        let columns = self.interned.iter().copied().chain(own.map(|(number, _)| self.input.len() + number));
        columns.filter(|column| !row.nulls.has(*column)).for_each(|column| change(interner, row.words[column]));
    }

    /// The sort key, and how much of it is the partition, and partition and order.
    fn key(&self, words: &[Word], nulls: Nulls, interner: &mut Interner) -> Result<(Box<[u8]>, usize, u32)> {
        let mut key = Vec::new();
        append_columns(&mut key, self.partition.iter().copied(), &self.input, words, nulls, interner);
        let partition = key.len();
        for order in &self.order {
            order.append(&mut key, words, nulls, interner)?;
        }
        let order = key.len() as u32;
        append_columns(&mut key, 0..self.input.len(), &self.input, words, nulls, interner);
        Ok((key.into(), partition, order))
    }

    /// Rows, each copy counted.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends about `limit` further rows, each distinct one once; false at the end.
    pub fn read(&self, place: &mut WindowFunctionsCursor, limit: usize, out: &mut Chunk) -> bool {
        let (prefix, mut from) = place.take().unwrap_or_default();
        let enough = out.len().saturating_add(limit);
        for (key, partition) in self.partitions.range::<[u8], _>((Bound::Included(&*prefix), Bound::Unbounded)) {
            while from < partition.rows.len() {
                if out.len() >= enough {
                    *place = Some((key.clone(), from));
                    return true;
                }
                let copies = partition.rows[from..].iter().take_while(|row| row.key == partition.rows[from].key);
                let copies: Vec<&Row> = copies.collect();
                from += copies.len();
                let mut counted: Vec<(&Row, i64)> = Vec::new();
                for row in copies {
                    match counted.iter_mut().find(|(other, _)| (&other.words, other.nulls) == (&row.words, row.nulls)) {
                        Some((_, count)) => *count += 1,
                        None => counted.push((row, 1)),
                    }
                }
                counted.into_iter().for_each(|(row, count)| out.push(&row.words, row.nulls, count));
            }
            from = 0;
        }
        false
    }

    /// How often the row is there. Of a row that the input does not have an order may well fail.
    pub fn weight(&self, words: &[Word], nulls: Nulls, interner: &mut Interner) -> i64 {
        let Ok((key, partition, _)) = self.key(&words[..self.input.len()], nulls, interner) else { return 0 };
        let Some(partition) = self.partitions.get(&key[..partition]) else { return 0 };
        let start = partition.rows.partition_point(|row| row.key < key);
        let copies = partition.rows[start..].iter().take_while(|row| row.key == key);
        copies.filter(|row| *row.words == *words && row.nulls == nulls).count() as i64
    }

    pub fn bytes(&self) -> usize {
        let running = |partition: &Partition| partition.running.iter().flatten().map(Accumulator::bytes).sum::<usize>();
        let partitions = self.partitions.values().map(|partition| {
            partition.rows.capacity() * size_of::<Row>()
                + partition.running.capacity() * size_of::<Option<Accumulator>>()
                + running(partition)
        });
        self.rows * self.columns.len() * 8 + self.key_bytes + partitions.sum::<usize>()
    }
}
