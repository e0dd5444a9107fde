//! Counts how many results each row has below it, so that results can be found by their position
//! without enumerating those before.
//!
//! The number of results of a row is its annotation times, for each connex child, the sum over the
//! rows of its entry. These sums are stored per entry, and long lists have a Fenwick tree over the
//! counts of their rows, so that a position is found in O(log n) per node.
//!
//! The first query for a position counts everything, in time linear in the state. From then on,
//! changes of the tree record which positions of which lists they touch, and the next query
//! recounts only these, and the rows above an entry whose count has changed. When so many positions
//! are recorded that a full recount is as cheap, all counts are dropped: a tree whose positions are
//! never queried spends nothing on them.

use super::id::{EntryId, RowId};
use super::shape::LINK;
use super::Tree;
use crate::plan::Mode;
use crate::store::fenwick::Fenwick;
use hashbrown::HashMap;

/// Lists up to this length are summed when they are read.
const SHORT: u32 = if cfg!(test) { 2 } else { 32 };

/// The share of the rows that may be recorded before everything is counted again.
const SHARE: usize = 4;

/// A position in a list of an edge's entry.
type Position = (EntryId, u32);

pub(super) struct Counts {
    nodes: Vec<NodeCounts>,
    overflowed: bool,
    /// The last update when it was counted.
    updates: u64,
    /// Positions that were touched since, by node, and how many at most.
    touched: Vec<Vec<Position>>,
    noted: usize,
    most: usize,
    #[cfg(test)]
    pub visited: std::sync::atomic::AtomicU64,
}

#[derive(Default)]
struct NodeCounts {
    /// For each entry of the node's edge the results of its rows.
    totals: Vec<u128>,
    /// Of long lists, by entry.
    lists: HashMap<u32, Fenwick>,
}

impl Counts {
    /// Counts the tree; `by_position` if results are to be found by position.
    fn new(tree: &Tree, by_position: bool) -> Counts {
        let nodes = tree.rows.len();
        let mut counts = Counts {
            nodes: (0..nodes).map(|_| NodeCounts::default()).collect(),
            overflowed: false,
            updates: tree.updates,
            touched: vec![Vec::new(); nodes],
            noted: 0,
            most: 1024 + tree.rows.iter().map(|rows| rows.in_semi_join).sum::<usize>() / SHARE,
            #[cfg(test)]
            visited: Default::default(),
        };
        for node in tree.connex_upwards() {
            let edge = &tree.edges[node];
            counts.nodes[node].totals.resize(edge.entries.len(), 0);
            for entry in edge.iter() {
                let list = &edge.entry(entry).children;
                let rows = (0..list.len).map(|position| tree.children[node].get(list, position));
                let mut values = Vec::new();
                let mut total = 0u128;
                for row in rows {
                    let results = counts.results(tree, node, row).unwrap_or_else(|| counts.overflow());
                    total = total.checked_add(results).unwrap_or_else(|| counts.overflow());
                    if by_position && list.len > SHORT {
                        values.push(results);
                    }
                }
                counts.nodes[node].totals[entry.index()] = total;
                if !values.is_empty() {
                    counts.nodes[node].lists.insert(entry.number(), Fenwick::new(values));
                }
            }
        }
        counts
    }

    fn overflow(&mut self) -> u128 {
        self.overflowed = true;
        0
    }

    /// How many results have this row and the rows above it.
    fn results(&self, tree: &Tree, node: usize, row: RowId) -> Option<u128> {
        self.visit(1);
        let mut results = tree.copies(node, row)?;
        for child in &tree.shape.nodes[node].connex_children {
            let entry = tree.rows[node].entry(row, tree.shape.nodes[*child].link_in_parent);
            results = results.checked_mul(self.nodes[*child].totals[entry.index()])?;
        }
        Some(results)
    }

    fn total(&self, tree: &Tree) -> u128 {
        self.nodes[tree.shape.root].totals[EntryId::FIRST.index()]
    }

    #[cold]
    fn note(&mut self, node: usize, position: Position) -> bool {
        self.touched[node].push(position);
        self.noted += 1;
        self.noted <= self.most
    }

    /// Counts the touched positions again, from the leaves up; false if it has to be done anew.
    fn refresh(&mut self, tree: &Tree) -> bool {
        if self.overflowed {
            return false;
        }
        for node in tree.connex_upwards() {
            let edge = &tree.edges[node];
            self.nodes[node].totals.resize(edge.entries.len(), 0);
            let mut positions = std::mem::take(&mut self.touched[node]);
            positions.sort_unstable();
            positions.dedup();
            for run in positions.chunk_by(|left, right| left.0 == right.0) {
                let entry = run[0].0;
                let before = self.nodes[node].totals[entry.index()];
                let Some(after) = self.recount(tree, node, run) else { return false };
                self.nodes[node].totals[entry.index()] = after;
                let Some(parent) = tree.shape.nodes[node].parent.filter(|_| before != after) else { continue };
                let rows = &tree.rows[parent];
                for row in tree.parents.rows(&edge.entry(entry).parents) {
                    if rows.missing(*row) == 0
                        && !self.note(parent, (rows.entry(*row, LINK), rows.position(*row, LINK)))
                    {
                        return false;
                    }
                }
            }
        }
        (self.updates, self.noted) = (tree.updates, 0);
        true
    }

    /// The results of the rows of an entry, of whose list these positions were touched.
    fn recount(&mut self, tree: &Tree, node: usize, positions: &[Position]) -> Option<u128> {
        let entry = positions[0].0;
        let list = &tree.edges[node].entry(entry).children;
        let row = |position: u32| tree.children[node].get(list, position);
        if list.len <= SHORT {
            self.nodes[node].lists.remove(&entry.number());
            let results = |position| self.results(tree, node, row(position));
            return (0..list.len).try_fold(0u128, |total, position| total.checked_add(results(position)?));
        }
        let mut known = self.nodes[node].lists.remove(&entry.number()).unwrap_or_default();
        known.truncate(list.len as usize);
        // What has been added is at the end, whatever else was touched.
        let mut total = known.total();
        let kept = known.len();
        for (_, position) in positions.iter().filter(|(_, position)| (*position as usize) < kept) {
            let (old, new) = (known.get(*position as usize), self.results(tree, node, row(*position))?);
            total = (total - old).checked_add(new)?;
            known.add(*position as usize, new.wrapping_sub(old));
        }
        for position in known.len() as u32..list.len {
            let new = self.results(tree, node, row(position))?;
            total = total.checked_add(new)?;
            known.push(new);
        }
        self.nodes[node].lists.insert(entry.number(), known);
        Some(total)
    }

    /// The position in an entry's list of the row with the result of this number among those of
    /// the entry, and how many come before the row.
    fn locate(&self, tree: &Tree, node: usize, entry: EntryId, number: u128) -> (u32, u128) {
        if let Some(known) = self.nodes[node].lists.get(&entry.number()) {
            self.visit(u64::from(usize::BITS - known.len().leading_zeros()));
            let (position, before) = known.find(number);
            return (position as u32, before);
        }
        let list = &tree.edges[node].entry(entry).children;
        let mut before = 0;
        for position in 0..list.len {
            let results = self.results(tree, node, tree.children[node].get(list, position)).unwrap_or(0);
            if before + results > number {
                return (position, before);
            }
            before += results;
        }
        (list.len - 1, before)
    }

    #[inline(always)]
    fn visit(&self, _rows: u64) {
        #[cfg(test)]
        self.visited.fetch_add(_rows, std::sync::atomic::Ordering::Relaxed);
    }

    pub fn bytes(&self, node: usize) -> usize {
        let NodeCounts { totals, lists } = &self.nodes[node];
        let sums = lists.values().map(Fenwick::bytes).sum::<usize>();
        totals.capacity() * size_of::<u128>()
            + sums
            + lists.capacity() * size_of::<(u32, Fenwick)>()
            + self.touched[node].capacity() * size_of::<Position>()
    }
}

impl Tree {
    /// Notes that a position of a list has another row, that its row has another annotation, or
    /// that the list has become shorter.
    #[inline(always)]
    pub(super) fn touch(&mut self, node: usize, entry: EntryId, position: u32) {
        if self.counts.is_some() {
            self.note(node, entry, position);
        }
    }

    #[cold]
    fn note(&mut self, node: usize, entry: EntryId, position: u32) {
        if self.counts.as_mut().is_some_and(|counts| !counts.note(node, (entry, position))) {
            self.counts = None;
        }
    }

    /// Notes rows that have another annotation and stay in their lists.
    #[inline(always)]
    pub(super) fn touch_rows(&mut self, node: usize, rows: &[RowId]) {
        // (In mode ring an annotation is shown, not counted.)
        if self.counts.is_some() && self.shape.mode == Mode::Bag {
            for row in rows {
                let rows = &self.rows[node];
                self.note(node, rows.entry(*row, LINK), rows.position(*row, LINK));
            }
        }
    }

    /// Gets `nth` and `draw` ready: in time linear in the state at first, then in what has changed
    /// since the last time.
    pub fn count_positions(&mut self) {
        let counts = self.counts.take().filter(|counts| {
            // Without deltas, nobody notes rows that only have another annotation.
            counts.updates == self.updates || self.deltas || self.shape.mode != Mode::Bag
        });
        let refreshed = counts.and_then(|mut counts| counts.refresh(self).then_some(counts));
        self.counts = Some(refreshed.unwrap_or_else(|| Box::new(Counts::new(self, true))));
    }

    /// How many results there are, residual conditions aside; `None` beyond 2^127.
    pub(super) fn counted(&self) -> Option<i128> {
        let counts = Counts::new(self, false);
        i128::try_from(counts.total(self)).ok().filter(|_| !counts.overflowed)
    }

    /// How many results `nth` finds; `None` if they were not counted, or are too many.
    pub(super) fn numbered(&self) -> Option<u128> {
        self.counts.as_ref().filter(|counts| !counts.overflowed).map(|counts| counts.total(self))
    }

    /// Follows the rows of the result at a position below `numbered`, parents first.
    ///
    /// The walk visits nodes parents first and moves the last one fastest, and shows all copies of
    /// a result together. So each list is entered with the number of results that one of its rows
    /// stands for beside its own.
    pub(super) fn follow(&self, number: u128, mut each: impl FnMut(usize, RowId)) {
        let Some(counts) = &self.counts else { return };
        let (mut left, mut copies) = (number, 1u128);
        let mut open = vec![(self.shape.root, EntryId::FIRST)];
        while let Some((node, entry)) = open.pop() {
            let others = open.iter().map(|(node, entry)| counts.nodes[*node].totals[entry.index()]).product::<u128>();
            let beside = copies * others;
            let (position, before) = counts.locate(self, node, entry, left / beside);
            left -= before * beside;
            let row = self.children[node].get(&self.edges[node].entry(entry).children, position);
            each(node, row);
            copies *= self.copies(node, row).unwrap_or(1);
            for child in self.shape.nodes[node].connex_children.iter().rev() {
                open.push((*child, self.rows[node].entry(row, self.shape.nodes[*child].link_in_parent)));
            }
        }
    }

    /// How often a row itself counts: in mode bag its annotation.
    fn copies(&self, node: usize, row: RowId) -> Option<u128> {
        if self.shape.mode != Mode::Bag || self.is_unit(node) {
            return Some(1);
        }
        let mut weight = Vec::with_capacity(1);
        let overflowed = self.weight(node, row, self.rows[node].multiplicity(row), None, &mut weight);
        u128::try_from(weight[0]).ok().filter(|_| !overflowed)
    }

    /// The connex nodes, each after its children.
    fn connex_upwards(&self) -> Vec<usize> {
        let mut nodes = vec![self.shape.root];
        let mut done = 0;
        while done < nodes.len() {
            nodes.extend_from_slice(&self.shape.nodes[nodes[done]].connex_children);
            done += 1;
        }
        nodes.reverse();
        nodes
    }
}
