//! Which rows are there, by their words, and the ids that they have in the nodes' slabs.
//!
//! Atoms that read the same columns of the same table under the same conditions are twins: they have the same rows, but for moments within a
//! batch. The nodes of twins share one `Ids`, so that a row is looked up, put in and taken out once for all of them; each twin still has
//! its own slab, with the row's links, under the common id. That twins agree is only likely and never relied on: it is known of each id which of them have the row.

use crate::store::index::Index;

pub(super) const NONE: u32 = u32::MAX;

/// Twins that may share ids: one bit of `holders` each.
pub(super) const MOST_TWINS: usize = 8;

pub(super) struct Ids {
    index: Index,
    /// For each id the twins that have the row, a bit each; 0 if the id is free.
    holders: Vec<u8>,
    free: Vec<u32>,
}

impl Ids {
    pub fn new() -> Ids {
        Ids { index: Index::new(), holders: Vec::new(), free: Vec::new() }
    }

    #[inline(always)]
    pub fn prefetch_slot(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// A row of the twin that most likely has the hash, without looking at it; `NONE` if there is none.
    #[inline(always)]
    pub fn guess(&self, twin: u8, hash: u64) -> u32 {
        self.index.find(hash, |id| self.holds(twin, id)).unwrap_or(NONE)
    }

    /// The id of a row that some twin has.
    #[inline(always)]
    pub fn find(&self, hash: u64, equal: impl FnMut(u32) -> bool) -> Option<u32> {
        self.index.find(hash, equal)
    }

    /// Whether any twin has a row with this id.
    #[inline(always)]
    pub fn has(&self, id: u32) -> bool {
        self.holders.get(id as usize).is_some_and(|holders| *holders != 0)
    }

    #[inline(always)]
    pub fn holds(&self, twin: u8, id: u32) -> bool {
        self.holders[id as usize] & twin != 0
    }

    /// The ids of a twin's rows.
    pub fn of(&self, twin: u8) -> impl Iterator<Item = u32> + '_ {
        self.index.iter().filter(move |id| self.holds(twin, *id))
    }

    /// Makes room for `additional` more ids at once.
    pub fn reserve(&mut self, additional: usize) {
        self.index.reserve(additional);
        self.holders.reserve(additional);
    }

    /// An id for a row that no twin has yet.
    #[inline(always)]
    pub fn add(&mut self, twin: u8, hash: u64) -> u32 {
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.holders.push(0);
                u32::try_from(self.holders.len() - 1).expect("fewer than 2^32 rows")
            }
        };
        self.holders[id as usize] = twin;
        self.index.insert(hash, id);
        id
    }

    /// One more twin has the row.
    #[inline(always)]
    pub fn join(&mut self, twin: u8, id: u32) {
        self.holders[id as usize] |= twin;
    }

    /// A twin no longer has the row, whose hash is asked for when it was the last one.
    #[inline(always)]
    pub fn leave(&mut self, twin: u8, id: u32, hash: impl FnOnce() -> u64) {
        let holders = &mut self.holders[id as usize];
        *holders &= !twin;
        if *holders == 0 {
            self.index.remove(hash(), id);
            self.free.push(id);
        }
    }

    /// Whether there are many ids, and most are free.
    pub fn is_sparse(&self) -> bool {
        self.holders.len() > 256 && self.index.len() * 4 < self.holders.len()
    }

    /// Numbers the rows anew, without gaps and in their order; gives the new id of each old one, and how many there are.
    pub fn compact(&mut self, hash: impl Fn(u32) -> u64) -> (Vec<u32>, usize) {
        let mut fresh = Ids::new();
        fresh.reserve(self.index.len());
        let mut names = vec![NONE; self.holders.len()];
        for (id, holders) in self.holders.iter().enumerate().filter(|(_, holders)| **holders != 0) {
            names[id] = fresh.add(*holders, hash(id as u32));
        }
        *self = fresh;
        (names, self.holders.len())
    }

    pub fn bytes(&self) -> usize {
        self.index.bytes() + self.holders.capacity() + self.free.capacity() * 4
    }
}
