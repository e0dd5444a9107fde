//! The order of values: what ORDER BY, MIN, MAX and comparisons agree on.

use crate::chunk::Word;
use crate::store::interner::Interner;
use crate::types::{word_float, DataType};
use std::cmp::Ordering;

/// A value as something that orders by itself, without its type and without the interner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OrderKey {
    /// A value of at most 64 bits.
    Inline(u64),
    /// Bytes that compare as the value does.
    Bytes(Box<[u8]>),
}

/// Order of two non-NULL words of one type: NaN equals NaN and is greatest, strings and binary go
/// by bytes.
pub fn compare(data_type: DataType, left: Word, right: Word, interner: &Interner) -> Ordering {
    if left == right {
        return Ordering::Equal;
    }
    match data_type {
        DataType::String | DataType::Binary | DataType::Uuid | DataType::Nested(_) => {
            interner.get(left).cmp(interner.get(right))
        }
        DataType::Decimal { precision, .. } if precision > 18 => {
            wide(interner.get(left)).cmp(&wide(interner.get(right)))
        }
        _ => inline_key(data_type, left).cmp(&inline_key(data_type, right)),
    }
}

/// The key of a non-NULL word: keys of one type compare as `compare` does.
pub fn order_key(data_type: DataType, word: Word, interner: &Interner) -> OrderKey {
    match data_type {
        DataType::String | DataType::Binary | DataType::Uuid | DataType::Nested(_) => {
            OrderKey::Bytes(interner.get(word).into())
        }
        DataType::Decimal { precision, .. } if precision > 18 => {
            let flipped = (wide(interner.get(word)) as u128) ^ (1 << 127);
            OrderKey::Bytes(flipped.to_be_bytes().into())
        }
        _ => OrderKey::Inline(inline_key(data_type, word)),
    }
}

/// The word that `order_key` was made from. Interns again where the type is interned.
pub fn key_word(data_type: DataType, key: &OrderKey, interner: &mut Interner) -> Word {
    match (key, data_type) {
        (OrderKey::Inline(key), DataType::Float32 | DataType::Float64) => float_from_key(*key),
        (OrderKey::Inline(key), _) => key ^ SIGN,
        (OrderKey::Bytes(bytes), DataType::Decimal { .. }) => {
            let flipped = u128::from_be_bytes((**bytes).try_into().expect("wide decimals have 16 bytes"));
            interner.intern(&((flipped ^ (1 << 127)) as i128).to_le_bytes())
        }
        (OrderKey::Bytes(bytes), _) => interner.intern(bytes),
    }
}

/// The rank of a non-NULL word in the order of a type whose words are not interned. Integers,
/// dates, timestamps and decimals are their own rank.
pub(crate) fn rank(data_type: DataType, word: Word) -> i64 {
    debug_assert!(!data_type.interned());
    (inline_key(data_type, word) ^ SIGN) as i64
}

const SIGN: u64 = 1 << 63;

fn inline_key(data_type: DataType, word: Word) -> u64 {
    match data_type {
        // Floats have one NaN (positive) and no -0, so the usual bit trick gives Spark's total
        // order.
        DataType::Float32 | DataType::Float64 if word_float(word).is_sign_negative() => !word,
        _ => word ^ SIGN,
    }
}

fn float_from_key(key: u64) -> Word {
    if key & SIGN == 0 {
        !key
    } else {
        key ^ SIGN
    }
}

/// The value of a wide decimal's 16 bytes.
pub(crate) fn wide(bytes: &[u8]) -> i128 {
    i128::from_le_bytes(bytes.try_into().expect("wide decimals have 16 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::float_word;

    #[test]
    fn keys_order_as_values_do_and_give_them_back() {
        let mut interner = Interner::default();
        let mut check = |data_type: DataType, ascending: Vec<Word>| {
            for (i, left) in ascending.iter().enumerate() {
                for (j, right) in ascending.iter().enumerate() {
                    let (a, b) = (order_key(data_type, *left, &interner), order_key(data_type, *right, &interner));
                    assert_eq!(compare(data_type, *left, *right, &interner), i.cmp(&j), "{data_type:?} {i} {j}");
                    assert_eq!(a.cmp(&b), i.cmp(&j), "{data_type:?} {i} {j}");
                }
                let key = order_key(data_type, *left, &interner);
                assert_eq!(key_word(data_type, &key, &mut interner), *left, "{data_type:?} {i}");
            }
        };
        let floats = [f64::NEG_INFINITY, -2.5, -1e-300, 0.0, 1e-300, 3.0, f64::INFINITY, f64::NAN];
        check(DataType::Float64, floats.map(float_word).to_vec());
        check(DataType::Int64, [i64::MIN, -1, 0, 1, i64::MAX].map(|value| value as Word).to_vec());
        check(DataType::Boolean, vec![0, 1]);
        let mut interner = Interner::default();
        let words = ["", "A", "B", "a", "ab", "é"].map(|text| interner.intern(text.as_bytes()));
        for pair in words.windows(2) {
            assert_eq!(compare(DataType::String, pair[0], pair[1], &interner), Ordering::Less);
        }
        let wide_type = DataType::Decimal { precision: 38, scale: 2 };
        let decimals = [-(10i128.pow(30)), -1, 0, 7, 10i128.pow(30)].map(|v| interner.intern(&v.to_le_bytes()));
        for pair in decimals.windows(2) {
            assert_eq!(compare(wide_type, pair[0], pair[1], &interner), Ordering::Less);
            let keys = pair.iter().map(|word| order_key(wide_type, *word, &interner)).collect::<Vec<_>>();
            assert!(keys[0] < keys[1]);
            assert_eq!(key_word(wide_type, &keys[0], &mut interner), pair[0]);
        }
    }
}
