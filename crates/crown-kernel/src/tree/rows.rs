//! The rows of one node, in slabs addressed by `u32` ids.
//!
//! A row has its words (with its NULL mask as one more word where a variable may be NULL) and its links: how
//! many children it still misses, and for each edge the entry of its key and its place in that entry's list. So after the look-ups at
//! its insertion a row is reached, and left, by index alone.

use super::hash::hash_words;
use super::lists::reserve_slowly;
use crate::chunk::Word;
use hashbrown::HashTable;

const NONE: u32 = u32::MAX;

pub(super) struct Rows {
    width: usize,
    stride: usize,
    words: Vec<Word>,
    links: Vec<u32>,
    /// How often each row is there; empty while every row is there once.
    multiplicities: Vec<u64>,
    /// Per row the values of the ring factors of this node's atom.
    factors: Vec<i128>,
    factor_count: usize,
    table: HashTable<u32>,
    /// Free rows, linked through their first link.
    free: u32,
    pub in_semi_join: usize,
}

impl Rows {
    pub fn new(width: usize, stride: usize, factor_count: usize) -> Rows {
        Rows {
            width,
            stride,
            words: Vec::new(),
            links: Vec::new(),
            multiplicities: Vec::new(),
            factors: Vec::new(),
            factor_count,
            table: HashTable::new(),
            free: NONE,
            in_semi_join: 0,
        }
    }

    #[inline(always)]
    pub fn words(&self, row: u32) -> &[Word] {
        let start = row as usize * self.width;
        &self.words[start..start + self.width]
    }

    #[inline(always)]
    pub fn word(&self, row: u32, column: usize) -> Word {
        self.words[row as usize * self.width + column]
    }

    #[inline(always)]
    pub fn link(&self, row: u32, offset: usize) -> u32 {
        self.links[row as usize * self.stride + offset]
    }

    #[inline(always)]
    pub fn link_mut(&mut self, row: u32, offset: usize) -> &mut u32 {
        &mut self.links[row as usize * self.stride + offset]
    }

    /// How many children's keys the row misses; 0 means that it is in the semi-join view.
    #[inline(always)]
    pub fn missing(&self, row: u32) -> u32 {
        self.link(row, 0)
    }

    pub fn find(&self, words: &[Word]) -> Option<u32> {
        debug_assert_eq!(words.len(), self.width);
        self.table.find(hash_words(words), |row| self.words(*row) == words).copied()
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.table.iter().copied()
    }

    /// Adds a row that is not there yet, with multiplicity 1 and links unset.
    pub fn insert(&mut self, words: &[Word]) -> u32 {
        let row = if self.free == NONE {
            let row = u32::try_from(self.links.len() / self.stride).expect("fewer than 2^32 rows");
            reserve_slowly(&mut self.words, self.width);
            self.words.extend_from_slice(words);
            reserve_slowly(&mut self.links, self.stride);
            self.links.resize(self.links.len() + self.stride, 0);
            if !self.multiplicities.is_empty() {
                self.multiplicities.push(1);
            }
            if self.factor_count > 0 {
                self.factors.resize(self.factors.len() + self.factor_count, 0);
            }
            row
        } else {
            let row = self.free;
            self.free = self.link(row, 0);
            let start = row as usize * self.width;
            self.words[start..start + self.width].copy_from_slice(words);
            row
        };
        let (slab, width) = (&self.words, self.width);
        self.table.insert_unique(hash_words(words), row, |row| {
            let start = *row as usize * width;
            hash_words(&slab[start..start + width])
        });
        row
    }

    pub fn remove(&mut self, row: u32) {
        let hash = hash_words(self.words(row));
        if let Ok(slot) = self.table.find_entry(hash, |other| *other == row) {
            slot.remove();
        }
        if let Some(multiplicity) = self.multiplicities.get_mut(row as usize) {
            *multiplicity = 1;
        }
        *self.link_mut(row, 0) = self.free;
        self.free = row;
    }

    #[inline(always)]
    pub fn multiplicity(&self, row: u32) -> u64 {
        self.multiplicities.get(row as usize).copied().unwrap_or(1)
    }

    pub fn set_multiplicity(&mut self, row: u32, multiplicity: u64) {
        if self.multiplicities.is_empty() {
            if multiplicity == 1 {
                return;
            }
            self.multiplicities.resize(self.links.len() / self.stride, 1);
        }
        self.multiplicities[row as usize] = multiplicity;
    }

    /// Whether no row has ever been there twice (since the slab was last empty).
    pub fn is_plain(&self) -> bool {
        self.multiplicities.is_empty()
    }

    pub fn factors(&self, row: u32) -> &[i128] {
        let start = row as usize * self.factor_count;
        &self.factors[start..start + self.factor_count]
    }

    pub fn set_factors(&mut self, row: u32, values: &[i128]) {
        let start = row as usize * self.factor_count;
        self.factors[start..start + self.factor_count].copy_from_slice(values);
    }

    /// Whether the slab is worth rebuilding: large and mostly free.
    pub fn is_sparse(&self) -> bool {
        let slots = self.links.len() / self.stride;
        slots > 256 && self.len() * 4 < slots
    }

    /// Moves all rows to the front of new slabs; gives the new id of each old one.
    pub fn compact(&mut self) -> Vec<u32> {
        let mut fresh = Rows::new(self.width, self.stride, self.factor_count);
        let mut ids = vec![NONE; self.links.len() / self.stride];
        fresh.in_semi_join = self.in_semi_join;
        fresh.words.reserve_exact(self.len() * self.width);
        fresh.links.reserve_exact(self.len() * self.stride);
        let mut rows: Vec<u32> = self.iter().collect();
        rows.sort_unstable();
        for row in rows {
            let target = fresh.insert(self.words(row));
            let (from, to) = (row as usize * self.stride, target as usize * self.stride);
            fresh.links[to..to + self.stride].copy_from_slice(&self.links[from..from + self.stride]);
            fresh.set_multiplicity(target, self.multiplicity(row));
            if self.factor_count > 0 {
                fresh.set_factors(target, self.factors(row));
            }
            ids[row as usize] = target;
        }
        *self = fresh;
        ids
    }

    pub fn bytes(&self) -> usize {
        (self.words.capacity() + self.multiplicities.capacity()) * 8
            + self.links.capacity() * 4
            + self.factors.capacity() * 16
            + self.table.allocation_size()
    }
}
