//! Functions of floats. Spark uses Java's StrictMath, which is fdlibm. The crate `libm` agrees to
//! the last bit in the functions that it ported from fdlibm; `fdlibm` has the others.

use super::super::divide_by_zero;
use super::super::value::Value;
use super::{boolean, fdlibm};
use crate::error::Result;
use crate::types::DataType;

type Evaluated<'a> = Result<Option<Value<'a>>>;

fn float(value: f64) -> Evaluated<'static> {
    Ok(Some(Value::Float(value)))
}

/// A function of one float.
macro_rules! of_one {
    ($($name:ident = $function:expr;)*) => {
        $(pub fn $name<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
            let function: fn(f64) -> f64 = $function;
            float(function(arguments[0].float()))
        })*
    };
}

of_one! {
    sqrt = f64::sqrt;
    cbrt = fdlibm::cbrt;
    exp = libm::exp;
    expm1 = libm::expm1;
    sin = libm::sin;
    cos = libm::cos;
    tan = libm::tan;
    asin = libm::asin;
    acos = libm::acos;
    atan = libm::atan;
    sinh = libm::sinh;
    cosh = libm::cosh;
    tanh = libm::tanh;
    degrees = |value| value * (180.0 / std::f64::consts::PI);
    radians = |value| value * (std::f64::consts::PI / 180.0);
    rint = f64::round_ties_even;
    sign = |value| if value == 0.0 { value } else { value.signum() };
}

/// A logarithm: NULL where there is none.
macro_rules! logarithms {
    ($($name:ident = $function:expr, above $least:literal;)*) => {
        $(pub fn $name<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
            let (value, function): (f64, fn(f64) -> f64) = (arguments[0].float(), $function);
            if value <= $least { Ok(None) } else { float(function(value)) }
        })*
    };
}

logarithms! {
    ln = fdlibm::log, above 0.0;
    log10 = fdlibm::log10, above 0.0;
    log2 = |value| fdlibm::log(value) / fdlibm::log(2.0), above 0.0;
    log1p = libm::log1p, above -1.0;
}

pub fn log<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let (base, value) = (arguments[0].float(), arguments[1].float());
    if base <= 0.0 || value <= 0.0 {
        return Ok(None);
    }
    float(fdlibm::log(value) / fdlibm::log(base))
}

pub fn power<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let (base, exponent) = (arguments[0].float(), arguments[1].float());
    // Java has no value for 1 to the power of NaN, nor for ±1 to an infinite power.
    if exponent.is_nan() || (exponent.is_infinite() && base.abs() == 1.0) {
        return float(f64::NAN);
    }
    float(libm::pow(base, exponent))
}

pub fn atan2<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    // Spark adds 0.0 to each argument, so that there is no -0.0.
    float(libm::atan2(arguments[0].float() + 0.0, arguments[1].float() + 0.0))
}

pub fn hypot<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    float(libm::hypot(arguments[0].float(), arguments[1].float()))
}

/// The rest of a division that takes the sign of the divisor's absolute value.
pub fn pmod<'a>(arguments: &[Value<'a>], to: DataType) -> Evaluated<'a> {
    let (dividend, divisor) = (arguments[0].float(), arguments[1].float());
    if divisor == 0.0 {
        return Err(divide_by_zero());
    }
    let rest = dividend % divisor;
    let rest = if rest < 0.0 { narrowed(rest + divisor, to) % divisor } else { rest };
    float(rest)
}

fn narrowed(value: f64, to: DataType) -> f64 {
    if to == DataType::Float32 {
        f64::from(value as f32)
    } else {
        value
    }
}

pub fn is_nan<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    boolean(arguments[0].float().is_nan())
}
