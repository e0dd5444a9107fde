//! Logarithms and the cube root as computed by fdlibm, and therefore by Java's StrictMath, to the
//! last bit.

// The constants as fdlibm writes them.
#![allow(clippy::excessive_precision)]

fn high(value: f64) -> i32 {
    (value.to_bits() >> 32) as i32
}

/// The value with another upper half.
fn with_high(value: f64, high: i32) -> f64 {
    f64::from_bits(u64::from(high as u32) << 32 | value.to_bits() & 0xFFFF_FFFF)
}

const TWO_TO_54: f64 = 18_014_398_509_481_984.0;

/// A positive value with its exponent in normal range, the upper half of its bits, and the exponent
/// that was taken out.
fn normal(value: f64) -> (f64, i32, i32) {
    if value < f64::MIN_POSITIVE {
        let value = value * TWO_TO_54;
        (value, high(value), -54)
    } else {
        (value, high(value), 0)
    }
}

/// The natural logarithm of a positive value, or of NaN.
pub fn log(value: f64) -> f64 {
    const LN2_HIGH: f64 = 6.931_471_803_691_238_164_90e-01;
    const LN2_LOW: f64 = 1.908_214_929_270_587_700_02e-10;
    const ODD: [f64; 4] = [
        6.666_666_666_666_735_130e-01,
        2.857_142_874_366_239_149e-01,
        1.818_357_216_161_805_012e-01,
        1.479_819_860_511_658_591e-01,
    ];
    const EVEN: [f64; 3] =
        [3.999_999_999_940_941_908e-01, 2.222_219_843_214_978_396e-01, 1.531_383_769_920_937_332e-01];
    if !value.is_finite() {
        return value;
    }
    let (value, bits, mut exponent) = normal(value);
    exponent += (bits >> 20) - 1023;
    let bits = bits & 0x000F_FFFF;
    let upper_half = (bits + 0x95F64) & 0x10_0000;
    let value = with_high(value, bits | (upper_half ^ 0x3FF0_0000));
    exponent += upper_half >> 20;
    let (fraction, exponent) = (value - 1.0, f64::from(exponent));
    if (0x000F_FFFF & (2 + bits)) < 3 {
        let rest = fraction * fraction * (0.5 - 0.333_333_333_333_333_333_33 * fraction);
        return match (fraction == 0.0, exponent == 0.0) {
            (true, _) => exponent * LN2_HIGH + exponent * LN2_LOW,
            (_, true) => fraction - rest,
            _ => exponent * LN2_HIGH - ((rest - exponent * LN2_LOW) - fraction),
        };
    }
    let ratio = fraction / (2.0 + fraction);
    let square = ratio * ratio;
    let fourth = square * square;
    let even = fourth * (EVEN[0] + fourth * (EVEN[1] + fourth * EVEN[2]));
    let odd = square * (ODD[0] + fourth * (ODD[1] + fourth * (ODD[2] + fourth * ODD[3])));
    let rest = odd + even;
    if (bits - 0x6147A) | (0x6B851 - bits) > 0 {
        let half = 0.5 * fraction * fraction;
        if exponent == 0.0 {
            return fraction - (half - ratio * (half + rest));
        }
        return exponent * LN2_HIGH - ((half - (ratio * (half + rest) + exponent * LN2_LOW)) - fraction);
    }
    if exponent == 0.0 {
        return fraction - ratio * (fraction - rest);
    }
    exponent * LN2_HIGH - ((ratio * (fraction - rest) - exponent * LN2_LOW) - fraction)
}

/// The logarithm of base 10 of a positive value, or of NaN.
pub fn log10(value: f64) -> f64 {
    const ONE_BY_LN10: f64 = std::f64::consts::LOG10_E;
    const LOG10_2_HIGH: f64 = 3.010_299_956_636_117_713_06e-01;
    const LOG10_2_LOW: f64 = 3.694_239_077_158_930_786_16e-13;
    if !value.is_finite() {
        return value;
    }
    let (value, bits, mut exponent) = normal(value);
    exponent += (bits >> 20) - 1023;
    let negative = i32::from(exponent < 0);
    let value = with_high(value, bits & 0x000F_FFFF | (0x3FF - negative) << 20);
    let exponent = f64::from(exponent + negative);
    let low = exponent * LOG10_2_LOW + ONE_BY_LN10 * log(value);
    low + exponent * LOG10_2_HIGH
}

/// The cube root, with an error below 0.667 units in the last place.
pub fn cbrt(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let magnitude = value.abs();
    let (scaled, _, exponent) = normal(magnitude);
    let start = high(scaled) / 3 + if exponent == 0 { 715_094_163 } else { 696_219_795 };
    let mut root = with_high(0.0, start);
    // To 23 bits; cut to 20 bits and made larger than the root; then one step of Newton's.
    let ratio = root * root / magnitude;
    let sum = 19.0 / 35.0 + ratio * root;
    root *= 5.0 / 14.0 + (45.0 / 28.0) / (sum + 99.0 / 70.0 + (-864.0 / 1225.0) / sum);
    root = with_high(0.0, high(root) + 1);
    let ratio = magnitude / (root * root);
    root += root * ((ratio - root) / (root + root + ratio));
    root.copysign(value)
}
