//! Whole numbers: bits, shifts as Java does them, division without a fraction.

use super::super::cast::in_range;
use super::super::divide_by_zero;
use super::super::value::Value;
use super::integer;
use crate::error::Result;
use crate::types::DataType;

type Evaluated<'a> = Result<Option<Value<'a>>>;

pub fn div<'a>(arguments: &[Value<'a>], to: DataType) -> Evaluated<'a> {
    let (dividend, divisor) = (i128::from(arguments[0].integer()), i128::from(arguments[1].integer()));
    if divisor == 0 {
        return Err(divide_by_zero());
    }
    integer(in_range(dividend / divisor, to)?)
}

pub fn pmod<'a>(arguments: &[Value<'a>], to: DataType) -> Evaluated<'a> {
    let (dividend, divisor) = (i128::from(arguments[0].integer()), i128::from(arguments[1].integer()));
    if divisor == 0 {
        return Err(divide_by_zero());
    }
    let rest = dividend % divisor;
    if rest >= 0 {
        return integer(in_range(rest, to)?);
    }
    // As Java adds: what does not fit an int or a long begins again at its other end.
    let sum = match to {
        DataType::Int64 => i128::from((rest + divisor) as i64),
        _ => i128::from((rest + divisor) as i32),
    };
    integer(in_range(sum % divisor, to)?)
}

pub fn and<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    integer(arguments[0].integer() & arguments[1].integer())
}

pub fn or<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    integer(arguments[0].integer() | arguments[1].integer())
}

pub fn xor<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    integer(arguments[0].integer() ^ arguments[1].integer())
}

pub fn not<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    integer(!arguments[0].integer())
}

/// Java takes the shift's last five bits for an int and its last six for a long.
pub fn shift_left<'a>(arguments: &[Value<'a>], to: DataType) -> Evaluated<'a> {
    let (value, by) = (arguments[0].integer(), arguments[1].integer() as u32);
    integer(match to {
        DataType::Int32 => i64::from((value as i32).wrapping_shl(by)),
        _ => value.wrapping_shl(by),
    })
}

pub fn shift_right<'a>(arguments: &[Value<'a>], to: DataType) -> Evaluated<'a> {
    let (value, by) = (arguments[0].integer(), arguments[1].integer() as u32);
    integer(match to {
        DataType::Int32 => i64::from((value as i32).wrapping_shr(by)),
        _ => value.wrapping_shr(by),
    })
}

pub fn shift_right_unsigned<'a>(arguments: &[Value<'a>], to: DataType) -> Evaluated<'a> {
    let (value, by) = (arguments[0].integer(), arguments[1].integer() as u32);
    integer(match to {
        DataType::Int32 => i64::from((value as i32 as u32).wrapping_shr(by) as i32),
        _ => (value as u64).wrapping_shr(by) as i64,
    })
}

pub fn count<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    integer(match &arguments[0] {
        Value::Boolean(value) => i64::from(*value),
        other => i64::from(other.integer().count_ones()),
    })
}
