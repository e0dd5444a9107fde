//! A hash table from hashes to ids, made for few cache misses.
//!
//! Open addressing with linear probing; a slot has an id and 32 bits of its hash. So a look-up
//! costs one cache miss, looks at a row only when all 32 bits agree, and growing or deleting never
//! looks at a row at all. The home of a hash is its share of the table (multiply and shift), so the
//! table can grow by half. It is at most five eighths full: a run is short then, and a slot has
//! eight bytes.
//!
//! Each size of the table orders hashes differently. Otherwise rows that arrive in the order of
//! another table, as those of a saved state do, would crowd into one part of this table while it
//! grows, and form ever longer runs.

use super::hash::hash_words;
use super::slab::{at, at_mut, prefetch, with_capacity};

pub(crate) struct Index {
    /// 0, or the hash above and the id plus 1 below.
    slots: Vec<u64>,
    len: usize,
    /// Odd, and another one for each size.
    multiplier: u32,
}

const SMALLEST: usize = 8;

/// The part of a hash that the index keeps.
#[inline(always)]
fn short(hash: u64) -> u64 {
    hash >> 32
}

impl Index {
    pub fn new() -> Index {
        Index { slots: Vec::new(), len: 0, multiplier: 1 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Removes all ids; keeps the memory when most of it was in use.
    pub fn clear(&mut self) {
        if self.len * 8 < self.slots.len() {
            *self = Index::new();
        } else {
            self.slots.fill(0);
            self.len = 0;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.iter().filter(|slot| **slot != 0).map(|slot| *slot as u32 - 1)
    }

    /// Where the search for a hash begins: below `slots.len()`, unless there are no slots.
    #[inline(always)]
    fn home(&self, short: u64) -> usize {
        let mixed = (short as u32).wrapping_mul(self.multiplier);
        ((u64::from(mixed) * self.slots.len() as u64) >> 32) as usize
    }

    /// The next slot, with the first after the last.
    #[inline(always)]
    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() {
            0
        } else {
            slot + 1
        }
    }

    /// Prefetches the slot of a hash.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&self.slots, self.home(short(hash)));
    }

    /// The id with this hash that is `equal`.
    #[inline(always)]
    pub fn find(&self, hash: u64, mut equal: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let short = short(hash);
        let mut position = self.home(short);
        loop {
            // SAFETY: there are slots, and `home` and `after` stay among them.
            let slot = unsafe { *at(&self.slots, position) };
            if slot == 0 {
                return None;
            }
            if slot >> 32 == short && equal(slot as u32 - 1) {
                return Some(slot as u32 - 1);
            }
            position = self.after(position);
        }
    }

    /// Reserves space for `additional` more ids.
    pub fn reserve(&mut self, additional: usize) {
        let wanted = (self.len + additional) * 8 / 5 + 1;
        if wanted > self.slots.len() {
            self.rebuild(wanted.max(self.slots.len() * 3 / 2).max(SMALLEST));
        }
    }

    /// Adds an id that is not there.
    #[inline]
    pub fn insert(&mut self, hash: u64, id: u32) {
        if (self.len + 1) * 8 > self.slots.len() * 5 {
            self.rebuild((self.slots.len() * 3 / 2).max(SMALLEST));
        }
        self.settle(short(hash) << 32 | (u64::from(id) + 1));
        self.len += 1;
    }

    /// Writes a slot to the first free position from its home on. There is one.
    #[inline(always)]
    fn settle(&mut self, slot: u64) {
        debug_assert!(self.len < self.slots.len());
        let mut position = self.home(slot >> 32);
        // SAFETY: there are slots, and `home` and `after` stay among them.
        while unsafe { *at(&self.slots, position) } != 0 {
            position = self.after(position);
        }
        // SAFETY: as above.
        unsafe { *at_mut(&mut self.slots, position) = slot };
    }

    /// Removes an id that is there, moving later slots of its run up so that no run is broken.
    #[inline]
    pub fn remove(&mut self, hash: u64, id: u32) {
        let wanted = short(hash) << 32 | (u64::from(id) + 1);
        let mut gap = self.home(short(hash));
        // SAFETY: the id is there, so there are slots, and `home` and `after` stay among them.
        while unsafe { *at(&self.slots, gap) } != wanted {
            gap = self.after(gap);
        }
        let mut position = gap;
        loop {
            position = self.after(position);
            // SAFETY: as above.
            let slot = unsafe { *at(&self.slots, position) };
            if slot == 0 {
                break;
            }
            let home = self.home(slot >> 32);
            let stays = if gap <= position { gap < home && home <= position } else { gap < home || home <= position };
            if !stays {
                self.slots[gap] = slot;
                gap = position;
            }
        }
        self.slots[gap] = 0;
        self.len -= 1;
        if self.slots.len() > 64 && self.len * 4 < self.slots.len() {
            self.rebuild(self.len * 2);
        }
    }

    #[cold]
    fn rebuild(&mut self, capacity: usize) {
        let mut slots = with_capacity(capacity);
        slots.resize(capacity, 0);
        let old = std::mem::replace(&mut self.slots, slots);
        self.multiplier = hash_words([capacity as u64]) as u32 | 1;
        for slot in old.into_iter().filter(|slot| *slot != 0) {
            self.settle(slot);
        }
    }

    pub fn bytes(&self) -> usize {
        self.slots.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// The longest way from a home to its slot.
    fn longest(index: &Index) -> usize {
        let size = index.slots.len();
        let way = |(place, slot): (usize, &u64)| (place + size - index.home(slot >> 32)) % size;
        index.slots.iter().enumerate().filter(|(_, slot)| **slot != 0).map(way).max().unwrap_or(0)
    }

    #[test]
    fn rows_in_the_order_of_another_index_don_t_crowd() {
        let mut hashes: Vec<u64> = (0..50_000u64).map(|key| hash_words([key])).collect();
        for by_order in [false, true] {
            if by_order {
                hashes.sort_unstable();
            }
            let (mut first, mut second) = (Index::new(), Index::new());
            for (id, hash) in hashes.iter().enumerate() {
                first.insert(*hash, id as u32);
                assert!(id % 1000 != 0 || longest(&first) < 200, "{id} {}", longest(&first));
            }
            for id in first.iter().collect::<Vec<_>>() {
                second.insert(hashes[id as usize], id);
                assert!(second.len() % 1000 != 0 || longest(&second) < 200, "{} {}", second.len(), longest(&second));
            }
        }
    }

    #[test]
    fn an_index_behaves_like_a_map() {
        let mut index = Index::new();
        let mut model: HashMap<u64, u32> = HashMap::new();
        let mut random = crate::random::Random(11);
        for step in 0..60_000u32 {
            let state = random.next();
            let range = if step / 10_000 % 2 == 0 { 3000 } else { 40 };
            let key = (state >> 33) % range;
            // Few distinct hashes, so that runs collide and wrap around.
            let hash = hash_words([key % 700]);
            let found = index.find(hash, |id| model.get(&key) == Some(&id));
            assert_eq!(found, model.get(&key).copied());
            match found {
                Some(id) if state >> 60 < 9 => {
                    index.remove(hash, id);
                    model.remove(&key);
                }
                None => {
                    index.insert(hash, step);
                    model.insert(key, step);
                }
                _ => {}
            }
            assert_eq!(index.len(), model.len());
        }
        let mut ids: Vec<u32> = index.iter().collect();
        let mut expected: Vec<u32> = model.values().copied().collect();
        ids.sort_unstable();
        expected.sort_unstable();
        assert_eq!(ids, expected);
    }
}
