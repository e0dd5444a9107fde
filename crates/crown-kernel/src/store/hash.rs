//! A cheap hash of words that spreads any set of integers, multiples of large powers of two
//! included.
//!
//! Each word is multiplied to 128 bits and the halves are folded together, so that every input bit
//! reaches both the high bits (the tag of a hash table's slot) and the low bits (its position). It
//! is fixed, so that the order of rows in a table, and with it every output, is a function of the
//! input.

use crate::chunk::Word;

const SEED: u64 = 0x243f_6a88_85a3_08d3;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

/// Hashes a sequence of words.
#[inline(always)]
pub(crate) fn hash_words(words: impl IntoIterator<Item = Word>) -> u64 {
    let mut state = SEED;
    for word in words {
        state = fold(state.rotate_left(29) ^ word, FACTOR);
    }
    fold(state ^ SEED, FACTOR)
}

/// Hashes words for what outlives this process: the cells of values and the checksums of snapshots.
/// It is part of those formats and must never change, unlike `hash_words`, which only arranges
/// tables in memory.
pub(crate) fn stable_hash(words: impl IntoIterator<Item = Word>) -> u64 {
    let mix = |state: u64, word: Word| fold(state ^ word, FACTOR).wrapping_add(word);
    fold(words.into_iter().fold(SEED, mix), 0xd6e8_feb8_6659_fd93)
}

/// Hashes bytes as `stable_hash` does words.
pub(crate) fn stable_hash_bytes(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        Word::from_le_bytes(word)
    });
    stable_hash(words.chain([bytes.len() as Word]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn stable_hashes_never_change() {
        assert_eq!(stable_hash([1, 2, 3]), 0x85df_8670_fc68_48a0);
        assert_eq!(stable_hash_bytes(b"checkpoint"), 0x0836_19a7_5af7_39ca);
    }

    #[test]
    fn regular_keys_spread_over_slots_and_tags() {
        for shift in [0, 7, 16, 32, 44, 52] {
            let hashes: Vec<u64> = (0..4096u64).map(|key| hash_words([key << shift])).collect();
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
