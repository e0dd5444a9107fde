//! Values with counts, in order: MIN and MAX have no inverse, so deletions need them.

use super::accumulator::count_up;
use crate::expression::OrderKey;
use std::collections::BTreeMap;
use std::mem::size_of;

/// Most groups are small: a sorted vector up to `SPILL` values, a tree above; a vector again at
/// half of it.
pub(super) enum Multiset {
    Small(Vec<(OrderKey, i64)>),
    Large(BTreeMap<OrderKey, i64>),
}

const SPILL: usize = 16;

impl Multiset {
    pub fn new() -> Multiset {
        Multiset::Small(Vec::new())
    }

    /// True if a count overflows; it is then right modulo 2^64.
    pub fn add(&mut self, key: OrderKey, weight: i64) -> bool {
        match self {
            Multiset::Small(values) => match values.binary_search_by(|(other, _)| other.cmp(&key)) {
                Ok(position) => {
                    let overflowed = count_up(&mut values[position].1, weight);
                    if values[position].1 == 0 {
                        values.remove(position);
                    }
                    overflowed
                }
                Err(position) => {
                    values.insert(position, (key, weight));
                    if values.len() > SPILL {
                        *self = Multiset::Large(std::mem::take(values).into_iter().collect());
                    }
                    false
                }
            },
            Multiset::Large(values) => {
                let count = values.entry(key.clone()).or_insert(0);
                let overflowed = count_up(count, weight);
                if *count == 0 {
                    values.remove(&key);
                }
                if values.len() <= SPILL / 2 {
                    *self = Multiset::Small(std::mem::take(values).into_iter().collect());
                }
                overflowed
            }
        }
    }

    pub fn least(&self) -> Option<&OrderKey> {
        match self {
            Multiset::Small(values) => values.first().map(|(key, _)| key),
            Multiset::Large(values) => values.first_key_value().map(|(key, _)| key),
        }
    }

    pub fn greatest(&self) -> Option<&OrderKey> {
        match self {
            Multiset::Small(values) => values.last().map(|(key, _)| key),
            Multiset::Large(values) => values.last_key_value().map(|(key, _)| key),
        }
    }

    /// Bytes outside the value itself. Strings are counted in neither form: they would need a scan.
    pub fn bytes(&self) -> usize {
        let entry = size_of::<(OrderKey, i64)>();
        match self {
            Multiset::Small(values) => values.capacity() * entry,
            // B-tree nodes are on average two thirds full.
            Multiset::Large(values) => values.len() * entry * 3 / 2,
        }
    }
}
