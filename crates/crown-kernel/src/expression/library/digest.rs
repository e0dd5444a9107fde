//! Digests of bytes, as lower-case hexadecimal text: MD5, SHA-1, SHA-2; and CRC-32 as a number.

use super::super::value::Value;
use super::{integer, string};
use crate::error::Result;
use crate::types::DataType;

type Evaluated<'a> = Result<Option<Value<'a>>>;

pub fn md5<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    string(text(md5_words(arguments[0].bytes()).into_iter().flat_map(u32::to_le_bytes)))
}

pub fn sha1<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    string(text(sha1_words(arguments[0].bytes()).into_iter().flat_map(u32::to_be_bytes)))
}

/// NULL for a number of bits that SHA-2 does not have; 0 means 256.
pub fn sha2<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let bytes = arguments[0].bytes();
    let (digest, length): (Vec<u8>, usize) = match arguments[1].integer() {
        224 => (sha256_words(bytes, SHA224).into_iter().flat_map(u32::to_be_bytes).collect(), 28),
        0 | 256 => (sha256_words(bytes, SHA256).into_iter().flat_map(u32::to_be_bytes).collect(), 32),
        384 => (sha512_words(bytes, SHA384).into_iter().flat_map(u64::to_be_bytes).collect(), 48),
        512 => (sha512_words(bytes, SHA512).into_iter().flat_map(u64::to_be_bytes).collect(), 64),
        _ => return Ok(None),
    };
    string(text(digest.into_iter().take(length)))
}

pub fn crc32<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let mut crc = u32::MAX;
    for byte in arguments[0].bytes() {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    integer(i64::from(!crc))
}

fn text(bytes: impl Iterator<Item = u8>) -> String {
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// The message with its padding: a one bit, zeros, and its length in bits at the end of the last
/// block.
fn blocks(bytes: &[u8], block: usize, length: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    while padded.len() % block != block - length.len() {
        padded.push(0);
    }
    padded.extend_from_slice(length);
    padded
}

fn bits(bytes: &[u8]) -> u64 {
    bytes.len() as u64 * 8
}

fn md5_words(bytes: &[u8]) -> [u32; 4] {
    const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let mut state: [u32; 4] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476];
    for block in blocks(bytes, 64, &bits(bytes).to_le_bytes()).chunks_exact(64) {
        let words = words_of::<16>(block, u32::from_le_bytes);
        let [mut a, mut b, mut c, mut d] = state;
        for step in 0..64 {
            let (mixed, word) = match step / 16 {
                0 => ((b & c) | (!b & d), step),
                1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
                2 => (b ^ c ^ d, (3 * step + 5) % 16),
                _ => (c ^ (b | !d), (7 * step) % 16),
            };
            let constant = (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
            let sum = a.wrapping_add(mixed).wrapping_add(constant).wrapping_add(words[word]);
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(SHIFTS[step / 16][step % 4]));
        }
        for (word, value) in state.iter_mut().zip([a, b, c, d]) {
            *word = word.wrapping_add(value);
        }
    }
    state
}

fn sha1_words(bytes: &[u8]) -> [u32; 5] {
    let mut state: [u32; 5] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0];
    for block in blocks(bytes, 64, &bits(bytes).to_be_bytes()).chunks_exact(64) {
        let mut words = [0; 80];
        words[..16].copy_from_slice(&words_of::<16>(block, u32::from_be_bytes));
        for step in 16..80 {
            words[step] = (words[step - 3] ^ words[step - 8] ^ words[step - 14] ^ words[step - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (step, word) in words.into_iter().enumerate() {
            let (mixed, constant) = match step / 20 {
                0 => ((b & c) | (!b & d), 0x5A82_7999),
                1 => (b ^ c ^ d, 0x6ED9_EBA1),
                2 => ((b & c) | (b & d) | (c & d), 0x8F1B_BCDC),
                _ => (b ^ c ^ d, 0xCA62_C1D6_u32),
            };
            let sum = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e).wrapping_add(constant).wrapping_add(word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, sum);
        }
        for (word, value) in state.iter_mut().zip([a, b, c, d, e]) {
            *word = word.wrapping_add(value);
        }
    }
    state
}

fn words_of<const COUNT: usize>(block: &[u8], read: fn([u8; 4]) -> u32) -> [u32; COUNT] {
    std::array::from_fn(|index| read(block[index * 4..][..4].try_into().expect("a word has four bytes")))
}

const SHA224: [u32; 8] =
    [0xC105_9ED8, 0x367C_D507, 0x3070_DD17, 0xF70E_5939, 0xFFC0_0B31, 0x6858_1511, 0x64F9_8FA7, 0xBEFA_4FA4];
const SHA256: [u32; 8] =
    [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19];
const SHA384: [u64; 8] = [
    0xCBBB_9D5D_C105_9ED8,
    0x629A_292A_367C_D507,
    0x9159_015A_3070_DD17,
    0x152F_ECD8_F70E_5939,
    0x6733_2667_FFC0_0B31,
    0x8EB4_4A87_6858_1511,
    0xDB0C_2E0D_64F9_8FA7,
    0x47B5_481D_BEFA_4FA4,
];
const SHA512: [u64; 8] = [
    0x6A09_E667_F3BC_C908,
    0xBB67_AE85_84CA_A73B,
    0x3C6E_F372_FE94_F82B,
    0xA54F_F53A_5F1D_36F1,
    0x510E_527F_ADE6_82D1,
    0x9B05_688C_2B3E_6C1F,
    0x1F83_D9AB_FB41_BD6B,
    0x5BE0_CD19_137E_2179,
];

/// The first 64 bits of the fractions of the cube roots of the first 80 primes; SHA-256 takes the
/// first 32 of 64.
const ROUNDS: [u64; 80] = rounds();

const fn rounds() -> [u64; 80] {
    let (mut found, mut count, mut candidate) = ([0; 80], 0, 2_u128);
    while count < 80 {
        let (mut divisor, mut prime) = (2, true);
        while divisor * divisor <= candidate {
            if candidate.is_multiple_of(divisor) {
                prime = false;
            }
            divisor += 1;
        }
        if prime {
            found[count] = cube_root_fraction(candidate);
            count += 1;
        }
        candidate += 1;
    }
    found
}

/// The 64 bits after the point of the cube root: the greatest r with r³ ≤ value·2^192, bit by bit.
const fn cube_root_fraction(value: u128) -> u64 {
    let (mut root, mut bit) = (0_u128, 67);
    while bit > 0 {
        bit -= 1;
        let trial = root | 1 << bit;
        if cube_at_most(trial, value) {
            root = trial;
        }
    }
    root as u64
}

/// Whether root³ ≤ value·2^192, for a root below 2^67: in limbs of 32 bits.
const fn cube_at_most(root: u128, value: u128) -> bool {
    let limbs = [root as u32 as u64, (root >> 32) as u32 as u64, (root >> 64) as u64];
    let square = times_three_limbs([limbs[0], limbs[1], limbs[2], 0, 0, 0], limbs);
    let cube = times_three_limbs([square[0], square[1], square[2], square[3], square[4], square[5]], limbs);
    let whole = cube[6] as u128 | (cube[7] as u128) << 32 | (cube[8] as u128) << 64;
    let exact = cube[0] | cube[1] | cube[2] | cube[3] | cube[4] | cube[5] == 0;
    whole < value || (whole == value && exact)
}

/// The product of two numbers in limbs of 32 bits, the least first.
const fn times_three_limbs(number: [u64; 6], factor: [u64; 3]) -> [u64; 9] {
    let mut product = [0_u64; 9];
    let mut i = 0;
    while i < 6 {
        let (mut carry, mut j) = (0, 0);
        while j < 3 {
            let sum = product[i + j] + number[i] * factor[j] + carry;
            product[i + j] = sum & 0xFFFF_FFFF;
            carry = sum >> 32;
            j += 1;
        }
        product[i + 3] = carry;
        i += 1;
    }
    product
}

fn sha256_words(bytes: &[u8], mut state: [u32; 8]) -> [u32; 8] {
    for block in blocks(bytes, 64, &bits(bytes).to_be_bytes()).chunks_exact(64) {
        let mut words = [0_u32; 64];
        words[..16].copy_from_slice(&words_of::<16>(block, u32::from_be_bytes));
        for step in 16..64 {
            let (early, late) = (words[step - 15], words[step - 2]);
            let one = early.rotate_right(7) ^ early.rotate_right(18) ^ early >> 3;
            let two = late.rotate_right(17) ^ late.rotate_right(19) ^ late >> 10;
            words[step] = words[step - 16].wrapping_add(one).wrapping_add(words[step - 7]).wrapping_add(two);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for step in 0..64 {
            let mixed = (e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25)).wrapping_add((e & f) ^ (!e & g));
            let round = (ROUNDS[step] >> 32) as u32;
            let first = h.wrapping_add(mixed).wrapping_add(round).wrapping_add(words[step]);
            let major = (a & b) ^ (a & c) ^ (b & c);
            let second = (a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22)).wrapping_add(major);
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(first), c, b, a, first.wrapping_add(second));
        }
        for (word, value) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *word = word.wrapping_add(value);
        }
    }
    state
}

fn sha512_words(bytes: &[u8], mut state: [u64; 8]) -> [u64; 8] {
    for block in blocks(bytes, 128, &u128::from(bits(bytes)).to_be_bytes()).chunks_exact(128) {
        let mut words = [0_u64; 80];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(8)) {
            *word = u64::from_be_bytes(bytes.try_into().expect("a word has eight bytes"));
        }
        for step in 16..80 {
            let (early, late) = (words[step - 15], words[step - 2]);
            let one = early.rotate_right(1) ^ early.rotate_right(8) ^ early >> 7;
            let two = late.rotate_right(19) ^ late.rotate_right(61) ^ late >> 6;
            words[step] = words[step - 16].wrapping_add(one).wrapping_add(words[step - 7]).wrapping_add(two);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for step in 0..80 {
            let mixed = (e.rotate_right(14) ^ e.rotate_right(18) ^ e.rotate_right(41)).wrapping_add((e & f) ^ (!e & g));
            let first = h.wrapping_add(mixed).wrapping_add(ROUNDS[step]).wrapping_add(words[step]);
            let major = (a & b) ^ (a & c) ^ (b & c);
            let second = (a.rotate_right(28) ^ a.rotate_right(34) ^ a.rotate_right(39)).wrapping_add(major);
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(first), c, b, a, first.wrapping_add(second));
        }
        for (word, value) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *word = word.wrapping_add(value);
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_known_texts() {
        assert_eq!(text(md5_words(b"abc").into_iter().flat_map(u32::to_le_bytes)), "900150983cd24fb0d6963f7d28e17f72");
        let sha1 = text(sha1_words(b"abc").into_iter().flat_map(u32::to_be_bytes));
        assert_eq!(sha1, "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!((ROUNDS[0], ROUNDS[79]), (0x428A_2F98_D728_AE22, 0x6C44_198C_4A47_5817));
        assert!(text(sha256_words(b"abc", SHA256).into_iter().flat_map(u32::to_be_bytes)).starts_with("ba7816bf8f01cf"));
        assert!(text(sha512_words(b"abc", SHA512).into_iter().flat_map(u64::to_be_bytes)).starts_with("ddaf35a193617a"));
    }
}
