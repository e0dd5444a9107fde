//! Prefetching: the memory that the next changes will touch is requested before they are applied.
//!
//! An update is a chain of dependent reads (index slot, row, entry, list), each likely to miss the
//! cache if the state is large. A single update can't hide that latency, but neighbouring updates
//! can. So the changes of a batch are processed in blocks, and each link of the chain is requested
//! for the whole block before the next one is followed. Nothing here changes state or is needed for
//! correctness: the ids that were found are hints, which may be out of date when the change is
//! applied and are checked then.

use super::apply::AtomChange;
use super::edges::Edge;
use super::id::{EntryHint, RowHint};
use super::ids::Ids;
use super::lists::Lists;
use super::node_rows::NodeRows;
use super::shape::{Keyed, NodeShape, Twins};
use super::Tree;
use crate::chunk::Word;
use crate::store::hash::hash_words;
use crate::store::slab::at;

/// Changes that are looked ahead for together.
pub(super) const BLOCK: usize = 16;

/// Edges of a node that are looked ahead for.
const EDGES: usize = 4;

/// Where a change most likely finds what it looks for.
#[derive(Clone, Copy)]
pub(super) struct Hints {
    /// A row that is deleted.
    pub row: RowHint,
    /// The entries of the node's first edges by one column, as in `NodeShape::keyed`.
    pub entries: [EntryHint; EDGES],
}

impl Hints {
    pub const NOTHING: Hints = Hints { row: RowHint::NONE, entries: [EntryHint::NONE; EDGES] };

    #[inline(always)]
    pub fn entry(&self, keyed: usize) -> EntryHint {
        self.entries.get(keyed).copied().unwrap_or(EntryHint::NONE)
    }
}

/// A change that will be applied soon, and what is known about it.
#[derive(Clone, Copy)]
pub(super) struct Coming<'a> {
    pub change: AtomChange<'a>,
    node: usize,
    pub hash: u64,
    comes: bool,
    /// The hashes of the keys of a row that comes, by edge as in `hints`.
    keys: [u64; EDGES],
    pub hints: Hints,
}

impl Coming<'_> {
    pub const NOTHING: Coming<'static> = Coming {
        change: AtomChange { atom: 0, words: &[], nulls: 0, weight: 0 },
        node: 0,
        hash: 0,
        comes: false,
        keys: [0; EDGES],
        hints: Hints::NOTHING,
    };
}

impl Tree {
    /// Prefetches the slot of an atom's row without NULLs whose multiplicity will be needed;
    /// returns its hash.
    pub fn prefetch_slot(&self, atom: usize, words: &[Word]) -> u64 {
        let node = self.shape.atom_nodes[atom];
        let hash = self.hash_row(node, words, 0);
        self.ids[self.shape.nodes[node].twins.first].prefetch_slot(hash);
        hash
    }

    /// Prefetches the row itself, when its slot has arrived.
    pub fn prefetch_row(&self, atom: usize, hash: u64) {
        let node = self.shape.atom_nodes[atom];
        let Twins { first, bit } = self.shape.nodes[node].twins;
        let row = self.ids[first].guess(bit, hash);
        if !row.is_none() {
            self.rows[node].prefetch(row);
        }
    }

    #[inline(always)]
    pub(super) fn look_ahead(&self, coming: &mut [Coming]) {
        for coming in coming.iter_mut() {
            self.guess_ids(coming);
        }
        for coming in coming.iter_mut().filter(|coming| !coming.hints.row.is_none()) {
            self.follow_row(coming);
        }
        for coming in coming.iter() {
            self.find_places(coming);
        }
        for coming in coming.iter().filter(|coming| !coming.hints.row.is_none()) {
            self.find_moved(coming);
        }
    }

    /// The slots of the row, and of the keys of a row that comes.
    #[inline(always)]
    pub(super) fn find_slots<'a>(&self, change: AtomChange<'a>, coming: &mut Coming<'a>) {
        coming.change = change;
        let node = self.shape.atom_nodes[change.atom];
        let shape = self.shape_of(node);
        coming.hash = self.hash_row(node, change.words, change.nulls);
        (coming.node, coming.comes, coming.hints) = (node, change.weight > 0, Hints::NOTHING);
        self.ids_of(shape).prefetch_slot(coming.hash);
        if coming.comes && change.words.len() == shape.variables.len() {
            for (keyed, known) in shape.keyed.iter().zip(&mut coming.keys) {
                // SAFETY: the row has a word for each variable, and the column is one of them.
                *known = hash_words([unsafe { *at(change.words, keyed.column) }]);
                self.edge_of(keyed).prefetch_slot(*known);
            }
        }
    }

    /// The row, or the entries that a new row will have.
    #[inline(always)]
    fn guess_ids(&self, coming: &mut Coming) {
        if coming.comes {
            let keyed = &self.shape_of(coming.node).keyed;
            for ((keyed, hash), entry) in keyed.iter().zip(&coming.keys).zip(&mut coming.hints.entries) {
                let edge = self.edge_of(keyed);
                *entry = edge.guess(*hash);
                edge.prefetch(*entry);
            }
        } else {
            let shape = self.shape_of(coming.node);
            coming.hints.row = self.ids_of(shape).guess(shape.twins.bit, coming.hash);
            self.rows_of(coming.node).prefetch(coming.hints.row);
        }
    }

    /// The entries of a row that will go.
    #[inline(always)]
    fn follow_row(&self, coming: &mut Coming) {
        let rows = self.rows_of(coming.node);
        let Hints { row, entries } = &mut coming.hints;
        for (keyed, entry) in self.shape_of(coming.node).keyed.iter().zip(entries) {
            // SAFETY: the row was found in this block, and nothing has changed since.
            *entry = rows.entry(unsafe { row.id() }, keyed.link).into();
            self.edge_of(keyed).prefetch(*entry);
        }
    }

    /// The places in lists that will be written or read.
    #[inline(always)]
    fn find_places(&self, coming: &Coming) {
        let Hints { row, entries } = &coming.hints;
        let shape = self.shape_of(coming.node);
        let rows = self.rows_of(coming.node);
        for (keyed, entry) in shape.keyed.iter().zip(entries).filter(|(_, entry)| !entry.is_none()) {
            // SAFETY: the entry was found in this block, and nothing has changed since.
            let state = self.edge_of(keyed).entry(unsafe { entry.id() });
            let (lists, list) = if keyed.edge != coming.node {
                (&self.parents, &state.parents)
            } else if shape.connex {
                self.parents.prefetch(&state.parents, 0);
                (self.children_of(coming.node), &state.children)
            } else {
                if let Some(parent) = shape.parent.filter(|_| state.parents.len == 1) {
                    self.rows_of(parent).prefetch(self.parents.get(&state.parents, 0));
                }
                continue;
            };
            lists.prefetch(list, list.len.saturating_sub(1));
            if !row.is_none() {
                // SAFETY: as for the entry.
                lists.prefetch(list, rows.position(unsafe { row.id() }, keyed.link));
            }
        }
    }

    /// The rows that will take the place of a deleted row.
    #[inline(always)]
    fn find_moved(&self, coming: &Coming) {
        let shape = self.shape_of(coming.node);
        for (keyed, entry) in shape.keyed.iter().zip(&coming.hints.entries) {
            // SAFETY: the entry was found in this block, and nothing has changed since.
            let state = self.edge_of(keyed).entry(unsafe { entry.id() });
            let (lists, list) = if keyed.edge != coming.node {
                (&self.parents, &state.parents)
            } else if shape.connex {
                (self.children_of(coming.node), &state.children)
            } else {
                continue;
            };
            if list.len > 1 {
                self.rows_of(coming.node).prefetch(lists.get(list, list.len - 1));
            }
        }
    }

    // The nodes of coming changes come from the shape, and the tree has rows, ids, an edge and
    // lists for each of its nodes. The accessors below rely on that; they are only called with
    // nodes and edges of the shape.

    #[inline(always)]
    fn shape_of(&self, node: usize) -> &NodeShape {
        // SAFETY: see above.
        unsafe { at(&self.shape.nodes, node) }
    }

    #[inline(always)]
    fn ids_of(&self, shape: &NodeShape) -> &Ids {
        // SAFETY: see above.
        unsafe { at(&self.ids, shape.twins.first) }
    }

    #[inline(always)]
    fn rows_of(&self, node: usize) -> &NodeRows {
        // SAFETY: see above.
        unsafe { at(&self.rows, node) }
    }

    #[inline(always)]
    fn edge_of(&self, keyed: &Keyed) -> &Edge {
        // SAFETY: see above.
        unsafe { at(&self.edges, keyed.edge) }
    }

    #[inline(always)]
    fn children_of(&self, node: usize) -> &Lists {
        // SAFETY: see above.
        unsafe { at(&self.children, node) }
    }
}
