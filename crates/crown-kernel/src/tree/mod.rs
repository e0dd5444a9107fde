//! A free-connex join tree under changes: join-free propagation, constant-delay full and delta enumeration.
//!
//! The theory is the paper's ("Change Propagation Without Joins", VLDB 2023, sections 3, 4 and 6.3); the layout is made for caches: slabs with
//! `u32` ids, rows of a key side by side, results written by column.
//!
//! | module | idea |
//! |---|---|
//! | `shape` | the plan's tree, checked, names resolved to positions |
//! | `ids`, `rows`, `edges`, `lists` | the state: rows of a node, entries of an edge, pooled lists |
//! | `propagate` | changes below the connex part: counters and sums climb |
//! | `delta`, `live`, `direct` | changes of the connex part: witnesses, live views |
//! | `program`, `enumerate`, `expand`, `cursor` | walks from witnesses, or from the root, by column |
//! | `ordered`, `ranged` | lists in the order of a value, and walks over ranges of them |
//! | `ring`, `weight`, `difference` | annotations; changes whose values overflow on the way |
//! | `apply` | the main loop over a batch, with prefetching |
//! | `sample`, `stats`, `compact` | random results, figures, giving memory back |

mod apply;
mod compact;
mod cursor;
mod delta;
mod difference;
mod direct;
mod edges;
mod enumerate;
mod expand;
mod ids;
mod lists;
mod live;
mod ordered;
mod program;
mod propagate;
mod ranged;
mod ring;
mod rows;
mod sample;
mod shape;
mod stats;
#[cfg(test)]
mod tests;
mod weight;

pub use apply::AtomChange;
use apply::Hints;
pub use cursor::Cursor;
pub use sample::Sampler;
pub use stats::{NodeStats, TreeStats};

use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{overflow, KernelError, Result};
use crate::plan::{self, Mode};
use crate::store::hash::{hash_all, hash_words};
use crate::store::interner::Interner;
use crate::store::net::too_many_copies;
use edges::Edge;
use enumerate::Walk;
use ids::{Ids, NONE};
use lists::Lists;
use ordered::Orders;
use program::Program;
use propagate::Scratch;
use rows::{same, Rows};
use shape::{Shape, Twins};

/// Where a tree puts its output rows.
pub trait Sink {
    /// The chunk to append to: `outputs`, then the ring's components, as columns.
    fn chunk(&mut self) -> &mut Chunk;

    /// Called between blocks of rows (a block has at most a few thousand); may take the rows out of the chunk.
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

pub struct Tree {
    shape: Shape,
    /// The walk from each connex node; without deltas from the root alone.
    programs: Vec<Option<Program>>,
    /// For each connex node the outputs that are its variables.
    projections: Vec<Vec<usize>>,
    deltas: bool,
    /// By the first of the nodes that share them; see `NodeShape::twins`.
    ids: Vec<Ids>,
    rows: Vec<Rows>,
    edges: Vec<Edge>,
    /// The lists of parent rows of all edges, and of child rows per edge.
    parents: Lists,
    children: Vec<Lists>,
    /// The lists that are kept in order too.
    orders: Orders,
    /// Buffers; out of their place only while they are in use.
    scratch: Option<Box<Scratch>>,
    walk: Option<Box<Walk>>,
    /// Result rows by the deltas so far.
    total: i128,
    /// Some atom row was there more than once at some time.
    duplicated: bool,
    updates: u64,
    counter_changes: u64,
    /// The first error of the current update. The update is carried through nevertheless, so that it can be undone.
    failure: Option<KernelError>,
    /// An update is being undone: nothing is emitted.
    quiet: bool,
    /// Overflows do not matter until all changes are made: sums are right modulo 2^128.
    careless: bool,
}

impl Tree {
    /// Builds the empty tree. `deltas = false` leaves out all that only deltas need; `apply` then emits nothing.
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
            .map(|node| Rows::new(node.width, node.links, node.missing, node.factors.len()))
            .collect();
        let ids = shape.nodes.iter().map(|_| Ids::new()).collect();
        let children = shape.nodes.iter().map(|node| Lists::new(node.fresh.len())).collect();
        let slots = shape.slot_count;
        let mut edges: Vec<Edge> = shape
            .nodes
            .iter()
            .map(|node| Edge::new(node.key.width(), if node.annotated { slots } else { 0 }))
            .collect();
        let top = edges[shape.root].find_or_insert(hash_words(&[]), &[]) as usize;
        let virtual_entry = &mut edges[shape.root].entries[top];
        (virtual_entry.live, virtual_entry.references) = (1, 1);
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
            scratch: None,
            walk: None,
            total: 0,
            duplicated: false,
            updates: 0,
            counter_changes: 0,
            failure: None,
            quiet: false,
            careless: false,
        })
    }

    /// How often the atom row is there. `words` are in the order of the atom's distinct variables, here and below.
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

    /// The row of a node with these words, of which the NULL mask is the last where a variable may be NULL.
    fn find(&self, node: usize, words: &[Word]) -> Option<u32> {
        let twins = &self.shape.nodes[node].twins;
        self.locate(node, hash_words(words), words, NONE).filter(|row| self.ids[twins.first].holds(twins.bit, *row))
    }

    /// The id of a row with these words that the node or one of its twins has, most likely `hint`.
    #[inline(always)]
    fn locate(&self, node: usize, hash: u64, words: &[Word], hint: u32) -> Option<u32> {
        let first = self.shape.nodes[node].twins.first;
        let (ids, rows) = (&self.ids[first], &self.rows[first]);
        if ids.has(hint) && same(rows.words(hint), words) {
            return Some(hint);
        }
        ids.find(hash, |row| same(rows.words(row), words))
    }

    /// Adds a row that the node does not have; `known` is its id if a twin has it.
    #[inline(always)]
    fn add_row(&mut self, node: usize, hash: u64, words: &[Word], known: Option<u32>) -> u32 {
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
    fn remove_row(&mut self, node: usize, row: u32) {
        let Twins { first, bit } = self.shape.nodes[node].twins;
        let rows = &self.rows[node];
        self.ids[first].leave(bit, row, || hash_words(rows.words(row)));
        self.rows[node].remove(row);
    }

    /// The rows of a node.
    fn row_ids(&self, node: usize) -> impl Iterator<Item = u32> + '_ {
        let Twins { first, bit } = self.shape.nodes[node].twins;
        self.ids[first].of(bit)
    }

    /// The hash of a row of a node, whose NULL mask belongs to it where a variable may be NULL.
    #[inline]
    fn hash_row(&self, node: usize, words: &[Word], nulls: Nulls) -> u64 {
        let nulls = (self.shape.nodes[node].nullable != 0).then_some(nulls);
        hash_all(words.iter().copied().chain(nulls))
    }

    /// One change of one atom: `weight` (not 0) more copies of a row, or fewer, but never fewer than none: the
    /// caller has checked. Appends the delta of the result to the sink.
    ///
    /// The changes of a batch are applied one after the other; their deltas add up to the batch's. A self-join's change is
    /// applied to each of its atoms in turn. On an error (overflow, a failing residual, the sink's own) the tree is as before the
    /// call; rows may have reached the sink.
    #[inline]
    pub fn apply(
        &mut self,
        atom: usize,
        words: &[Word],
        nulls: Nulls,
        weight: i64,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) -> Result<()> {
        let hash = self.hash_row(self.shape.atom_nodes[atom], words, nulls);
        self.apply_hashed(&AtomChange { atom, words, nulls, weight }, hash, &Hints::NOTHING, interner, sink)
    }

    #[inline]
    fn apply_hashed(
        &mut self,
        change: &AtomChange,
        hash: u64,
        hints: &Hints,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) -> Result<()> {
        let mut scratch = self.scratch.take().unwrap_or_default();
        let total = self.total;
        let result = self.change(change, hash, hints, &mut scratch, interner, sink);
        if let Some(error) = self.failure.take().filter(|_| !self.careless) {
            let quiet = std::mem::replace(&mut self.quiet, true);
            let undo = AtomChange { weight: -change.weight, ..*change };
            let undone = self.change(&undo, hash, &Hints::NOTHING, &mut scratch, interner, sink);
            debug_assert!(undone.is_ok());
            self.quiet = quiet;
            self.failure = None;
            self.total = total;
            self.scratch = Some(scratch);
            return Err(error);
        }
        self.scratch = Some(scratch);
        result
    }

    /// As `apply_all` without output, for rebuilding a state; `loaded` must follow before anything else.
    pub fn load_all<'a>(
        &mut self,
        changes: impl Iterator<Item = AtomChange<'a>>,
        interner: &mut Interner,
    ) -> Result<()> {
        let (known, _) = changes.size_hint();
        let mut changes = changes.peekable();
        if let Some(first) = changes.peek() {
            // All are of one atom when their number is known.
            let node = self.shape.atom_nodes[first.atom];
            self.rows[node].reserve(known);
            if self.shape.nodes[node].twins.first == node {
                self.ids[node].reserve(known);
            }
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
        if let (Some(total), true) = (self.sampler().total(), self.shape.residual.is_empty()) {
            self.total = total;
            return Ok(());
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

    /// Makes the change. An error here leaves the tree untouched; an error in `failure` means that the change was made.
    #[inline]
    fn change(
        &mut self,
        change: &AtomChange,
        hash: u64,
        hints: &Hints,
        scratch: &mut Scratch,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) -> Result<()> {
        let AtomChange { atom, words, nulls, weight } = *change;
        let node = self.shape.atom_nodes[atom];
        let shape = &self.shape.nodes[node];
        if words.len() != shape.variables.len() || nulls & !shape.nullable != 0 {
            return Err(KernelError::invalid(
                "CROWN-CHANGE-VALUE",
                format!("a row that does not fit '{}'", shape.name),
            ));
        }
        let known = if shape.nullable == 0 {
            self.locate(node, hash, words, hints.row)
        } else {
            scratch.row.clear();
            scratch.row.extend_from_slice(words);
            scratch.row.push(nulls);
            self.locate(node, hash, &scratch.row, hints.row)
        };
        let found = known.filter(|row| self.ids[shape.twins.first].holds(shape.twins.bit, *row));
        let old = found.map_or(0, |row| self.rows[node].multiplicity(row));
        let new = u64::try_from(i128::from(old) + i128::from(weight)).map_err(|_| {
            KernelError::invalid(
                "CROWN-CHANGE-ABSENT",
                format!("'{}' has fewer rows than are to be removed", shape.name),
            )
        })?;
        if new > i64::MAX as u64 {
            return Err(too_many_copies());
        }
        scratch.change.clear();
        self.updates += 1;
        match found {
            None => {
                let row = self.insert(change, node, hash, known, hints, scratch, interner)?;
                if self.rows[node].missing(row) == 0 {
                    self.enter_first(node, row, new, scratch);
                    self.climb(node, scratch, interner, sink);
                }
            }
            Some(row) if new == 0 => {
                if self.rows[node].missing(row) == 0 {
                    self.leave_first(node, row, old, scratch);
                    self.climb(node, scratch, interner, sink);
                }
                self.forget(node, row, interner);
            }
            Some(row) => {
                self.duplicated = true;
                if self.rows[node].missing(row) == 0 && !self.shape.components.is_empty() {
                    let pairs = &mut scratch.change.value_pairs;
                    let overflowed =
                        self.weight(node, row, old, None, pairs) | self.weight(node, row, new, None, pairs);
                    if overflowed {
                        self.failure.get_or_insert_with(overflow);
                    }
                    scratch.change.valued.push(row);
                    self.rows[node].set_multiplicity(row, new);
                    self.climb(node, scratch, interner, sink);
                } else {
                    self.rows[node].set_multiplicity(row, new);
                }
            }
        }
        while let Some((node, row)) = scratch.dead.pop() {
            self.detach(node, row);
        }
        if self.updates.is_multiple_of(compact::INTERVAL) {
            self.compact();
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    #[inline(always)]
    fn insert(
        &mut self,
        change: &AtomChange,
        node: usize,
        hash: u64,
        known: Option<u32>,
        hints: &Hints,
        scratch: &mut Scratch,
        interner: &mut Interner,
    ) -> Result<u32> {
        let AtomChange { words, nulls, weight, .. } = *change;
        let shape = &self.shape.nodes[node];
        scratch.values.clear();
        for (component, expression) in &shape.factors {
            let word = expression.evaluate(words, nulls, interner)?;
            let value = self.shape.components[*component].factor(word, expression.data_type(), interner)?;
            scratch.values.push(value);
        }
        let row = self.add_row(node, hash, if shape.nullable == 0 { words } else { &scratch.row }, known);
        let shape = &self.shape.nodes[node];
        if weight != 1 {
            self.duplicated = true;
            self.rows[node].set_multiplicity(row, weight as u64);
        }
        if !shape.factors.is_empty() {
            self.rows[node].set_factors(row, &scratch.values);
        }
        for column in shape.interned.iter().filter(|column| nulls >> **column & 1 == 0) {
            interner.retain(words[*column]);
        }
        self.attach(node, row, hints, scratch);
        Ok(row)
    }

    #[inline(always)]
    fn enter_first(&mut self, node: usize, row: u32, multiplicity: u64, scratch: &mut Scratch) {
        self.rows[node].in_semi_join += 1;
        self.move_first(node, row, multiplicity, scratch);
        scratch.change.entering = true;
    }

    #[inline(always)]
    fn leave_first(&mut self, node: usize, row: u32, multiplicity: u64, scratch: &mut Scratch) {
        self.rows[node].in_semi_join -= 1;
        self.move_first(node, row, multiplicity, scratch);
        scratch.change.entering = false;
    }

    #[inline(always)]
    fn move_first(&mut self, node: usize, row: u32, multiplicity: u64, scratch: &mut Scratch) {
        scratch.change.moved.push(row);
        if !self.shape.components.is_empty()
            && !self.shape.nodes[node].connex
            && self.weight(node, row, multiplicity, None, &mut scratch.change.amounts)
        {
            self.failure.get_or_insert_with(overflow);
        }
    }

    /// Removes an atom row that has left every view.
    #[inline(always)]
    fn forget(&mut self, node: usize, row: u32, interner: &mut Interner) {
        let shape = &self.shape.nodes[node];
        let words = self.rows[node].words(row);
        let nulls = if shape.nullable == 0 { 0 } else { words[words.len() - 1] };
        for column in shape.interned.iter().filter(|column| nulls >> **column & 1 == 0) {
            interner.release(words[*column]);
        }
        self.detach(node, row);
    }

    /// Whether every result has multiplicity 1.
    fn is_plain(&self) -> bool {
        (0..self.rows.len()).all(|node| !self.shape.nodes[node].connex || self.is_unit(node))
    }

    /// The row that is in the result of an `always` stage before any change; `None` for other stages. The
    /// deltas are relative to it: the engine emits it once, at the start.
    pub fn initial_row(&self, interner: &mut Interner) -> Option<Vec<Word>> {
        let zero = |component: &ring::Arithmetic| component.word(0, interner).expect("0 fits every type");
        self.shape.always.then(|| self.shape.components.iter().map(zero).collect())
    }

    /// How often the result has the row (`words` of the stage's `outputs`, without ring components), in O(1): mode
    /// bag counts, set and ring give 0 or 1.
    ///
    /// A result's part in each connex node is in that node's semi-join view, and conversely: so it takes one look-up per node.
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
            let bits =
                || projection.iter().enumerate().map(|(bit, column)| (nulls >> column & 1) << bit).sum::<Nulls>();
            if bits() & !shape.nullable != 0 {
                return Ok(0);
            }
            if shape.nullable != 0 {
                row.push(bits());
            }
            let Some(found) = self.find(node, &row).filter(|row| self.rows[node].missing(*row) == 0) else {
                return Ok(0);
            };
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

    /// The number of result rows (a bag's with multiplicity). In O(1) when deltas are kept; else in time linear in the
    /// state, or `None` when a residual would have to look at every row.
    pub fn count(&self) -> Option<i128> {
        if self.shape.always {
            Some(1)
        } else if self.deltas {
            Some(self.total)
        } else if self.shape.residual.is_empty() {
            self.sampler().total()
        } else {
            None
        }
    }

    /// A full enumeration from the start. It is valid until the next `apply`.
    pub fn cursor(&self) -> Cursor {
        Cursor::new(self)
    }

    /// An index for drawing result rows at random, built in time linear in the state, valid until the next `apply`.
    pub fn sampler(&self) -> Sampler {
        Sampler::new(self)
    }

    /// The atom's rows, each with its multiplicity, in a fixed order. Applying them to an empty tree rebuilds the state.
    pub fn atom_rows(&self, atom: usize) -> impl Iterator<Item = (&[Word], Nulls, u64)> {
        let node = self.shape.atom_nodes[atom];
        let (rows, arity) = (&self.rows[node], self.shape.nodes[node].variables.len());
        let mut ids: Vec<u32> = self.row_ids(node).collect();
        ids.sort_unstable();
        ids.into_iter().map(move |row| {
            let words = rows.words(row);
            (&words[..arity], words.get(arity).copied().unwrap_or(0), rows.multiplicity(row))
        })
    }

    /// Whether a net batch (per atom row), deletions first, gives deltas that are net by construction: every result determines its
    /// atom rows, and each of those changes once. May change
    /// from true to false when an atom row gets a multiplicity above 1 in mode bag: ask after the batch.
    pub fn is_net(&self) -> bool {
        let anti = self.shape.nodes.iter().any(|node| node.anti);
        self.shape.full
            && !anti
            && match self.shape.mode {
                Mode::Set => true,
                Mode::Bag => !self.duplicated,
                Mode::Ring => false,
            }
    }
}
