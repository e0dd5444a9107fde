//! A cheap hash of words that spreads any set of integers, multiples of large powers of two included.
//!
//! Each word is multiplied to 128 bits and the halves are folded together, so that every input bit reaches both the high bits
//! (the tag of a hash table's slot) and the low bits (its position). It is fixed, so that the order of rows in a
//! table, and with it every output, is a function of the input.

use crate::chunk::Word;

const SEED: u64 = 0x243f_6a88_85a3_08d3;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

#[inline(always)]
pub(crate) fn hash_words(words: &[Word]) -> u64 {
    hash_all(words.iter().copied())
}

#[inline(always)]
pub(crate) fn hash_all(words: impl Iterator<Item = Word>) -> u64 {
    let mut state = SEED;
    for word in words {
        state = fold(state.rotate_left(29) ^ word, FACTOR);
    }
    fold(state ^ SEED, FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn regular_keys_spread_over_slots_and_tags() {
        for shift in [0, 7, 16, 32, 44, 52] {
            let hashes: Vec<u64> = (0..4096u64).map(|key| hash_words(&[key << shift])).collect();
            let slots: HashSet<u64> = hashes.iter().map(|hash| hash & 4095).collect();
            let tags: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            assert!(
                slots.len() > 2200 && tags.len() == 128,
                "shift {shift}: {} slots, {} tags",
                slots.len(),
                tags.len()
            );
        }
    }
}
