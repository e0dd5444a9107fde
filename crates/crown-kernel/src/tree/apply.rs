//! Looking ahead: the memory that coming changes will touch is asked for before they are applied.
//!
//! An update is a chain of dependent reads (index slot, row, entry, list), each likely to miss the cache when the state is large. A single
//! update can't hide that; neighbouring updates can. So the changes of a batch are taken in blocks, and each link of the chain
//! is asked for for the whole block before the next one is followed. Nothing here changes state or is needed for
//! correctness: the ids that were found are hints, which may be out of date when the change is applied and are checked then.

use super::ids::NONE;
use super::shape::Twins;
use super::{Sink, Tree};
use crate::chunk::{Nulls, Word};
use crate::error::KernelError;
use crate::store::hash::hash_words;
use crate::store::interner::Interner;
use crate::store::slab::at;

/// One change of one atom, as `Tree::apply` takes it.
#[derive(Clone, Copy)]
pub struct AtomChange<'a> {
    pub atom: usize,
    pub words: &'a [Word],
    pub nulls: Nulls,
    pub weight: i64,
}

/// Changes that are looked ahead for together.
const BLOCK: usize = 16;

/// Edges of a node that are looked ahead for.
const EDGES: usize = 4;

/// Where a change most likely finds what it looks for; `NONE` where nothing is known.
#[derive(Clone, Copy)]
pub(super) struct Hints {
    /// A row that goes.
    pub row: u32,
    /// The entries of the node's first edges by one column, as in `NodeShape::keyed`.
    pub entries: [u32; EDGES],
}

impl Hints {
    pub const NOTHING: Hints = Hints { row: NONE, entries: [NONE; EDGES] };

    #[inline(always)]
    pub fn entry(&self, keyed: usize) -> u32 {
        self.entries.get(keyed).copied().unwrap_or(NONE)
    }
}

/// A coming change and what is known of it.
#[derive(Clone, Copy)]
struct Coming<'a> {
    change: AtomChange<'a>,
    node: usize,
    hash: u64,
    comes: bool,
    /// The hashes of the keys of a row that comes, by edge as in `hints`.
    keys: [u64; EDGES],
    hints: Hints,
}

impl Coming<'_> {
    const NOTHING: Coming<'static> = Coming {
        change: AtomChange { atom: 0, words: &[], nulls: 0, weight: 0 },
        node: 0,
        hash: 0,
        comes: false,
        keys: [0; EDGES],
        hints: Hints::NOTHING,
    };
}

impl Tree {
    /// Applies changes one after the other, as `apply` does. An error says which change failed; those before it were made.
    pub fn apply_all<'a>(
        &mut self,
        changes: impl Iterator<Item = AtomChange<'a>>,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) -> Result<(), (usize, KernelError)> {
        let mut changes = changes.fuse();
        let mut block = [Coming::NOTHING; BLOCK];
        let mut done = 0;
        loop {
            let mut size = 0;
            for (coming, change) in block.iter_mut().zip(&mut changes) {
                self.find_slots(change, coming);
                size += 1;
            }
            if size == 0 {
                return Ok(());
            }
            let block = &mut block[..size];
            if size > 1 {
                self.look_ahead(block);
            }
            for Coming { change, hash, hints, .. } in block {
                self.apply_hashed(change, *hash, hints, interner, sink).map_err(|error| (done, error))?;
                done += 1;
            }
        }
    }

    /// Asks for the slot of an atom's row without NULLs whose multiplicity will be asked for; gives its hash.
    pub fn prefetch_slot(&self, atom: usize, words: &[Word]) -> u64 {
        let node = self.shape.atom_nodes[atom];
        let hash = self.hash_row(node, words, 0);
        self.ids[self.shape.nodes[node].twins.first].prefetch_slot(hash);
        hash
    }

    /// Asks for the row itself, when its slot has come.
    pub fn prefetch_row(&self, atom: usize, hash: u64) {
        let node = self.shape.atom_nodes[atom];
        let Twins { first, bit } = self.shape.nodes[node].twins;
        let row = self.ids[first].guess(bit, hash);
        if row != NONE {
            self.rows[node].prefetch(row);
        }
    }

    #[inline(always)]
    fn look_ahead(&self, coming: &mut [Coming]) {
        for coming in coming.iter_mut() {
            self.guess_ids(coming);
        }
        for coming in coming.iter_mut().filter(|coming| coming.hints.row != NONE) {
            self.follow_row(coming);
        }
        for coming in coming.iter() {
            self.find_places(coming);
        }
        for coming in coming.iter().filter(|coming| coming.hints.row != NONE) {
            self.find_moved(coming);
        }
    }

    /// The slots of the row, and of the keys of a row that comes.
    #[inline(always)]
    fn find_slots<'a>(&self, change: AtomChange<'a>, coming: &mut Coming<'a>) {
        coming.change = change;
        let node = self.shape.atom_nodes[change.atom];
        let shape = at(&self.shape.nodes, node);
        coming.hash = self.hash_row(node, change.words, change.nulls);
        (coming.node, coming.comes, coming.hints) = (node, change.weight > 0, Hints::NOTHING);
        at(&self.ids, shape.twins.first).prefetch_slot(coming.hash);
        if coming.comes && change.words.len() == shape.variables.len() {
            for (keyed, known) in shape.keyed.iter().zip(&mut coming.keys) {
                *known = hash_words([*at(change.words, keyed.column)]);
                at(&self.edges, keyed.edge).prefetch_slot(*known);
            }
        }
    }

    /// The row, or the entries that a new row will have.
    #[inline(always)]
    fn guess_ids(&self, coming: &mut Coming) {
        if coming.comes {
            let keyed = &at(&self.shape.nodes, coming.node).keyed;
            for ((keyed, hash), entry) in keyed.iter().zip(&coming.keys).zip(&mut coming.hints.entries) {
                let edge = at(&self.edges, keyed.edge);
                *entry = edge.guess(*hash);
                edge.prefetch(*entry);
            }
        } else {
            let Twins { first, bit } = at(&self.shape.nodes, coming.node).twins;
            coming.hints.row = at(&self.ids, first).guess(bit, coming.hash);
            at(&self.rows, coming.node).prefetch(coming.hints.row);
        }
    }

    /// The entries of a row that will go.
    #[inline(always)]
    fn follow_row(&self, coming: &mut Coming) {
        let rows = at(&self.rows, coming.node);
        let Hints { row, entries } = &mut coming.hints;
        for (keyed, entry) in at(&self.shape.nodes, coming.node).keyed.iter().zip(entries) {
            *entry = rows.link(*row, keyed.link);
            at(&self.edges, keyed.edge).prefetch(*entry);
        }
    }

    /// The places in lists that will be written or read.
    #[inline(always)]
    fn find_places(&self, coming: &Coming) {
        let Hints { row, entries } = &coming.hints;
        let shape = at(&self.shape.nodes, coming.node);
        let rows = at(&self.rows, coming.node);
        for (keyed, entry) in shape.keyed.iter().zip(entries).filter(|(_, entry)| **entry != NONE) {
            let state = at(&self.edges, keyed.edge).entry(*entry);
            let (lists, list) = if keyed.edge != coming.node {
                (&self.parents, &state.parents)
            } else if shape.connex {
                self.parents.prefetch(&state.parents, 0);
                (at(&self.children, coming.node), &state.children)
            } else {
                if let Some(parent) = shape.parent.filter(|_| state.parents.len == 1) {
                    at(&self.rows, parent).prefetch(self.parents.get(&state.parents, 0));
                }
                continue;
            };
            lists.prefetch(list, list.len.saturating_sub(1));
            if *row != NONE {
                lists.prefetch(list, rows.link(*row, keyed.link + 1));
            }
        }
    }

    /// The rows that will take the place of a row that goes.
    #[inline(always)]
    fn find_moved(&self, coming: &Coming) {
        let shape = at(&self.shape.nodes, coming.node);
        for (keyed, entry) in shape.keyed.iter().zip(&coming.hints.entries) {
            let state = at(&self.edges, keyed.edge).entry(*entry);
            let (lists, list) = if keyed.edge != coming.node {
                (&self.parents, &state.parents)
            } else if shape.connex {
                (at(&self.children, coming.node), &state.children)
            } else {
                continue;
            };
            if list.len > 1 {
                at(&self.rows, coming.node).prefetch(lists.get(list, list.len - 1));
            }
        }
    }
}
