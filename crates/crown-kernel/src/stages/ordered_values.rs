//! The values of a group in order, with counts: for aggregates that depend on all of them.
//!
//! Values are stored in blocks of bounded size, each with the number of its copies. So finding the
//! value at a position skips whole blocks and scans only one.

use crate::chunk::Word;
use crate::store::interner::Interner;
use std::mem::size_of;

/// By sort key. A value may be NULL; `interned` ones are held.
#[derive(Default)]
pub(super) struct OrderedValues {
    /// None is empty.
    blocks: Vec<Block>,
    len: usize,
    key_bytes: usize,
}

#[derive(Default)]
struct Block {
    entries: Vec<Entry>,
    /// Of all entries together, modulo 2^64.
    copies: i64,
}

struct Entry {
    key: Box<[u8]>,
    value: Option<Word>,
    copies: i64,
}

/// A block with more entries is split; one with fewer than a quarter of it joins its neighbour.
const MOST: usize = 512;

impl OrderedValues {
    /// True if a count overflows; it is then right modulo 2^64.
    pub fn add(
        &mut self,
        key: &[u8],
        value: Option<Word>,
        weight: i64,
        interned: bool,
        interner: &mut Interner,
    ) -> bool {
        let held = value.filter(|_| interned);
        if self.blocks.is_empty() {
            self.blocks.push(Block::default());
        }
        let number = self.block_of(key);
        let block = &mut self.blocks[number];
        block.copies = block.copies.wrapping_add(weight);
        match block.entries.binary_search_by(|entry| (*entry.key).cmp(key)) {
            Err(place) => {
                held.into_iter().for_each(|word| interner.retain(word));
                block.entries.insert(place, Entry { key: key.into(), value, copies: weight });
                self.len += 1;
                self.key_bytes += key.len();
                self.split(number);
                false
            }
            Ok(place) => {
                let entry = &mut block.entries[place];
                let (after, overflowed) = entry.copies.overflowing_add(weight);
                entry.copies = after;
                if after == 0 {
                    block.entries.remove(place);
                    self.len -= 1;
                    self.key_bytes -= key.len();
                    held.into_iter().for_each(|word| interner.release(word));
                    self.join(number);
                }
                overflowed
            }
        }
    }

    /// The block that has the key, or would have it.
    fn block_of(&self, key: &[u8]) -> usize {
        let below = self.blocks.partition_point(|block| block.entries.last().is_some_and(|last| *last.key < *key));
        below.min(self.blocks.len() - 1)
    }

    fn split(&mut self, number: usize) {
        let block = &mut self.blocks[number];
        if block.entries.len() <= MOST {
            return;
        }
        let entries = block.entries.split_off(MOST / 2);
        let copies = entries.iter().fold(0, |sum: i64, entry| sum.wrapping_add(entry.copies));
        block.copies = block.copies.wrapping_sub(copies);
        self.blocks.insert(number + 1, Block { entries, copies });
    }

    fn join(&mut self, number: usize) {
        if self.blocks[number].entries.len() >= MOST / 4 {
            return;
        }
        let first = if number + 1 < self.blocks.len() { number } else { number.saturating_sub(1) };
        if first + 1 < self.blocks.len() {
            let next = self.blocks.remove(first + 1);
            let block = &mut self.blocks[first];
            block.entries.extend(next.entries);
            block.copies = block.copies.wrapping_add(next.copies);
            self.split(first);
        } else if self.blocks[number].entries.is_empty() {
            self.blocks.clear();
        }
    }

    /// How many different ones there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// In order, each with its count.
    pub fn iter(&self) -> impl Iterator<Item = (Option<Word>, i64)> + '_ {
        self.blocks.iter().flat_map(|block| block.entries.iter().map(|entry| (entry.value, entry.copies)))
    }

    /// How many there are, copies counted unless `distinct`.
    pub fn total(&self, distinct: bool) -> i64 {
        if distinct {
            return self.len as i64;
        }
        self.blocks.iter().fold(0, |sum: i64, block| sum.wrapping_add(block.copies))
    }

    /// The value at a position, from 0, copies counted unless `distinct`; and how many blocks and
    /// values were passed.
    pub fn at(&self, position: i64, distinct: bool) -> (Option<Word>, usize) {
        let (mut passed, mut steps) = (0, 0);
        for block in &self.blocks {
            steps += 1;
            let copies = if distinct { block.entries.len() as i64 } else { block.copies };
            if passed + copies <= position {
                passed += copies;
                continue;
            }
            for entry in &block.entries {
                steps += 1;
                passed += if distinct { 1 } else { entry.copies };
                if passed > position {
                    return (entry.value, steps);
                }
            }
        }
        (None, steps)
    }

    pub fn bytes(&self) -> usize {
        let entries: usize = self.blocks.iter().map(|block| block.entries.capacity()).sum();
        entries * size_of::<Entry>() + self.blocks.capacity() * size_of::<Block>() + self.key_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::collections::BTreeMap;

    #[test]
    fn positions_are_found_without_walking_all_values() {
        let (mut values, mut interner) = (OrderedValues::default(), Interner::default());
        let mut expected: BTreeMap<u64, i64> = BTreeMap::new();
        let mut random = Random(5);
        for round in 0..60_000u32 {
            let number = random.index(20_000) as u64;
            let leaves = round > 40_000 || random.index(3) == 0;
            let copies = expected.entry(number).or_insert(0);
            let weight = if leaves { -*copies } else { 1 + random.index(2) as i64 };
            if weight != 0 {
                *copies += weight;
                values.add(&number.to_be_bytes(), Some(number), weight, false, &mut interner);
            }
            if round % 1000 == 0 {
                let all: Vec<u64> = expected
                    .iter()
                    .flat_map(|(number, copies)| std::iter::repeat_n(*number, *copies as usize))
                    .collect();
                assert_eq!(values.total(false), all.len() as i64);
                for _ in 0..20 {
                    let position = random.index(all.len().max(1));
                    let (found, steps) = values.at(position as i64, false);
                    assert_eq!(found, all.get(position).copied());
                    assert!(steps <= MOST + values.len() / (MOST / 8) + 2, "{steps} of {}", values.len());
                }
            }
        }
        for (number, copies) in expected.into_iter().filter(|(_, copies)| *copies != 0) {
            values.add(&number.to_be_bytes(), Some(number), -copies, false, &mut interner);
        }
        assert_eq!((values.len(), values.total(true), values.blocks.len()), (0, 0, 0));
    }
}
