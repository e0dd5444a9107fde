//! ORDER BY ... LIMIT, for all rows or per key, as a maintained view: it stores all input rows in
//! order, and shows the first ones of each partition.

use super::sort_key::{after, append_columns, Order};
use super::Columns;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Result};
use crate::mask::Bits;
use crate::plan;
use crate::store::interner::Interner;
use crate::store::net::{net_in_place, too_many_copies};
use crate::types::DataType;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::mem::size_of;
use std::ops::Bound;

/// A limit that no table reaches; it means "no limit".
const ALL: u64 = 1 << 62;

pub struct Top {
    input: Columns,
    columns: Columns,
    partition: Vec<usize>,
    order: Vec<Order>,
    by: plan::RankFunction,
    limit: u64,
    offset: u64,
    /// The columns after those of the input.
    ranks: Vec<plan::RankFunction>,
    interned: Vec<usize>,
    /// All input rows by partition, then order, then the whole row, so that each key is unique.
    rows: BTreeMap<Box<[u8]>, Entry>,
    key_bytes: usize,
    /// By the beginning of their keys, those partitions that show rows.
    partitions: HashMap<Box<[u8]>, Partition>,
    /// Distinct rows shown, and their copies.
    shown: usize,
    copies: i128,
}

struct Entry {
    words: Box<[Word]>,
    nulls: Nulls,
    weight: i64,
    /// How much of the key is the partition, and how much partition and order: rows with equal
    /// order are peers.
    partition: u32,
    order: u32,
    standing: Standing,
}

/// What is shown of a row: some of its copies, the first with the number `first`. All zero if
/// nothing is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Standing {
    copies: i64,
    first: u64,
    rank: u64,
    dense_rank: u64,
}

struct Partition {
    /// Rows with a copy that is shown.
    shown: usize,
    /// The key of the last row that was read to find them (`None`: all were).
    boundary: Option<Box<[u8]>>,
}

/// A row's place in the order, and how much of it is the partition, and partition and order.
struct Key {
    bytes: Box<[u8]>,
    partition: u32,
    order: u32,
}

/// The most copies of a row that get a number each.
const MOST_NUMBERED: i64 = 1 << 24;

/// The row with which reading goes on; `None`: from the start.
pub type TopCursor = Option<Box<[u8]>>;

impl Top {
    pub fn new(stage: &plan::TopStage, columns: &[(String, DataType)]) -> Result<Top> {
        let malformed = |message: String| KernelError::plan("CROWN-PLAN-MALFORMED", message);
        if stage.limit.checked_add(stage.offset).is_none_or(|end| i64::try_from(end).is_err()) {
            return Err(malformed(format!("the limit and offset of stage '{}' are too large", stage.id)));
        }
        if stage.offset > 0 && !stage.partition.is_empty() {
            return Err(malformed(format!("stage '{}' skips rows of its partitions", stage.id)));
        }
        let position = |name: &String| {
            let found = columns.iter().position(|(other, _)| other == name);
            found.ok_or_else(|| malformed(format!("stage '{}' has no column '{name}' to partition by", stage.id)))
        };
        let ranks = stage.ranks.iter().map(|rank| (rank.name.clone(), DataType::Int32));
        Ok(Top {
            input: columns.to_vec(),
            columns: columns.iter().cloned().chain(ranks).collect(),
            partition: stage.partition.iter().map(position).collect::<Result<_>>()?,
            order: Order::all(&stage.order, columns)?,
            by: stage.by,
            limit: stage.limit,
            offset: stage.offset,
            ranks: stage.ranks.iter().map(|rank| rank.function).collect(),
            interned: (0..columns.len()).filter(|column| columns[*column].1.interned()).collect(),
            rows: BTreeMap::new(),
            key_bytes: 0,
            partitions: HashMap::new(),
            shown: 0,
            copies: 0,
        })
    }

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
        let most = if self.ranks.contains(&plan::RankFunction::RowNumber) { MOST_NUMBERED } else { i64::MAX };
        let fits = |(key, weight): (&Key, &i64)| {
            let before = self.rows.get(&key.bytes).map_or(0, |entry| entry.weight);
            before.checked_add(*weight).is_some_and(|after| after <= most)
        };
        if !keys.iter().zip(&input.weights).all(fits) {
            return Err(too_many_copies());
        }
        if self.keeps_all() {
            self.add_all(keys, input, interner);
            out.append(input);
            return Ok(());
        }
        let mut changes = Chunk::new(self.columns.len());
        // The partitions whose shown rows may change, with how many rows are still marked as shown.
        let mut reached: HashMap<Box<[u8]>, usize> = HashMap::new();
        for (index, Key { bytes, partition, order }) in keys.into_iter().enumerate() {
            let prefix: Box<[u8]> = bytes[..partition as usize].into();
            let known = self.partitions.get(&prefix);
            if known.is_none_or(|known| known.boundary.as_ref().is_none_or(|last| bytes <= *last)) {
                reached.entry(prefix.clone()).or_insert_with(|| known.map_or(0, |known| known.shown));
            }
            let nulls = input.read(index, &mut words);
            let weight = input.weights[index];
            let row = Entry { words: (&*words).into(), nulls, weight, partition, order, standing: Standing::default() };
            let gone = self.add(bytes, row, interner).filter(|gone| gone.standing.copies > 0);
            if let Some(Entry { words, nulls, standing, .. }) = gone {
                show(&self.ranks, &words, nulls, standing, -1, &mut changes);
                (self.shown, self.copies) = (self.shown - 1, self.copies - i128::from(standing.copies));
                if let Some(marked) = reached.get_mut(&prefix) {
                    *marked -= 1;
                }
            }
        }
        let mut reached: Vec<_> = reached.into_iter().collect();
        reached.sort_unstable();
        for (prefix, marked) in reached {
            self.slide(prefix, marked, &mut changes);
        }
        // (It can't fail: a row's copies before and after are between 0 and the largest count.)
        net_in_place(&mut changes)?;
        out.append(&changes);
        Ok(())
    }

    /// Whether the stage only orders the rows: then it shows its whole input, and need not compare
    /// what it shows.
    fn keeps_all(&self) -> bool {
        self.offset == 0 && self.limit >= ALL && self.ranks.is_empty() && self.by == plan::RankFunction::RowNumber
    }

    fn add_all(&mut self, keys: Vec<Key>, input: &Chunk, interner: &mut Interner) {
        let mut words = Vec::new();
        for (index, Key { bytes, partition, order }) in keys.into_iter().enumerate() {
            let nulls = input.read(index, &mut words);
            let weight = input.weights[index];
            self.copies += i128::from(weight);
            let row = Entry { words: (&*words).into(), nulls, weight, partition, order, standing: Standing::default() };
            self.add(bytes, row, interner);
        }
    }

    /// Adds copies of a row; returns the row if no copy is left.
    fn add(&mut self, key: Box<[u8]>, entry: Entry, interner: &mut Interner) -> Option<Entry> {
        let length = key.len();
        let all = self.keeps_all();
        let Top { interned, rows, key_bytes, .. } = self;
        let present = interned.iter().filter(|column| !entry.nulls.has(**column));
        match rows.entry(key) {
            std::collections::btree_map::Entry::Vacant(place) => {
                present.for_each(|column| interner.retain(entry.words[*column]));
                let kept = place.insert(entry);
                kept.standing.copies = if all { kept.weight } else { 0 };
                *key_bytes += length;
                None
            }
            std::collections::btree_map::Entry::Occupied(mut place) => {
                let kept = place.get_mut();
                kept.weight += entry.weight;
                if kept.weight != 0 {
                    kept.standing.copies = if all { kept.weight } else { kept.standing.copies };
                    return None;
                }
                present.for_each(|column| interner.release(entry.words[*column]));
                *key_bytes -= length;
                Some(place.remove())
            }
        }
    }

    /// Finds the rows of a partition to show, and emits how they differ from those shown: work
    /// follows their number.
    fn slide(&mut self, prefix: Box<[u8]>, mut marked: usize, out: &mut Chunk) {
        let Top { by, limit, offset, ranks, rows, shown: all_shown, copies: all_copies, .. } = self;
        let wanted = |function| ranks.contains(&function);
        let (numbered, ranked) = (wanted(plan::RankFunction::RowNumber), wanted(plan::RankFunction::Rank));
        let dense = wanted(plan::RankFunction::DenseRank);
        let end = *offset + *limit;
        let (mut position, mut rank, mut dense_rank, mut shown) = (0u64, 0u64, 0u64, 0usize);
        let mut boundary = None;
        let mut peers: &[u8] = &[];
        let beyond = after(&prefix);
        for (key, entry) in rows.range_mut::<[u8], _>((Bound::Included(&*prefix), Bound::Excluded(&*beyond))) {
            let own = &key[..entry.order as usize];
            if position == 0 || own != peers {
                (rank, dense_rank, peers) = (position + 1, dense_rank + 1, own);
            }
            let next = position.saturating_add_signed(entry.weight);
            let copies = match by {
                plan::RankFunction::RowNumber => next.min(end).saturating_sub(position.max(*offset)) as i64,
                plan::RankFunction::Rank if rank <= *limit => entry.weight,
                plan::RankFunction::DenseRank if dense_rank <= *limit => entry.weight,
                _ => 0,
            };
            let standing = Standing {
                copies,
                first: if numbered && copies > 0 { position.max(*offset) } else { 0 },
                rank: if ranked && copies > 0 { rank } else { 0 },
                dense_rank: if dense && copies > 0 { dense_rank } else { 0 },
            };
            let before = std::mem::replace(&mut entry.standing, standing);
            if before.copies > 0 {
                marked -= 1;
                *all_shown -= 1;
            }
            if standing != before {
                show(ranks, &entry.words, entry.nulls, before, -1, out);
                show(ranks, &entry.words, entry.nulls, standing, 1, out);
                *all_copies += i128::from(copies) - i128::from(before.copies);
            }
            shown += usize::from(copies > 0);
            position = next;
            let is_last = if *by == plan::RankFunction::RowNumber { position >= end } else { copies == 0 };
            if is_last && boundary.is_none() {
                boundary = Some(key.clone());
            }
            if boundary.is_some() && marked == 0 {
                break;
            }
        }
        *all_shown += shown;
        if position == 0 {
            self.partitions.remove(&prefix);
            if self.partitions.capacity() > 4 * self.partitions.len().max(16) {
                self.partitions.shrink_to(2 * self.partitions.len());
            }
        } else {
            self.partitions.insert(prefix, Partition { shown, boundary });
        }
    }

    /// The sort key: partition, order, then the whole row, each so that bytes compare as values do.
    fn key(&self, words: &[Word], nulls: Nulls, interner: &mut Interner) -> Result<Key> {
        let mut key = Vec::new();
        append_columns(&mut key, self.partition.iter().copied(), &self.input, words, nulls, interner);
        let partition = key.len() as u32;
        for order in &self.order {
            order.append(&mut key, words, nulls, interner)?;
        }
        let order = key.len() as u32;
        append_columns(&mut key, 0..self.input.len(), &self.input, words, nulls, interner);
        Ok(Key { bytes: key.into(), partition, order })
    }

    /// Rows kept, shown or not.
    pub fn state_rows(&self) -> usize {
        self.rows.len()
    }

    /// Copies of rows shown.
    pub fn count(&self) -> i128 {
        self.copies
    }

    /// Appends about `limit` further rows in the stage's order; false at the end.
    pub fn read(&self, cursor: &mut TopCursor, limit: usize, out: &mut Chunk) -> bool {
        let mut start = cursor.take().unwrap_or_default();
        let enough = out.len().saturating_add(limit);
        loop {
            let mut hidden = None;
            for (key, entry) in self.rows.range::<[u8], _>((Bound::Included(&*start), Bound::Unbounded)) {
                if entry.standing.copies == 0 {
                    hidden = Some((key, &key[..entry.partition as usize]));
                    break;
                }
                if out.len() >= enough {
                    *cursor = Some(key.clone());
                    return true;
                }
                show(&self.ranks, &entry.words, entry.nulls, entry.standing, 1, out);
            }
            let Some((key, prefix)) = hidden else { return false };
            // Rows that OFFSET skips come before those shown; all others after them.
            let boundary = self.partitions.get(prefix).and_then(|partition| partition.boundary.as_ref());
            let skipped = self.offset > 0 && boundary.is_none_or(|last| key < last);
            start = if skipped { after(key).into() } else { after(prefix).into() };
        }
    }

    /// How often the row is shown. Of a row that the input does not have an order may well fail.
    pub fn weight(&self, words: &[Word], nulls: Nulls, interner: &mut Interner) -> i64 {
        let (row, ranks) = words.split_at(self.input.len());
        if (0..ranks.len()).any(|rank| nulls.has(self.input.len() + rank)) {
            return 0;
        }
        let Ok(key) = self.key(row, nulls, interner) else { return 0 };
        let Some(Entry { standing, .. }) = self.rows.get(&key.bytes) else { return 0 };
        let mut weight = standing.copies;
        for (function, value) in self.ranks.iter().zip(ranks) {
            let fits = match function {
                plan::RankFunction::RowNumber => {
                    weight = weight.min(1);
                    (standing.first + 1..=standing.first + standing.copies as u64).contains(value)
                }
                plan::RankFunction::Rank => *value == standing.rank,
                plan::RankFunction::DenseRank => *value == standing.dense_rank,
            };
            if !fits {
                return 0;
            }
        }
        weight
    }

    pub fn bytes(&self) -> usize {
        let row = size_of::<(Box<[u8]>, Entry)>() * 3 / 2 + self.input.len() * 8;
        let partition = size_of::<(Box<[u8]>, Partition)>() + 1;
        self.rows.len() * row + self.key_bytes + self.partitions.capacity() * partition
    }
}

/// Appends what is shown of a row: each copy with its number, where numbers are shown.
fn show(ranks: &[plan::RankFunction], words: &[Word], nulls: Nulls, standing: Standing, sign: i64, out: &mut Chunk) {
    let numbered = ranks.contains(&plan::RankFunction::RowNumber);
    let mut row = words.to_vec();
    for copy in 0..if numbered { standing.copies as u64 } else { u64::from(standing.copies > 0) } {
        row.truncate(words.len());
        row.extend(ranks.iter().map(|function| match function {
            plan::RankFunction::RowNumber => standing.first + copy + 1,
            plan::RankFunction::Rank => standing.rank,
            plan::RankFunction::DenseRank => standing.dense_rank,
        }));
        out.push(&row, nulls, if numbered { sign } else { sign * standing.copies });
    }
}
