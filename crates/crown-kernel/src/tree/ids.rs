//! Finds the rows that exist by their words, and holds the ids that they have in the nodes' slabs.
//!
//! Atoms that read the same columns of the same table under the same conditions are twins: they
//! have the same rows, except for moments within a batch. The nodes of twins share one `Ids`, so
//! that a row is looked up, inserted and removed once for all of them; each twin still has its own
//! slab, with the row's links, under the common id. Correctness never relies on twins having the
//! same rows: each id records which of them have the row.

use super::id::{RowHint, RowId};
use crate::store::index::Index;

/// Twins that may share ids: one bit of `holders` each.
pub(super) const MOST_TWINS: usize = 8;

pub(super) struct Ids {
    index: Index,
    /// For each id the twins that have the row, a bit each; 0 if the id is free.
    holders: Vec<u8>,
    free: Vec<RowId>,
}

impl Ids {
    pub fn new() -> Ids {
        Ids { index: Index::new(), holders: Vec::new(), free: Vec::new() }
    }

    #[inline(always)]
    pub fn prefetch_slot(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// An id from the index, which only has ids that `add` has handed out.
    #[inline(always)]
    fn known(id: u32) -> RowId {
        // SAFETY: whoever got the id from `add` has written the row to the slabs of the twins that
        // hold it.
        unsafe { RowId::new(id) }
    }

    /// A row of the twin that most likely has the hash, without looking at it.
    #[inline(always)]
    pub fn guess(&self, twin: u8, hash: u64) -> RowHint {
        self.index.find(hash, |id| self.holds(twin, Ids::known(id))).map(Ids::known).into()
    }

    /// The id of a row that some twin has.
    #[inline(always)]
    pub fn find(&self, hash: u64, mut equal: impl FnMut(RowId) -> bool) -> Option<RowId> {
        self.index.find(hash, |id| equal(Ids::known(id))).map(Ids::known)
    }

    /// The hinted id, if any twin has a row with it.
    #[inline(always)]
    pub fn confirm(&self, hint: RowHint) -> Option<RowId> {
        let held = self.holders.get(hint.index()).is_some_and(|holders| *holders != 0);
        // SAFETY: the id is held, so the row is in the slabs of its twins.
        held.then(|| unsafe { hint.id() })
    }

    #[inline(always)]
    pub fn holds(&self, twin: u8, id: RowId) -> bool {
        self.holders[id.index()] & twin != 0
    }

    /// The ids of a twin's rows.
    pub fn of(&self, twin: u8) -> impl Iterator<Item = RowId> + '_ {
        self.index.iter().map(Ids::known).filter(move |id| self.holds(twin, *id))
    }

    /// At most about `count` ids of a twin's rows, evenly spread over the slab.
    pub fn sampled(&self, twin: u8, count: usize) -> impl Iterator<Item = RowId> + '_ {
        let stride = (self.holders.len() / count.max(1)).max(1);
        let held = move |id: &usize| self.holders[*id] & twin != 0;
        (0..self.holders.len()).step_by(stride).filter(held).map(|id| Ids::known(id as u32))
    }

    /// Ids that were ever handed out.
    pub fn slots(&self) -> usize {
        self.holders.len()
    }

    /// Reserves space for `additional` more ids.
    pub fn reserve(&mut self, additional: usize) {
        self.index.reserve(additional);
        self.holders.reserve(additional);
    }

    /// An id for a row that no twin has yet. The caller writes the row to the slabs of its twins.
    #[inline(always)]
    pub fn add(&mut self, twin: u8, hash: u64) -> RowId {
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.holders.push(0);
                Ids::known(u32::try_from(self.holders.len() - 1).expect("fewer than 2^32 rows"))
            }
        };
        self.holders[id.index()] = twin;
        self.index.insert(hash, id.number());
        id
    }

    /// One more twin has the row.
    #[inline(always)]
    pub fn join(&mut self, twin: u8, id: RowId) {
        self.holders[id.index()] |= twin;
    }

    /// Records that a twin no longer has the row; `hash` is called only for the last twin.
    #[inline(always)]
    pub fn leave(&mut self, twin: u8, id: RowId, hash: impl FnOnce() -> u64) {
        let holders = &mut self.holders[id.index()];
        *holders &= !twin;
        if *holders == 0 {
            self.index.remove(hash(), id.number());
            self.free.push(id);
        }
    }

    /// Whether there are many ids, and most are free.
    pub fn is_sparse(&self) -> bool {
        self.holders.len() > 256 && self.index.len() * 4 < self.holders.len()
    }

    /// Renumbers the rows without gaps and in their order; returns the new id of each old one, and
    /// how many there are.
    pub fn compact(&mut self, hash: impl Fn(RowId) -> u64) -> (Vec<Option<RowId>>, usize) {
        let mut fresh = Ids::new();
        fresh.reserve(self.index.len());
        let mut names = vec![None; self.holders.len()];
        for (id, holders) in self.holders.iter().enumerate().filter(|(_, holders)| **holders != 0) {
            names[id] = Some(fresh.add(*holders, hash(Ids::known(id as u32))));
        }
        *self = fresh;
        (names, self.holders.len())
    }

    pub fn bytes(&self) -> usize {
        self.index.bytes() + self.holders.capacity() + self.free.capacity() * 4
    }
}
