//! Decimals of up to 38 digits: unscaled values in i128, 256 bits where a product or quotient needs
//! them. Rounding is HALF_UP (ties away from zero), as in Spark.

use super::{divide_by_zero, overflow};
use crate::error::Result;
use arrow::datatypes::i256;

pub(crate) const MAX_DIGITS: u8 = 38;

fn power(exponent: u32) -> i256 {
    i256::from_i128(10).checked_pow(exponent).expect("powers of ten up to 76 fit 256 bits")
}

pub(crate) fn fits(value: i128, precision: u8) -> bool {
    value.unsigned_abs() < 10u128.pow(u32::from(precision))
}

/// The value at another scale, rounded, or an overflow if it has more than `precision` digits.
pub(crate) fn rescale(value: i128, from: i8, to: i8, precision: u8) -> Result<i128> {
    if from == to {
        return checked(value, precision);
    }
    if to > from {
        let factor = 10i128.checked_pow((to - from) as u32);
        let scaled = factor.and_then(|factor| value.checked_mul(factor)).ok_or_else(|| overflow("a decimal"))?;
        return checked(scaled, precision);
    }
    checked(quotient(i256::from_i128(value), power((from - to) as u32))?, precision)
}

fn checked(value: i128, precision: u8) -> Result<i128> {
    if fits(value, precision) {
        Ok(value)
    } else {
        Err(overflow("a decimal"))
    }
}

/// `left / right` rounded HALF_UP; `right` is not zero.
fn quotient(left: i256, right: i256) -> Result<i128> {
    let (whole, rest) = left.checked_div_rem(right).ok_or_else(|| overflow("a decimal"))?;
    // |rest| >= |right| - |rest| is 2|rest| >= |right| without the doubling that could overflow.
    let (rest, divisor) = (rest.wrapping_abs(), right.wrapping_abs());
    let away = if rest >= divisor.wrapping_sub(rest) { i256::ONE } else { i256::ZERO };
    let rounded = if left.is_negative() == right.is_negative() { whole + away } else { whole - away };
    rounded.to_i128().ok_or_else(|| overflow("a decimal"))
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rounding {
    HalfUp,
    /// Ties go to the even neighbour.
    HalfEven,
    Down,
    Up,
}

/// The value rounded to `digits` after the point (before it, if negative), at the result's scale.
pub(super) fn round(value: i128, from: i8, digits: i8, rounding: Rounding, scale: i8, precision: u8) -> Result<i128> {
    if digits >= from {
        return rescale(value, from, scale, precision);
    }
    let (value, unit) = (i256::from_i128(value), power((from - digits) as u32));
    let (whole, rest) = value.checked_div_rem(unit).ok_or_else(|| overflow("a decimal"))?;
    let rounded = match rounding {
        Rounding::HalfUp => i256::from_i128(quotient(value, unit)?),
        Rounding::HalfEven => {
            let (rest, other) = (rest.wrapping_abs(), unit.wrapping_sub(rest.wrapping_abs()));
            let odd = whole.wrapping_rem(i256::from_i128(2)) != i256::ZERO;
            let away = rest > other || (rest == other && odd);
            let one = if value.is_negative() { -i256::ONE } else { i256::ONE };
            if away {
                whole + one
            } else {
                whole
            }
        }
        Rounding::Down if rest.is_negative() => whole - i256::ONE,
        Rounding::Up if rest.is_positive() => whole + i256::ONE,
        Rounding::Down | Rounding::Up => whole,
    };
    settle(rounded, digits, scale, precision)
}

#[derive(Clone, Copy)]
pub(super) struct Scaled {
    pub value: i128,
    pub scale: i8,
}

impl Scaled {
    fn at(self, scale: i8) -> Result<i256> {
        i256::from_i128(self.value).checked_mul(power((scale - self.scale) as u32)).ok_or_else(|| overflow("a decimal"))
    }
}

/// Brings an exact result of 256 bits to the result type.
fn settle(value: i256, from: i8, to: i8, precision: u8) -> Result<i128> {
    if to >= from {
        let scaled = value.checked_mul(power((to - from) as u32)).and_then(i256::to_i128);
        return checked(scaled.ok_or_else(|| overflow("a decimal"))?, precision);
    }
    checked(quotient(value, power((from - to) as u32))?, precision)
}

pub(super) fn add(left: Scaled, right: Scaled, scale: i8, precision: u8) -> Result<i128> {
    if left.scale == right.scale && left.scale == scale {
        return checked(left.value.checked_add(right.value).ok_or_else(|| overflow("a decimal"))?, precision);
    }
    let common = left.scale.max(right.scale);
    settle(left.at(common)?.wrapping_add(right.at(common)?), common, scale, precision)
}

pub(super) fn multiply(left: Scaled, right: Scaled, scale: i8, precision: u8) -> Result<i128> {
    if left.scale + right.scale == scale {
        if let Some(product) = left.value.checked_mul(right.value) {
            return checked(product, precision);
        }
    }
    let product = i256::from_i128(left.value).wrapping_mul(i256::from_i128(right.value));
    settle(product, left.scale + right.scale, scale, precision)
}

pub(super) fn divide(left: Scaled, right: Scaled, scale: i8, precision: u8) -> Result<i128> {
    if right.value == 0 {
        return Err(divide_by_zero());
    }
    let shift = i32::from(scale) + i32::from(right.scale) - i32::from(left.scale);
    let (mut dividend, mut divisor) = (i256::from_i128(left.value), i256::from_i128(right.value));
    let side = if shift >= 0 { &mut dividend } else { &mut divisor };
    let factor = i256::from_i128(10).checked_pow(shift.unsigned_abs());
    *side = factor.and_then(|factor| side.checked_mul(factor)).ok_or_else(|| overflow("a decimal"))?;
    checked(quotient(dividend, divisor)?, precision)
}

pub(super) fn modulo(left: Scaled, right: Scaled, scale: i8, precision: u8) -> Result<i128> {
    if right.value == 0 {
        return Err(divide_by_zero());
    }
    let common = left.scale.max(right.scale);
    let rest = left.at(common)?.checked_rem(right.at(common)?).ok_or_else(|| overflow("a decimal"))?;
    settle(rest, common, scale, precision)
}

/// The average of exact sums: `sum` at `from` divided by `count`, at the result's scale.
pub(crate) fn average(sum: i128, from: i8, count: i64, scale: i8, precision: u8) -> Result<i128> {
    divide(Scaled { value: sum, scale: from }, Scaled { value: i128::from(count), scale: 0 }, scale, precision)
}

/// Reads `[+-]digits[.digits][e[+-]digits]`, rounded to `scale`; `None` if it is no number or has
/// over 38 digits.
pub(crate) fn parse(text: &str, scale: i8) -> Option<i128> {
    parse_rounded(text, scale, Rounding::HalfUp)
}

/// As `parse`, with ties as `rounding` says.
pub(super) fn parse_rounded(text: &str, scale: i8, rounding: Rounding) -> Option<i128> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], unsigned[at + 1..].parse::<i32>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = whole.bytes().chain(fraction.bytes());
    if whole.len() + fraction.len() == 0 || !digits.clone().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let kept = whole.len() as i64 + i64::from(exponent) + i64::from(scale);
    let (mut value, mut next, mut more) = (0i128, 0, false);
    for (position, digit) in digits.enumerate() {
        let digit = i128::from(digit - b'0');
        match (position as i64).cmp(&kept) {
            std::cmp::Ordering::Less => value = value.checked_mul(10)?.checked_add(digit)?,
            std::cmp::Ordering::Equal => next = digit,
            std::cmp::Ordering::Greater => more |= digit != 0,
        }
    }
    let missing = (kept - (whole.len() + fraction.len()) as i64).max(0);
    if value != 0 {
        value = value.checked_mul(10i128.checked_pow(u32::try_from(missing).ok()?)?)?;
    }
    let to_even = rounding == Rounding::HalfEven && next == 5 && !more && value % 2 == 0;
    value += i128::from(next >= 5 && !to_even);
    fits(value, MAX_DIGITS).then_some(if negative { -value } else { value })
}

/// Plain notation, always with `scale` digits after the point.
pub(super) fn format(value: i128, scale: i8) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale as usize + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
    if fraction.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

pub(crate) fn to_float(value: i128, scale: i8) -> f64 {
    // Both operands are exact then, so one division rounds once; else the parser rounds once.
    if value.unsigned_abs() <= 1 << 53 && scale <= 22 {
        value as f64 / 10f64.powi(i32::from(scale))
    } else {
        format!("{value}e-{scale}").parse().expect("digits and an exponent are a float")
    }
}

/// From the shortest digits that name the float, as Spark does; `None` for overflow.
pub(super) fn from_float(value: f64, scale: i8) -> Option<i128> {
    parse(&format!("{value:e}"), scale)
}
