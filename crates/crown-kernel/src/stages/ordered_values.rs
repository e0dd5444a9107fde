//! The values of a group in order, with counts: for aggregates that depend on all of them.

use crate::chunk::Word;
use crate::store::interner::Interner;
use std::collections::BTreeMap;
use std::mem::size_of;

/// By sort key. A value may be NULL; `interned` ones are held.
#[derive(Default)]
pub(super) struct OrderedValues {
    values: BTreeMap<Box<[u8]>, (Option<Word>, i64)>,
    key_bytes: usize,
}

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
        let Some((_, count)) = self.values.get_mut(key) else {
            held.into_iter().for_each(|word| interner.retain(word));
            self.values.insert(key.into(), (value, weight));
            self.key_bytes += key.len();
            return false;
        };
        let (after, overflowed) = count.overflowing_add(weight);
        *count = after;
        if after == 0 {
            self.values.remove(key);
            self.key_bytes -= key.len();
            held.into_iter().for_each(|word| interner.release(word));
        }
        overflowed
    }

    /// How many different ones there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// In order, each with its count.
    pub fn iter(&self) -> impl Iterator<Item = (Option<Word>, i64)> + '_ {
        self.values.values().copied()
    }

    pub fn bytes(&self) -> usize {
        self.values.len() * size_of::<(Box<[u8]>, (Option<Word>, i64))>() * 3 / 2 + self.key_bytes
    }
}
