//! Spark's `hash` (Murmur3, 32 bits) and `xxhash64`: each value is hashed with the hash of those
//! before it as the seed.

use super::super::value::Value;
use crate::types::DataType;

pub const SEED: i64 = 42;

/// How a value is hashed: as Spark stores it.
enum Stored<'v> {
    Int(i32),
    Long(i64),
    Bytes(std::borrow::Cow<'v, [u8]>),
}

fn stored<'v>(value: &'v Value, data_type: DataType) -> Stored<'v> {
    match (value, data_type) {
        (Value::Boolean(value), _) => Stored::Int(i32::from(*value)),
        (Value::Integer(value), DataType::Int64 | DataType::Timestamp | DataType::TimestampNtz | DataType::Time) => {
            Stored::Long(*value)
        }
        (Value::Integer(value), DataType::Interval(span)) if !span.is_months() => Stored::Long(*value),
        (Value::Integer(value), _) => Stored::Int(*value as i32),
        // Adding 0.0 makes 0.0 of -0.0.
        (Value::Float(value), DataType::Float32) => Stored::Int(java_float(*value as f32 + 0.0)),
        (Value::Float(value), _) => Stored::Long(java_double(*value + 0.0)),
        (Value::Decimal(value), DataType::Decimal { precision, .. }) if precision <= 18 => Stored::Long(*value as i64),
        (Value::Decimal(value), _) => Stored::Bytes(shortest_bytes(*value).into()),
        (Value::Bytes(bytes), _) => Stored::Bytes(std::borrow::Cow::Borrowed(bytes)),
    }
}

fn java_float(value: f32) -> i32 {
    if value.is_nan() {
        0x7FC0_0000
    } else {
        value.to_bits() as i32
    }
}

fn java_double(value: f64) -> i64 {
    if value.is_nan() {
        0x7FF8_0000_0000_0000
    } else {
        value.to_bits() as i64
    }
}

/// Java's BigInteger.toByteArray: big-endian, as few bytes as hold the value and its sign.
fn shortest_bytes(value: i128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let sign = if value < 0 { 0xFF } else { 0 };
    let needless = (0..15).take_while(|at| bytes[*at] == sign && (bytes[at + 1] ^ sign) & 0x80 == 0).count();
    bytes[needless..].to_vec()
}

/// The hash of a value after `seed`, which is that of the values before it.
pub fn murmur3(value: &Value, data_type: DataType, seed: i64) -> i64 {
    let seed = seed as u32;
    let hash = match stored(value, data_type) {
        Stored::Int(value) => finished(mixed(seed, value as u32), 4),
        Stored::Long(value) => finished(mixed(mixed(seed, value as u32), (value as u64 >> 32) as u32), 8),
        Stored::Bytes(bytes) => {
            let words = bytes.chunks_exact(4);
            // Spark takes the bytes that fill no word one by one, each with its sign.
            let rest = words.remainder().iter().map(|byte| *byte as i8 as u32);
            let words = words.map(|word| u32::from_le_bytes(word.try_into().expect("a word has four bytes")));
            finished(words.chain(rest).fold(seed, mixed), bytes.len() as u32)
        }
    };
    i64::from(hash as i32)
}

fn mixed(hash: u32, word: u32) -> u32 {
    let word = word.wrapping_mul(0xCC9E_2D51).rotate_left(15).wrapping_mul(0x1B87_3593);
    (hash ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xE654_6B64)
}

fn finished(hash: u32, length: u32) -> u32 {
    let mut hash = hash ^ length;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85EB_CA6B);
    hash = (hash ^ hash >> 13).wrapping_mul(0xC2B2_AE35);
    hash ^ hash >> 16
}

const PRIMES: [u64; 5] =
    [0x9E37_79B1_85EB_CA87, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9, 0x85EB_CA77_C2B2_AE63, 0x27D4_EB2F_1656_67C5];

/// As `murmur3`, for `xxhash64`.
pub fn xxhash64(value: &Value, data_type: DataType, seed: i64) -> i64 {
    let seed = seed as u64;
    let hash = match stored(value, data_type) {
        Stored::Int(value) => avalanche(four(seed.wrapping_add(PRIMES[4]).wrapping_add(4), u64::from(value as u32))),
        Stored::Long(value) => avalanche(eight(seed.wrapping_add(PRIMES[4]).wrapping_add(8), value as u64)),
        Stored::Bytes(bytes) => xxhash64_bytes(&bytes, seed),
    };
    hash as i64
}

fn xxhash64_bytes(bytes: &[u8], seed: u64) -> u64 {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("a word has eight bytes"));
    let stripes = bytes.chunks_exact(32);
    let mut rest = stripes.remainder();
    let mut hash = if bytes.len() >= 32 {
        let first = seed.wrapping_add(PRIMES[0]).wrapping_add(PRIMES[1]);
        let mut lanes = [first, seed.wrapping_add(PRIMES[1]), seed, seed.wrapping_sub(PRIMES[0])];
        for stripe in stripes {
            for (lane, bytes) in lanes.iter_mut().zip(stripe.chunks_exact(8)) {
                *lane = round(*lane, word(bytes));
            }
        }
        let turned = [1, 7, 12, 18].iter().zip(lanes).map(|(by, lane)| lane.rotate_left(*by));
        let sum = turned.fold(0_u64, u64::wrapping_add);
        let merge = |hash: u64, lane| (hash ^ round(0, lane)).wrapping_mul(PRIMES[0]).wrapping_add(PRIMES[3]);
        lanes.into_iter().fold(sum, merge)
    } else {
        seed.wrapping_add(PRIMES[4])
    };
    hash = hash.wrapping_add(bytes.len() as u64);
    while let Some((bytes, after)) = rest.split_at_checked(8) {
        (hash, rest) = (eight(hash, word(bytes)), after);
    }
    if let Some((bytes, after)) = rest.split_at_checked(4) {
        hash = four(hash, u64::from(u32::from_le_bytes(bytes.try_into().expect("a word has four bytes"))));
        rest = after;
    }
    for byte in rest {
        hash = (hash ^ u64::from(*byte).wrapping_mul(PRIMES[4])).rotate_left(11).wrapping_mul(PRIMES[0]);
    }
    avalanche(hash)
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(PRIMES[1])).rotate_left(31).wrapping_mul(PRIMES[0])
}

fn eight(hash: u64, word: u64) -> u64 {
    (hash ^ round(0, word)).rotate_left(27).wrapping_mul(PRIMES[0]).wrapping_add(PRIMES[3])
}

fn four(hash: u64, word: u64) -> u64 {
    (hash ^ word.wrapping_mul(PRIMES[0])).rotate_left(23).wrapping_mul(PRIMES[1]).wrapping_add(PRIMES[2])
}

fn avalanche(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 33).wrapping_mul(PRIMES[1]);
    let hash = (hash ^ hash >> 29).wrapping_mul(PRIMES[2]);
    hash ^ hash >> 32
}
