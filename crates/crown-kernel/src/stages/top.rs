//! ORDER BY ... LIMIT as a maintained view: all input rows in order, and the part of them that is shown.

use super::{Columns, Lookup};
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Result};
use crate::expression::{order_key, Compiled, OrderKey};
use crate::mask::Bits;
use crate::plan;
use crate::store::interner::Interner;
use crate::store::net::{net_chunks, too_many_copies};
use crate::types::DataType;
use std::collections::BTreeMap;
use std::mem::size_of;

/// A limit that no table reaches: it stands for none.
const ALL: u64 = 1 << 62;

pub struct Top {
    columns: Columns,
    order: Vec<Order>,
    limit: u64,
    offset: u64,
    interned: Vec<usize>,
    /// All input rows by their sort key, which ends with the whole row and so is unique.
    rows: BTreeMap<Box<[u8]>, Entry>,
    key_bytes: usize,
    /// The rows shown, and the key of the last row that they reach (`None`: they reach beyond the last row).
    shown: Chunk,
    boundary: Option<Box<[u8]>>,
}

struct Order {
    expression: Compiled,
    descending: bool,
    nulls_first: bool,
}

struct Entry {
    words: Box<[Word]>,
    nulls: Nulls,
    weight: i64,
}

impl Top {
    pub fn new(stage: &plan::TopStage, columns: &[(String, DataType)]) -> Result<Top> {
        let order = stage.order.iter().map(|order| {
            Ok(Order {
                expression: Compiled::new(&order.expression, columns)?,
                descending: order.descending,
                nulls_first: order.nulls_first,
            })
        });
        if stage.limit.checked_add(stage.offset).is_none_or(|end| i64::try_from(end).is_err()) {
            let message = format!("the limit and offset of stage '{}' are too large", stage.id);
            return Err(KernelError::plan("CROWN-PLAN-MALFORMED", message));
        }
        Ok(Top {
            columns: columns.to_vec(),
            order: order.collect::<Result<Vec<_>>>()?,
            limit: stage.limit,
            offset: stage.offset,
            interned: (0..columns.len()).filter(|column| columns[*column].1.interned()).collect(),
            rows: BTreeMap::new(),
            key_bytes: 0,
            shown: Chunk::new(columns.len()),
            boundary: None,
        })
    }

    #[cfg(test)]
    pub fn columns(&self) -> &[(String, DataType)] {
        &self.columns
    }

    pub fn apply(&mut self, input: &Chunk, interner: &mut Interner, out: &mut Chunk) -> Result<()> {
        let mut words = Vec::new();
        let mut keys = Vec::with_capacity(input.len());
        for index in 0..input.len() {
            let nulls = input.read(index, &mut words);
            keys.push(self.key(&words, nulls, interner)?);
        }
        let fits = |(key, weight): (_, &i64)| match self.rows.get(key) {
            Some(entry) => entry.weight.checked_add(*weight).is_some(),
            None => true,
        };
        if !keys.iter().zip(&input.weights).all(fits) {
            return Err(too_many_copies());
        }
        let mut reached = false;
        for (index, key) in keys.into_iter().enumerate() {
            reached |= self.boundary.as_ref().is_none_or(|boundary| key <= *boundary);
            let nulls = input.read(index, &mut words);
            self.add(key, &words, nulls, input.weights[index], interner);
        }
        if self.keeps_all() {
            out.append(input);
        } else if reached {
            self.slide(out)?;
        }
        Ok(())
    }

    /// Whether it only orders the rows: then it shows its input, and need not compare what it shows.
    fn keeps_all(&self) -> bool {
        self.offset == 0 && self.limit >= ALL
    }

    fn add(&mut self, key: Box<[u8]>, words: &[Word], nulls: Nulls, weight: i64, interner: &mut Interner) {
        let length = key.len();
        let present = self.interned.iter().filter(|column| !nulls.has(**column));
        match self.rows.entry(key) {
            std::collections::btree_map::Entry::Vacant(place) => {
                present.for_each(|column| interner.retain(words[*column]));
                place.insert(Entry { words: words.into(), nulls, weight });
                self.key_bytes += length;
            }
            std::collections::btree_map::Entry::Occupied(mut place) => {
                place.get_mut().weight += weight;
                if place.get().weight == 0 {
                    present.for_each(|column| interner.release(words[*column]));
                    place.remove();
                    self.key_bytes -= length;
                }
            }
        }
    }

    /// Reads the rows to show anew and emits how they differ from those shown: work follows offset + limit.
    fn slide(&mut self, out: &mut Chunk) -> Result<()> {
        let width = self.columns.len();
        let mut fresh = Chunk::new(width);
        let (mut position, end) = (0u64, self.offset + self.limit);
        self.boundary = None;
        for (key, entry) in &self.rows {
            let next = position.saturating_add_signed(entry.weight);
            let shown = next.min(end).saturating_sub(position.max(self.offset));
            if shown > 0 {
                fresh.push(&entry.words, entry.nulls, shown as i64);
            }
            position = next;
            if position >= end {
                self.boundary = Some(key.clone());
                break;
            }
        }
        self.shown.weights.iter_mut().for_each(|weight| *weight = -*weight);
        let old = std::mem::replace(&mut self.shown, fresh);
        // (It can't fail: a row's weights before and after are between 0 and the largest.)
        out.append(&net_chunks(&[old, self.shown.clone()], width)?);
        Ok(())
    }

    /// The sort key: the order's expressions, then the whole row ascending, each so that bytes compare as values do.
    fn key(&self, words: &[Word], nulls: Nulls, interner: &mut Interner) -> Result<Box<[u8]>> {
        let mut key = Vec::new();
        for order in &self.order {
            let value = order.expression.evaluate(words, nulls, interner)?;
            let value = value.map(|word| order_key(order.expression.data_type(), word, interner));
            encode(&mut key, value, order.descending, order.nulls_first);
        }
        for (column, (_, data_type)) in self.columns.iter().enumerate() {
            let value = (!nulls.has(column)).then(|| order_key(*data_type, words[column], interner));
            encode(&mut key, value, false, true);
        }
        Ok(key.into())
    }

    /// Distinct rows shown.
    pub fn rows(&self) -> usize {
        if self.keeps_all() {
            self.rows.len()
        } else {
            self.shown.len()
        }
    }

    /// Rows kept, shown or not.
    pub fn state_rows(&self) -> usize {
        self.rows.len()
    }

    /// In the stage's order.
    pub fn read(&self, start: usize, limit: usize, out: &mut Chunk) -> usize {
        let end = self.rows().min(start.saturating_add(limit));
        if self.keeps_all() {
            let rows = self.rows.values().skip(start).take(end.saturating_sub(start));
            rows.for_each(|row| out.push(&row.words, row.nulls, row.weight));
            return end;
        }
        let mut words = Vec::new();
        for index in start..end {
            let nulls = self.shown.read(index, &mut words);
            out.push(&words, nulls, self.shown.weights[index]);
        }
        end
    }

    pub fn bytes(&self) -> usize {
        let row = size_of::<(Box<[u8]>, Entry)>() * 3 / 2 + self.columns.len() * 8;
        self.rows.len() * row + self.key_bytes + self.shown.len() * (self.columns.len() + 2) * 8
    }
}

impl Lookup for Top {
    /// Scans the rows shown.
    fn weight(&self, words: &[Word], nulls: Nulls) -> i64 {
        if self.keeps_all() {
            let same = |entry: &&Entry| entry.nulls == nulls && *entry.words == *words;
            return self.rows.values().find(same).map_or(0, |entry| entry.weight);
        }
        let mut row = Vec::new();
        let same = |index: &usize| self.shown.read(*index, &mut row) == nulls && row == words;
        (0..self.shown.len()).find(same).map_or(0, |index| self.shown.weights[index])
    }
}

/// Appends a value so that the concatenation of several orders as the sequence of values does.
fn encode(key: &mut Vec<u8>, value: Option<OrderKey>, descending: bool, nulls_first: bool) {
    let Some(value) = value else {
        return key.push(if nulls_first { 0 } else { 2 });
    };
    key.push(1);
    let start = key.len();
    match value {
        OrderKey::Inline(value) => key.extend(value.to_be_bytes()),
        OrderKey::Bytes(bytes) => {
            // A zero byte becomes 0 255 and the end 0 0: so a prefix sorts before what it is a prefix of.
            for byte in bytes {
                key.push(byte);
                if byte == 0 {
                    key.push(255);
                }
            }
            key.extend([0, 0]);
        }
    }
    if descending {
        key[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}
