//! Lists in the order of a value: for a comparison between the rows of two nodes, such as `a.x <
//! b.y`.
//!
//! A walk that has fixed a row of one node needs only a range of rows from the list of the other.
//! So such a list is stored a second time, in the order of the compared value, in one search tree
//! per edge and direction whose keys are (entry, value, row). At any time it has the same rows as
//! the list it mirrors: the child rows of the semi-join view, including departing rows until they
//! are cut; for parent rows, the live ones. Rows with NULL are in no range and are left out. A
//! change costs O(log n); memory is linear in the rows.

use super::id::{EntryId, RowId};
use super::node_rows::NodeRows;
use crate::expression::rank;
use crate::mask::Bits;
use crate::types::DataType;
use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Included};

/// What a key takes: its own 16 bytes, in nodes that are two thirds full.
const KEY_BYTES: usize = 24;

/// Entry, rank of the value in its type's order, row.
pub(super) type Key = (EntryId, i64, RowId);

/// A list that is kept in order: of the child rows of an edge's entries, or of their live parent
/// rows.
pub(super) struct OrderShape {
    pub edge: usize,
    pub up: bool,
    /// The position of the value in the rows.
    pub column: usize,
    pub nullable: bool,
    pub data_type: DataType,
}

/// The rows of a step's list that can hold with the rows of earlier steps.
pub(super) struct Range {
    pub bounds: Vec<Bound>,
}

/// A bound by the value of an earlier step's row.
pub(super) struct Bound {
    pub source: usize,
    pub column: usize,
    pub nullable: bool,
    pub data_type: DataType,
    /// Whether values must be above the bound, or below it.
    pub above: bool,
    /// How far from the earlier value; the bound itself is allowed.
    pub offset: i128,
}

impl Bound {
    /// Narrows a range of places by the value of the earlier row; to nothing if that is NULL.
    pub fn narrow(&self, rows: &NodeRows, row: RowId, least: &mut i128, most: &mut i128) {
        match read(rows, row, self.column, self.nullable, self.data_type) {
            None => *most = *least - 1,
            Some(value) if self.above => *least = (*least).max(i128::from(value) + self.offset),
            Some(value) => *most = (*most).min(i128::from(value) - self.offset),
        }
    }
}

/// The rank of a row's value in its type's order; none for NULL.
#[inline]
fn read(rows: &NodeRows, row: RowId, column: usize, nullable: bool, data_type: DataType) -> Option<i64> {
    if nullable && rows.words(row).last().is_some_and(|mask| mask.has(column)) {
        return None;
    }
    Some(rank(data_type, rows.word(row, column)))
}

pub(super) struct Order {
    column: usize,
    nullable: bool,
    data_type: DataType,
    keys: BTreeSet<Key>,
}

impl Order {
    fn key(&self, rows: &NodeRows, row: RowId, link: usize) -> Option<Key> {
        let value = read(rows, row, self.column, self.nullable, self.data_type)?;
        Some((rows.entry(row, link), value, row))
    }

    /// Adds a row to the entry that its link leads to.
    pub fn add(&mut self, rows: &NodeRows, row: RowId, link: usize) {
        if let Some(key) = self.key(rows, row, link) {
            let added = self.keys.insert(key);
            debug_assert!(added, "a row is in a list once");
        }
    }

    pub fn remove(&mut self, rows: &NodeRows, row: RowId, link: usize) {
        if let Some(key) = self.key(rows, row, link) {
            let removed = self.keys.remove(&key);
            debug_assert!(removed, "a row that leaves a list was in it");
        }
    }

    /// Up to `limit` rows from `from` (`after` it if it was already taken) to `to`; returns the
    /// last key.
    pub fn fetch(&self, from: Key, after: bool, to: Key, limit: usize, rows: &mut Vec<RowId>) -> Option<Key> {
        rows.clear();
        if from > to || (after && from == to) {
            return None;
        }
        let from = if after { Excluded(from) } else { Included(from) };
        let mut last = None;
        for key in self.keys.range((from, Included(to))).take(limit) {
            rows.push(key.2);
            last = Some(*key);
        }
        last
    }

    pub fn rename_rows(&mut self, ids: &[Option<RowId>]) {
        let renamed = |row: &RowId| ids[row.index()].expect("an ordered row has a new id");
        self.keys = self.keys.iter().map(|(entry, value, row)| (*entry, *value, renamed(row))).collect();
    }

    pub fn rename_entries(&mut self, ids: &[Option<EntryId>]) {
        let renamed = |entry: &EntryId| ids[entry.index()].expect("an entry with rows has a new id");
        self.keys = self.keys.iter().map(|(entry, value, row)| (renamed(entry), *value, *row)).collect();
    }
}

/// The ordered lists of a tree, by edge; both are empty in trees without any.
#[derive(Default)]
pub(super) struct Orders {
    children: Vec<Option<Order>>,
    parents: Vec<Option<Order>>,
}

impl Orders {
    pub fn new(edges: usize, shapes: &[OrderShape]) -> Orders {
        if shapes.is_empty() {
            return Orders::default();
        }
        let none = || (0..edges).map(|_| None).collect();
        let mut orders = Orders { children: none(), parents: none() };
        for OrderShape { edge, up, column, nullable, data_type } in shapes {
            let lists = if *up { &mut orders.parents } else { &mut orders.children };
            let (column, nullable, data_type) = (*column, *nullable, *data_type);
            lists[*edge] = Some(Order { column, nullable, data_type, keys: BTreeSet::new() });
        }
        orders
    }

    pub fn get(&self, edge: usize, up: bool) -> &Order {
        let lists = if up { &self.parents } else { &self.children };
        lists[edge].as_ref().expect("a range is of an ordered list")
    }

    #[inline(always)]
    pub fn of_children(&mut self, edge: usize) -> Option<&mut Order> {
        self.children.get_mut(edge)?.as_mut()
    }

    #[inline(always)]
    pub fn of_parents(&mut self, edge: usize) -> Option<&mut Order> {
        self.parents.get_mut(edge)?.as_mut()
    }

    pub fn bytes(&self, edge: usize) -> usize {
        let lists = [self.children.get(edge), self.parents.get(edge)];
        lists.into_iter().flatten().flatten().map(|order| order.keys.len() * KEY_BYTES).sum()
    }
}
