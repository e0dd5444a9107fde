//! The entries of one edge: for each key the child's rows and the parent's rows that have it.
//!
//! An entry combines two things: the projection view V_p of the child (paper, equation 1), and the
//! index on the parent that a P-update needs. The key is in V_p while a child row of the semi-join
//! view has it. An entry exists while a row of either side has its key.

use super::id::{EntryHint, EntryId, RowHint, RowId};
use super::lists::List;
use super::node_rows::same;
use crate::chunk::Word;
use crate::store::hash::hash_words;
use crate::store::index::Index;
use crate::store::slab::{at, at_mut, prefetch, reserve_slowly, with_capacity};

/// No entry, in the list of free ones; and as `live` the mark of a free entry.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    /// The key if it is one word; longer keys are stored separately.
    key: Word,
    /// Child rows in the semi-join view; those that depart in the current update come last. If the
    /// child is not connex, it is never enumerated, so only their number is stored (in
    /// `children.len`).
    pub children: List,
    /// Parent rows with the key, the live ones first.
    pub parents: List,
    /// How many parent rows are live; `NONE` if the entry is free.
    pub live: u32,
    /// How many of `children` are leaving in the current update: enumeration still sees them,
    /// counting does not. On edges of children that are not connex: where the current update has
    /// the entry in its list of changed entries.
    pub departed: u32,
    /// Child rows with the key, in the semi-join view or not.
    pub references: u32,
}

impl Entry {
    /// Child rows in the semi-join view, without those that depart.
    #[inline(always)]
    pub fn count(&self) -> u32 {
        self.children.len - self.departed
    }
}

pub(super) struct Edge {
    width: usize,
    keys: Vec<Word>,
    pub entries: Vec<Entry>,
    /// The annotation w_p of each entry, one accumulator per component; empty where none is needed.
    values: Vec<i128>,
    components: usize,
    index: Index,
    /// Free entries, linked through `references`.
    free: u32,
    /// Of an optional edge, for each entry the child's phantom that it shows; empty for others.
    phantoms: Vec<RowHint>,
    optional: bool,
}

impl Edge {
    pub fn new(width: usize, components: usize, optional: bool) -> Edge {
        Edge {
            width,
            keys: Vec::new(),
            entries: Vec::new(),
            values: Vec::new(),
            components,
            index: Index::new(),
            free: NONE,
            phantoms: Vec::new(),
            optional,
        }
    }

    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = EntryId> + '_ {
        self.index.iter().map(Edge::known)
    }

    /// An id from the index or the free list, which only have ids of entries.
    #[inline(always)]
    fn known(entry: u32) -> EntryId {
        // SAFETY: `insert` has put the entry into the slab, which never gets shorter while ids are
        // in use.
        unsafe { EntryId::new(entry) }
    }

    #[inline(always)]
    pub fn entry(&self, entry: EntryId) -> &Entry {
        // SAFETY: the entry has its slot in the slab (the law in `id`).
        unsafe { at(&self.entries, entry.index()) }
    }

    #[inline(always)]
    pub fn entry_mut(&mut self, entry: EntryId) -> &mut Entry {
        // SAFETY: as in `entry`.
        unsafe { at_mut(&mut self.entries, entry.index()) }
    }

    #[inline(always)]
    pub fn key(&self, entry: EntryId) -> &[Word] {
        if self.width == 1 {
            return std::slice::from_ref(&self.entries[entry.index()].key);
        }
        let start = entry.index() * self.width;
        &self.keys[start..start + self.width]
    }

    #[inline(always)]
    pub fn prefetch_slot(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// An entry that most likely has the hash, without looking at it.
    #[inline(always)]
    pub fn guess(&self, hash: u64) -> EntryHint {
        self.index.find(hash, |_| true).map(Edge::known).into()
    }

    /// Prefetches an entry.
    #[inline(always)]
    pub fn prefetch(&self, entry: impl Into<EntryHint>) {
        let index = entry.into().index();
        // An entry may lie across two cache lines.
        prefetch(&self.entries, index);
        prefetch(&self.entries, index + 1);
    }

    #[inline(always)]
    pub fn find(&self, hash: u64, key: &[Word]) -> Option<EntryId> {
        self.index.find(hash, |entry| same(self.key(Edge::known(entry)), key)).map(Edge::known)
    }

    #[inline]
    pub fn find_or_insert(&mut self, hash: u64, key: &[Word]) -> EntryId {
        self.find(hash, key).unwrap_or_else(|| self.insert(hash, key))
    }

    /// As `find_or_insert` for keys of one word, which are most; the entry is most likely `hint`.
    #[inline(always)]
    pub fn find_or_insert_word(&mut self, word: Word, hint: EntryHint) -> EntryId {
        if self.entries.get(hint.index()).is_some_and(|entry| entry.key == word && entry.live != NONE) {
            // SAFETY: the slab has the slot.
            return unsafe { hint.id() };
        }
        let hash = hash_words([word]);
        let found = self.index.find(hash, |entry| self.entry(Edge::known(entry)).key == word);
        found.map(Edge::known).unwrap_or_else(|| self.insert(hash, &[word]))
    }

    #[inline(never)]
    fn insert(&mut self, hash: u64, key: &[Word]) -> EntryId {
        let kept = if self.width == 1 { 0 } else { self.width };
        let fresh = Entry { key: if self.width == 1 { key[0] } else { 0 }, ..Entry::default() };
        let entry = if self.free == NONE {
            let entry = Edge::known(u32::try_from(self.entries.len()).expect("fewer than 2^32 keys"));
            reserve_slowly(&mut self.keys, kept);
            self.keys.extend_from_slice(&key[..kept]);
            reserve_slowly(&mut self.entries, 1);
            self.entries.push(fresh);
            reserve_slowly(&mut self.values, self.components);
            self.values.resize(self.values.len() + self.components, 0);
            entry
        } else {
            let entry = Edge::known(self.free);
            self.free = self.entries[entry.index()].references;
            self.entries[entry.index()] = fresh;
            let start = entry.index() * kept;
            self.keys[start..start + kept].copy_from_slice(&key[..kept]);
            self.values_mut(entry).fill(0);
            entry
        };
        if self.optional {
            self.phantoms.resize(self.entries.len(), RowHint::NONE);
            self.phantoms[entry.index()] = RowHint::NONE;
        }
        self.index.insert(hash, entry.number());
        entry
    }

    /// The phantom that an entry of an optional edge shows.
    pub fn phantom(&self, entry: EntryId) -> Option<RowId> {
        let phantom = self.phantoms[entry.index()];
        // SAFETY: a phantom is taken from its entry before its row is freed.
        (!phantom.is_none()).then(|| unsafe { phantom.id() })
    }

    pub fn set_phantom(&mut self, entry: EntryId, phantom: Option<RowId>) {
        self.phantoms[entry.index()] = phantom.into();
    }

    /// Writes the new ids of the phantoms.
    pub fn rename_phantoms(&mut self, ids: &[Option<RowId>]) {
        for phantom in self.phantoms.iter_mut().filter(|phantom| !phantom.is_none()) {
            *phantom = ids[phantom.index()].into();
        }
    }

    /// Frees the entry if no row of either side has its key.
    #[inline]
    pub fn remove_if_unused(&mut self, entry: EntryId) {
        let state = self.entry(entry);
        if state.references > 0 || state.parents.len > 0 {
            return;
        }
        debug_assert_eq!(state.children.len, 0);
        self.release(entry);
    }

    fn release(&mut self, entry: EntryId) {
        self.index.remove(hash_words(self.key(entry).iter().copied()), entry.number());
        let state = &mut self.entries[entry.index()];
        (state.references, state.live) = (self.free, NONE);
        self.free = entry.number();
    }

    #[inline(always)]
    pub fn values(&self, entry: EntryId) -> &[i128] {
        let start = entry.index() * self.components;
        &self.values[start..start + self.components]
    }

    #[inline(always)]
    pub fn values_mut(&mut self, entry: EntryId) -> &mut [i128] {
        let start = entry.index() * self.components;
        &mut self.values[start..start + self.components]
    }

    pub fn ids(&self) -> Vec<EntryId> {
        self.iter().collect()
    }

    pub fn is_sparse(&self) -> bool {
        self.entries.len() > 256 && self.len() * 4 < self.entries.len()
    }

    /// Moves all entries to the front of new slabs; returns the new id of each old one.
    pub fn compact(&mut self) -> Vec<Option<EntryId>> {
        let mut fresh = Edge::new(self.width, self.components, self.optional);
        let mut ids = vec![None; self.entries.len()];
        let mut entries = self.ids();
        entries.sort_unstable();
        fresh.entries = with_capacity(entries.len());
        fresh.keys = with_capacity(if self.width == 1 { 0 } else { entries.len() * self.width });
        for entry in entries {
            let target = fresh.insert(hash_words(self.key(entry).iter().copied()), self.key(entry));
            fresh.entries[target.index()] = self.entries[entry.index()];
            fresh.values_mut(target).copy_from_slice(self.values(entry));
            if self.optional {
                fresh.set_phantom(target, self.phantom(entry));
            }
            ids[entry.index()] = Some(target);
        }
        *self = fresh;
        ids
    }

    pub fn bytes(&self) -> usize {
        self.keys.capacity() * 8
            + self.entries.capacity() * size_of::<Entry>()
            + self.values.capacity() * 16
            + self.phantoms.capacity() * 4
            + self.index.bytes()
    }
}
