//! The entries of one edge: for each key the child's rows and the parent's rows that have it.
//!
//! An entry is the projection view V_p of the child (paper, equation 1) and the index on the parent that a P-update needs, in one:
//! the key is in V_p while a child row of the semi-join view has it. An entry lives while a row of either side has its key.

use super::hash::hash_words;
use super::lists::{reserve_slowly, List};
use crate::chunk::Word;
use hashbrown::HashTable;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    /// Child rows in the semi-join view, those that depart in the current update last. Only their number is kept (in
    /// `children.len`) when the child is not connex: nobody enumerates them.
    pub children: List,
    /// Parent rows with the key, the live ones first.
    pub parents: List,
    /// How many parent rows are live.
    pub live: u32,
    /// How many of `children` are leaving in the current update: enumeration still sees them, counting does not.
    /// On edges of children that are not connex: where the current update has the entry in its list of changed entries.
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
    table: HashTable<u32>,
    /// Free entries, linked through `references`.
    free: u32,
}

impl Edge {
    pub fn new(width: usize, components: usize) -> Edge {
        Edge {
            width,
            keys: Vec::new(),
            entries: Vec::new(),
            values: Vec::new(),
            components,
            table: HashTable::new(),
            free: NONE,
        }
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.table.iter().copied()
    }

    #[inline(always)]
    pub fn key(&self, entry: u32) -> &[Word] {
        let start = entry as usize * self.width;
        &self.keys[start..start + self.width]
    }

    #[inline]
    pub fn find_or_insert(&mut self, key: &[Word]) -> u32 {
        let hash = hash_words(key);
        if let Some(entry) = self.table.find(hash, |entry| self.key(*entry) == key) {
            return *entry;
        }
        let entry = if self.free == NONE {
            let entry = u32::try_from(self.entries.len()).expect("fewer than 2^32 keys");
            reserve_slowly(&mut self.keys, self.width);
            self.keys.extend_from_slice(key);
            reserve_slowly(&mut self.entries, 1);
            self.entries.push(Entry::default());
            reserve_slowly(&mut self.values, self.components);
            self.values.resize(self.values.len() + self.components, 0);
            entry
        } else {
            let entry = self.free;
            self.free = self.entries[entry as usize].references;
            self.entries[entry as usize] = Entry::default();
            let start = entry as usize * self.width;
            self.keys[start..start + self.width].copy_from_slice(key);
            self.values_mut(entry).fill(0);
            entry
        };
        let (keys, width) = (&self.keys, self.width);
        self.table.insert_unique(hash, entry, |entry| {
            let start = *entry as usize * width;
            hash_words(&keys[start..start + width])
        });
        entry
    }

    /// Frees the entry if no row of either side has its key.
    #[inline]
    pub fn remove_if_unused(&mut self, entry: u32) {
        let state = &self.entries[entry as usize];
        if state.references > 0 || state.parents.len > 0 {
            return;
        }
        debug_assert_eq!(state.children.len, 0);
        let hash = hash_words(self.key(entry));
        if let Ok(slot) = self.table.find_entry(hash, |other| *other == entry) {
            slot.remove();
        }
        self.entries[entry as usize].references = self.free;
        self.free = entry;
    }

    pub fn values(&self, entry: u32) -> &[i128] {
        let start = entry as usize * self.components;
        &self.values[start..start + self.components]
    }

    pub fn values_mut(&mut self, entry: u32) -> &mut [i128] {
        let start = entry as usize * self.components;
        &mut self.values[start..start + self.components]
    }

    pub fn is_sparse(&self) -> bool {
        self.entries.len() > 256 && self.len() * 4 < self.entries.len()
    }

    /// Moves all entries to the front of new slabs; gives the new id of each old one.
    pub fn compact(&mut self) -> Vec<u32> {
        let mut fresh = Edge::new(self.width, self.components);
        let mut ids = vec![NONE; self.entries.len()];
        let mut entries: Vec<u32> = self.iter().collect();
        entries.sort_unstable();
        fresh.entries.reserve_exact(entries.len());
        fresh.keys.reserve_exact(entries.len() * self.width);
        for entry in entries {
            let target = fresh.find_or_insert(self.key(entry));
            fresh.entries[target as usize] = self.entries[entry as usize];
            fresh.values_mut(target).copy_from_slice(self.values(entry));
            ids[entry as usize] = target;
        }
        *self = fresh;
        ids
    }

    pub fn bytes(&self) -> usize {
        self.keys.capacity() * 8
            + self.entries.capacity() * size_of::<Entry>()
            + self.values.capacity() * 16
            + self.table.allocation_size()
    }
}
