//! A free-connex join tree under changes: join-free propagation, constant-delay full and delta
//! enumeration.
//!
//! The theory is the paper's ("Change Propagation Without Joins", VLDB 2023, sections 3, 4 and
//! 6.3); the layout is made for caches: slabs with `u32` ids, rows of a key side by side, results
//! written by column.
//!
//! | module | idea |
//! |---|---|
//! | `shape`, `read_plan` | what never changes about a tree; how it is read from the plan and checked |
//! | `id`, `ids`, `node_rows`, `edges`, `lists` | the state: typed ids, which rows exist, the rows of a node, entries of an edge, pooled lists |
//! | `propagate` | changes below the connex part: counters and sums climb |
//! | `delta`, `live`, `direct` | changes of the connex part: witnesses, live views |
//! | `program`, `enumerate`, `expand`, `cursor` | walks from witnesses, or from the root, by column |
//! | `optional` | optional edges: the row of NULLs for a key without a match |
//! | `ordered`, `ranged` | lists in the order of a value, and walks over ranges of them |
//! | `ring`, `weight`, `difference` | annotations; changes whose intermediate values overflow |
//! | `apply`, `prefetch` | the main loop over a batch; memory requested ahead of it |
//! | `find`, `counts`, `sample` | results by value, by position and at random |
//! | `stats`, `compact` | figures, giving memory back |

mod apply;
mod compact;
mod counts;
mod cursor;
mod delta;
mod difference;
mod direct;
mod edges;
mod enumerate;
mod expand;
mod find;
mod id;
mod ids;
mod lists;
mod live;
mod node_rows;
mod optional;
mod ordered;
mod prefetch;
mod program;
mod propagate;
mod ranged;
mod read_plan;
mod ring;
mod sample;
mod shape;
mod stats;
#[cfg(test)]
mod tests;
mod weight;

pub use apply::AtomChange;
pub use cursor::Cursor;
pub use find::Fixed;
pub use stats::{HotKey, NodeStats, TreeStats};

use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{overflow, KernelError, Result};
use crate::mask::Bits;
use crate::plan::{self, Mode};
use crate::store::hash::hash_words;
use crate::store::interner::Interner;
use crate::store::net::too_many_copies;
use counts::Counts;
use edges::Edge;
use enumerate::Walk;
use id::{RowHint, RowId};
use ids::Ids;
use lists::Lists;
use node_rows::{same, NodeRows};
use optional::PHANTOM;
use ordered::Orders;
use program::Program;
use propagate::Scratch;
use shape::{Shape, Twins};
use stats::NodeWork;

/// Where a tree puts its output rows.
pub trait Sink {
    /// The chunk to append to: `outputs`, then the ring's components, as columns.
    fn chunk(&mut self) -> &mut Chunk;

    /// Called between blocks of rows (a block has at most a few thousand); may take the rows out of
    /// the chunk.
    fn flush_if_full(&mut self) -> Result<()>;
}

/// Rows gathered in one chunk of any size.
impl Sink for Chunk {
    fn chunk(&mut self) -> &mut Chunk {
        self
    }

    fn flush_if_full(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The state of one join tree.
pub struct Tree {
    shape: Shape,
    /// The walk from each connex node; without deltas from the root alone.
    programs: Vec<Option<Program>>,
    /// For each connex node the outputs that are its variables.
    projections: Vec<Vec<usize>>,
    deltas: bool,
    /// By the first of the nodes that share them; see `NodeShape::twins`.
    ids: Vec<Ids>,
    rows: Vec<NodeRows>,
    edges: Vec<Edge>,
    /// The lists of parent rows of all edges, and of child rows per edge.
    parents: Lists,
    children: Vec<Lists>,
    /// The lists that are kept in order too.
    orders: Orders,
    /// The results by their position, while they are being read that way.
    counts: Option<Box<Counts>>,
    /// Buffers; out of their place only while they are in use.
    scratch: Option<Box<Scratch>>,
    walk: Option<Box<Walk>>,
    /// Result rows by the deltas so far.
    total: i128,
    /// Some atom row was there more than once at some time.
    duplicated: bool,
    updates: u64,
    /// What each node has done so far.
    work: Vec<NodeWork>,
    /// The first error of the current update. The update is carried through nevertheless, so that
    /// it can be undone.
    failure: Option<KernelError>,
    /// An update is being undone: nothing is emitted.
    quiet: bool,
    /// Overflows do not matter until all changes are made: sums are right modulo 2^128.
    careless: bool,
}

impl Tree {
    /// Builds the empty tree. `deltas = false` leaves out all that only deltas need; `apply` then
    /// emits nothing.
    ///
    /// A stage that is not of the right shape is refused with `CROWN-PLAN-MALFORMED`.
    pub fn new(stage: &plan::TreeStage, deltas: bool) -> Result<Tree> {
        let shape = Shape::new(stage)?;
        let mut orders = Vec::new();
        let walked = |node: usize| shape.nodes[node].connex && (deltas || node == shape.root);
        let programs = (0..shape.nodes.len())
            .map(|node| walked(node).then(|| Program::new(&shape, &stage.outputs, node, &mut orders)))
            .collect();
        let orders = Orders::new(shape.nodes.len(), &orders);
        let output = |name: &String| stage.outputs.iter().position(|other| other == name);
        let projections = shape
            .nodes
            .iter()
            .map(|node| if node.connex { node.variables.iter().filter_map(output).collect() } else { Vec::new() })
            .collect();
        let rows = shape
            .nodes
            .iter()
            .map(|node| NodeRows::new(node.width, node.links, node.missing, node.factors.len()))
            .collect();
        let ids = shape.nodes.iter().map(|_| Ids::new()).collect();
        let children = shape.nodes.iter().map(|node| Lists::new(node.fresh.len())).collect();
        let slots = shape.slot_count;
        let mut edges: Vec<Edge> = shape
            .nodes
            .iter()
            .map(|node| Edge::new(node.key.width(), if node.annotated { slots } else { 0 }, node.optional))
            .collect();
        let top = edges[shape.root].find_or_insert(hash_words([]), &[]).index();
        let virtual_entry = &mut edges[shape.root].entries[top];
        (virtual_entry.live, virtual_entry.references) = (1, 1);
        let work = vec![NodeWork::default(); shape.nodes.len()];
        Ok(Tree {
            shape,
            programs,
            projections,
            deltas,
            ids,
            rows,
            edges,
            parents: Lists::new(0),
            children,
            orders,
            counts: None,
            scratch: None,
            walk: None,
            total: 0,
            duplicated: false,
            updates: 0,
            work,
            failure: None,
            quiet: false,
            careless: false,
        })
    }

    /// How often the atom row is there. `words` are in the order of the atom's distinct variables,
    /// here and below.
    pub fn atom_multiplicity(&self, atom: usize, words: &[Word], nulls: Nulls) -> u64 {
        let node = self.shape.atom_nodes[atom];
        let found = if self.shape.nodes[node].nullable == 0 {
            self.find(node, words)
        } else {
            let mut row = words.to_vec();
            row.push(nulls);
            self.find(node, &row)
        };
        found.map_or(0, |row| self.rows[node].multiplicity(row))
    }

    /// The row of a node with these words, of which the NULL mask is the last where a variable may
    /// be NULL.
    fn find(&self, node: usize, words: &[Word]) -> Option<RowId> {
        let twins = &self.shape.nodes[node].twins;
        self.locate(node, hash_words(words.iter().copied()), words, RowHint::NONE)
            .filter(|row| self.ids[twins.first].holds(twins.bit, *row))
    }

    /// The id of a row with these words that the node or one of its twins has, most likely `hint`.
    #[inline(always)]
    fn locate(&self, node: usize, hash: u64, words: &[Word], hint: RowHint) -> Option<RowId> {
        let first = self.shape.nodes[node].twins.first;
        let (ids, rows) = (&self.ids[first], &self.rows[first]);
        if let Some(row) = ids.confirm(hint).filter(|row| same(rows.words(*row), words)) {
            return Some(row);
        }
        ids.find(hash, |row| same(rows.words(row), words))
    }

    /// Adds a row that the node does not have; `known` is its id if a twin has it.
    #[inline(always)]
    fn add_row(&mut self, node: usize, hash: u64, words: &[Word], known: Option<RowId>) -> RowId {
        let Twins { first, bit } = self.shape.nodes[node].twins;
        let row = match known {
            Some(row) => {
                self.ids[first].join(bit, row);
                row
            }
            None => {
                let row = self.ids[first].add(bit, hash);
                if first != node {
                    // The row is found by the words that the first twin has.
                    self.rows[first].write(row, words);
                }
                row
            }
        };
        self.rows[node].write(row, words);
        self.rows[node].len += 1;
        row
    }

    #[inline(always)]
    fn remove_row(&mut self, node: usize, row: RowId) {
        let Twins { first, bit } = self.shape.nodes[node].twins;
        let rows = &self.rows[node];
        self.ids[first].leave(bit, row, || hash_words(rows.words(row).iter().copied()));
        self.rows[node].remove(row);
    }

    /// The rows of a node.
    fn row_ids(&self, node: usize) -> impl Iterator<Item = RowId> + '_ {
        let Twins { first, bit } = self.shape.nodes[node].twins;
        self.ids[first].of(bit)
    }

    /// The hash of a row of a node, whose NULL mask belongs to it where a variable may be NULL.
    #[inline]
    fn hash_row(&self, node: usize, words: &[Word], nulls: Nulls) -> u64 {
        let nulls = (self.shape.nodes[node].nullable != 0).then_some(nulls);
        hash_words(words.iter().copied().chain(nulls))
    }

    /// Makes room for `additional` more rows of an atom.
    pub fn reserve(&mut self, atom: usize, additional: usize) {
        let node = self.shape.atom_nodes[atom];
        let first = self.shape.nodes[node].twins.first;
        if first == node {
            self.ids[node].reserve(additional);
        }
        let slots = self.ids[first].slots().max(self.rows[node].len + additional);
        self.rows[node].reserve(slots);
    }

    /// The atoms, those of children before those of their parents: rows that are inserted in this
    /// order find what is below them, so that nothing propagates.
    pub fn upwards(&self) -> Vec<usize> {
        let mut atoms: Vec<usize> = (0..self.shape.atom_nodes.len()).collect();
        // Nodes are numbered from the root.
        atoms.sort_by_key(|atom| std::cmp::Reverse(self.shape.atom_nodes[*atom]));
        atoms
    }

    /// Whether changes are made without output.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// While it is quiet, changes are made without output; `loaded` must follow before anything
    /// else.
    pub fn set_quiet(&mut self, quiet: bool) {
        self.quiet = quiet;
    }

    /// As `apply_all` without output, for rebuilding a state; `loaded` must follow before anything
    /// else.
    pub fn load_all<'a>(
        &mut self,
        changes: impl Iterator<Item = AtomChange<'a>>,
        interner: &mut Interner,
    ) -> Result<()> {
        let (known, _) = changes.size_hint();
        let mut changes = changes.peekable();
        if let Some(first) = changes.peek() {
            // All are of one atom when their number is known.
            self.reserve(first.atom, known);
        }
        self.quiet = true;
        let result = self.apply_all(changes, interner, &mut Chunk::default());
        self.quiet = false;
        result.map_err(|(_, error)| error)
    }

    /// Counts the result of what was loaded, of `width` columns.
    pub fn loaded(&mut self, width: usize, interner: &mut Interner) -> Result<()> {
        if !self.deltas || self.shape.always {
            return Ok(());
        }
        if self.shape.residual.is_empty() {
            if let Some(total) = self.counted() {
                self.total = total;
                return Ok(());
            }
        }
        self.total = 0;
        let mut cursor = self.cursor();
        let mut rows = Chunk::new(width);
        let mut more = true;
        while more {
            rows.clear();
            more = cursor.fill(self, interner, &mut rows, 65536)?;
            self.total += rows.weights.iter().map(|weight| i128::from(*weight)).sum::<i128>();
        }
        Ok(())
    }

    /// Whether every result has multiplicity 1.
    fn is_plain(&self) -> bool {
        (0..self.rows.len()).all(|node| !self.shape.nodes[node].connex || self.is_unit(node))
    }

    /// The row that is in the result of an `always` stage before any change; `None` for other
    /// stages. The deltas are relative to it: the engine emits it once, at the start.
    pub fn initial_row(&self, interner: &mut Interner) -> Option<Vec<Word>> {
        let zero = |component: &ring::Arithmetic| component.word(0, interner).expect("0 fits every type");
        self.shape.always.then(|| self.shape.components.iter().map(zero).collect())
    }

    /// How often the result has the row (`words` of the stage's `outputs`, without ring
    /// components), in O(1): mode bag counts, set and ring give 0 or 1.
    ///
    /// A result's part in each connex node is in that node's semi-join view, and conversely: so it
    /// takes one look-up per node.
    pub fn multiplicity(&self, words: &[Word], nulls: Nulls, interner: &Interner) -> Result<i64> {
        if self.shape.always {
            return Ok(1);
        }
        let mut product = 1;
        let (mut row, mut weight) = (Vec::new(), Vec::new());
        for (node, projection) in self.projections.iter().enumerate() {
            let shape = &self.shape.nodes[node];
            if !shape.connex {
                continue;
            }
            row.clear();
            row.extend(projection.iter().map(|column| words[*column]));
            let mask = nulls.gather(projection.iter().copied().zip(0..));
            if !mask.within(shape.nullable) {
                return Ok(0);
            }
            if shape.nullable != 0 {
                row.push(mask);
            }
            let mut found = self.find(node, &row).filter(|row| self.rows[node].missing(*row) == 0);
            if found.is_none() && shape.optional {
                found = self.find_phantom(node, &mut row);
            }
            let Some(found) = found else { return Ok(0) };
            if self.shape.mode == Mode::Bag {
                weight.clear();
                let overflowed = self.weight(node, found, self.rows[node].multiplicity(found), None, &mut weight);
                let (value, over) = self.shape.components[0].multiply(product, weight[0]);
                if overflowed || over {
                    return Err(overflow());
                }
                product = value;
            }
        }
        // Only of rows that join: of others a condition may well fail.
        for condition in &self.shape.residual {
            if !condition.is_true(words, nulls, interner)? {
                return Ok(0);
            }
        }
        i64::try_from(product).map_err(|_| too_many_copies())
    }

    /// The number of result rows (a bag's with multiplicity). In O(1) when deltas are kept; else in
    /// time linear in the state, or `None` when a residual would have to look at every row.
    pub fn count(&self) -> Option<i128> {
        let counted = || if self.shape.residual.is_empty() { self.counted() } else { None };
        self.known_count().or_else(counted)
    }

    /// The number of result rows where it takes O(1).
    pub fn known_count(&self) -> Option<i128> {
        if self.shape.always {
            Some(1)
        } else {
            self.deltas.then_some(self.total)
        }
    }

    /// A full enumeration from the start. It is valid until the next `apply`.
    pub fn cursor(&self) -> Cursor {
        Cursor::new(self)
    }

    /// Releases the values of all rows; the tree must not be used after it.
    pub fn release(&self, interner: &mut Interner) {
        for (atom, node) in self.shape.atom_nodes.iter().enumerate() {
            let interned = &self.shape.nodes[*node].interned;
            for (words, nulls, _) in self.atom_rows(atom) {
                let present = interned.iter().filter(|column| !nulls.has(**column));
                present.for_each(|column| interner.release(words[*column]));
            }
        }
    }

    /// The atom's rows, each with its multiplicity, in a fixed order. Applying them to an empty
    /// tree rebuilds the state.
    pub fn atom_rows(&self, atom: usize) -> impl Iterator<Item = (&[Word], Nulls, u64)> {
        let node = self.shape.atom_nodes[atom];
        let (rows, arity) = (&self.rows[node], self.shape.nodes[node].variables.len());
        let mut ids: Vec<RowId> = self.row_ids(node).collect();
        ids.sort_unstable();
        let read = move |row| {
            let words = rows.words(row);
            (&words[..arity], words.get(arity).copied().unwrap_or(0), rows.multiplicity(row))
        };
        ids.into_iter().map(read).filter(|(_, nulls, _)| nulls & PHANTOM == 0)
    }

    /// Whether a net batch (per atom row), deletions first, gives deltas that are net by
    /// construction: every result determines its atom rows, and each of those changes once. May
    /// change from true to false when an atom row gets a multiplicity above 1 in mode bag: ask
    /// after the batch.
    pub fn is_net(&self) -> bool {
        let flips = self.shape.nodes.iter().any(|node| node.anti || node.optional);
        self.shape.full
            && !flips
            && match self.shape.mode {
                Mode::Set => true,
                Mode::Bag => !self.duplicated,
                Mode::Ring => false,
            }
    }
}
