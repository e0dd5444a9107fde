//! Annotations: a commutative ring per component (paper, section 6.3), multiplied along the tree,
//! summed per key.
//!
//! Exact components are integers modulo 2^128 whose overflow is detected: a wrapped value still
//! cancels when its rows are deleted, so an overflow is an error of the update that caused it and
//! never corrupts the state. Float sums are stored as an unevaluated sum of two floats (Knuth's
//! two-sum), about 106 bits, so that inserting and deleting rows causes no drift; infinities and
//! NaNs, which no subtraction cancels, are counted separately.

use crate::chunk::Word;
use crate::error::{overflow, KernelError, Result};
use crate::store::interner::Interner;
use crate::types::{float_word, word_float, DataType};

/// A component's value in 128 bits: an integer, or a float's bits.
pub(super) type Value = i128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    /// Exact, shown as int64.
    Integer,
    /// Exact, shown as a decimal of 38 digits.
    Decimal,
    Float,
}

fn from_float(value: f64) -> Value {
    Value::from(value.to_bits())
}

fn to_float(value: Value) -> f64 {
    f64::from_bits(value as u64)
}

const DECIMAL_LIMIT: i128 = 10i128.pow(38);

impl Arithmetic {
    pub fn parse(name: &str) -> Result<Arithmetic> {
        match DataType::parse(name)? {
            DataType::Int64 => Ok(Arithmetic::Integer),
            DataType::Float64 => Ok(Arithmetic::Float),
            DataType::Decimal { precision: 38, .. } => Ok(Arithmetic::Decimal),
            _ => Err(KernelError::plan("CROWN-PLAN-MALFORMED", format!("a ring component can't have the type {name}"))),
        }
    }

    /// `count` as a value: the annotation of `count` equal rows.
    #[inline]
    pub fn of_count(self, count: u64) -> Value {
        match self {
            Arithmetic::Float => from_float(count as f64),
            _ => Value::from(count),
        }
    }

    /// The product, and whether it overflowed.
    #[inline]
    pub fn multiply(self, left: Value, right: Value) -> (Value, bool) {
        match self {
            Arithmetic::Float => (from_float(to_float(left) * to_float(right)), false),
            _ => match (i64::try_from(left), i64::try_from(right)) {
                (Ok(left), Ok(right)) => (Value::from(left) * Value::from(right), false),
                _ => left.overflowing_mul(right),
            },
        }
    }

    /// How many values a sum takes: a float's has a second one for its infinities and NaNs.
    pub fn slots(self) -> usize {
        1 + usize::from(self == Arithmetic::Float)
    }

    /// Replaces one summand of a sum by another; returns whether it overflowed.
    #[inline]
    pub fn replace(self, sum: &mut [Value], old: Value, new: Value) -> bool {
        if self == Arithmetic::Float {
            add_float(sum, -to_float(old), -1);
            add_float(sum, to_float(new), 1);
            return false;
        }
        let (difference, first) = new.overflowing_sub(old);
        let (total, second) = sum[0].overflowing_add(difference);
        sum[0] = total;
        first || second
    }

    /// A sum as a value.
    #[inline]
    pub fn total(self, sum: &[Value]) -> Value {
        if self != Arithmetic::Float {
            return sum[0];
        }
        let [nans, positive, negative] = [0, 1, 2].map(|kind| sum[1] >> (kind * SPECIAL_BITS) & SPECIAL_MASK != 0);
        from_float(match (nans, positive, negative) {
            (false, false, false) => {
                let sum = DoubleDouble::unpack(sum[0]);
                sum.high + sum.low
            }
            (false, true, false) => f64::INFINITY,
            (false, false, true) => f64::NEG_INFINITY,
            _ => f64::NAN,
        })
    }

    /// The output word.
    pub fn word(self, value: Value, interner: &mut Interner) -> Result<Word> {
        match self {
            Arithmetic::Integer => i64::try_from(value).map(|value| value as Word).map_err(|_| overflow()),
            Arithmetic::Decimal if value.unsigned_abs() >= DECIMAL_LIMIT as u128 => Err(overflow()),
            Arithmetic::Decimal => Ok(interner.intern(&value.to_le_bytes())),
            Arithmetic::Float => Ok(float_word(to_float(value))),
        }
    }

    /// A factor's word as a value; NULL makes the product absent, which is 0.
    pub fn factor(self, word: Option<Word>, data_type: DataType, interner: &Interner) -> Result<Value> {
        let Some(word) = word else { return Ok(0) };
        let exact = match data_type {
            DataType::Float32 | DataType::Float64 => None,
            data_type if data_type.interned() => {
                let bytes = interner.get(word).try_into();
                Some(i128::from_le_bytes(
                    bytes.map_err(|_| KernelError::invalid("CROWN-CHANGE-VALUE", "a wide decimal without 16 bytes"))?,
                ))
            }
            _ => Some(i128::from(word as i64)),
        };
        Ok(match (self, exact) {
            (Arithmetic::Float, None) => from_float(word_float(word)),
            (Arithmetic::Float, Some(value)) => {
                let scale = if let DataType::Decimal { scale, .. } = data_type { scale } else { 0 };
                from_float(value as f64 / 10f64.powi(i32::from(scale)))
            }
            (_, Some(value)) => value,
            (_, None) => return Err(KernelError::plan("CROWN-PLAN-MALFORMED", "a float factor in an exact component")),
        })
    }
}

/// Bits for the number of NaNs, of positive and of negative infinities in a sum.
const SPECIAL_BITS: u32 = 40;
const SPECIAL_MASK: Value = (1 << SPECIAL_BITS) - 1;

/// Adds a float (already negated when `sign` is -1) to a sum.
fn add_float(sum: &mut [Value], value: f64, sign: Value) {
    if value.is_finite() {
        sum[0] = DoubleDouble::unpack(sum[0]).add(value).pack();
    } else {
        let kind = if value.is_nan() {
            0
        } else if (value > 0.0) == (sign > 0) {
            1
        } else {
            2
        };
        sum[1] += sign << (kind * SPECIAL_BITS);
    }
}

/// The exact sum of two floats, the smaller being the rounding error of the larger.
struct DoubleDouble {
    high: f64,
    low: f64,
}

impl DoubleDouble {
    fn unpack(value: Value) -> DoubleDouble {
        DoubleDouble { high: f64::from_bits(value as u64), low: f64::from_bits((value >> 64) as u64) }
    }

    fn pack(self) -> Value {
        (self.high.to_bits() as u128 | (self.low.to_bits() as u128) << 64) as i128
    }

    fn add(self, value: f64) -> DoubleDouble {
        let sum = self.high + value;
        let part = sum - self.high;
        let error = (self.high - (sum - part)) + (value - part);
        let low = self.low + error;
        let high = sum + low;
        DoubleDouble { high, low: low - (high - sum) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float_sums_come_back_when_their_rows_leave() {
        let float = Arithmetic::Float;
        let values = [1e16, 1.0, -3.25, 1e-8, 7e15, 0.1];
        let mut sum = [0, 0];
        for value in values {
            float.replace(&mut sum, 0, from_float(value));
        }
        for value in [1e16, 7e15, -3.25, 1e-8, 0.1] {
            float.replace(&mut sum, from_float(value), 0);
        }
        assert_eq!(to_float(float.total(&sum)), 1.0);
    }

    #[test]
    fn overflow_is_seen_and_cancels() {
        let exact = Arithmetic::Decimal;
        let large = i128::MAX - 5;
        let mut sum = [large];
        assert!(exact.replace(&mut sum, 0, 10));
        exact.replace(&mut sum, 10, 0);
        assert_eq!(sum, [large]);
        assert!(exact.multiply(i128::MAX, 3).1);
        assert_eq!(exact.word(DECIMAL_LIMIT, &mut Interner::default()).unwrap_err().code, "CROWN-OVERFLOW");
    }
}
