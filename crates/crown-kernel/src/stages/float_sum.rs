//! Exact sums of floats: a value that is added and later subtracted leaves no error, whatever its
//! size.
//!
//! The sum is an expansion (Shewchuk 1997): floats that do not overlap and whose exact total is the
//! exact sum. It rarely has more than three parts. Rounding happens only once, when the sum is
//! read.

use std::mem::size_of;

#[derive(Clone, Debug, Default)]
pub(super) struct FloatSum {
    parts: Vec<f64>,
    rare: Option<Box<Rare>>,
}

/// What few sums ever see: values so large that sums of them could overflow (kept divided by
/// `SCALE`), and what can't be subtracted, so is counted (the accumulator's own count tells if
/// these overflow).
#[derive(Clone, Debug, Default)]
struct Rare {
    huge: Vec<f64>,
    not_a_number: i64,
    infinite: i64,
    minus_infinite: i64,
}

const SCALE: f64 = f64::from_bits((1023 + 200) << 52); // 2^200
const HUGE: f64 = f64::from_bits((1023 + 900) << 52); // 2^900

impl FloatSum {
    pub fn add(&mut self, value: f64, weight: i64) {
        // A float holds 53 bits of a count: larger ones are added in two parts.
        let low = weight & 0xFFFF_FFFF;
        if weight.unsigned_abs() > 1 << 53 && low != 0 {
            self.add(value, weight - low);
            return self.add(value, low);
        }
        let times = weight as f64;
        if value.abs() < HUGE {
            return add_product(&mut self.parts, value, times);
        }
        let rare = self.rare.get_or_insert_with(Box::default);
        if value.is_nan() {
            rare.not_a_number = rare.not_a_number.wrapping_add(weight);
        } else if value == f64::INFINITY {
            rare.infinite = rare.infinite.wrapping_add(weight);
        } else if value == f64::NEG_INFINITY {
            rare.minus_infinite = rare.minus_infinite.wrapping_add(weight);
        } else {
            add_product(&mut rare.huge, value / SCALE, times);
        }
    }

    pub fn value(&self) -> f64 {
        let Some(rare) = &self.rare else { return rounded(&self.parts) };
        match (rare.not_a_number > 0, rare.infinite > 0, rare.minus_infinite > 0) {
            (true, _, _) | (_, true, true) => f64::NAN,
            (_, true, _) => f64::INFINITY,
            (_, _, true) => f64::NEG_INFINITY,
            _ if rare.huge.is_empty() => rounded(&self.parts),
            _ => {
                let mut all = rare.huge.clone();
                self.parts.iter().for_each(|part| add(&mut all, part / SCALE));
                rounded(&all) * SCALE
            }
        }
    }

    /// Bytes outside the value itself.
    pub fn bytes(&self) -> usize {
        let rare = self.rare.as_ref().map_or(0, |rare| size_of::<Rare>() + rare.huge.capacity() * 8);
        self.parts.capacity() * 8 + rare
    }
}

/// Adds the exact product: its rounded value and its rounding error.
pub(super) fn add_product(parts: &mut Vec<f64>, value: f64, times: f64) {
    let product = value * times;
    add(parts, product);
    let error = value.mul_add(times, -product);
    if error != 0.0 {
        add(parts, error);
    }
}

/// Adds to an expansion, smallest part first: each step's rounding error stays behind as a part, if
/// there is one.
fn add(parts: &mut Vec<f64>, value: f64) {
    let mut carried = value;
    let mut kept = 0;
    for index in 0..parts.len() {
        let part = parts[index];
        let sum = carried + part;
        let seen = sum - carried;
        let error = (carried - (sum - seen)) + (part - seen);
        if error != 0.0 {
            parts[kept] = error;
            kept += 1;
        }
        carried = sum;
    }
    parts.truncate(kept);
    if carried != 0.0 {
        parts.push(carried);
    }
}

/// The float nearest to the expansion's total: from the largest part down until something is lost;
/// what is lost decides only a tie.
pub(super) fn rounded(parts: &[f64]) -> f64 {
    let mut rest = parts.iter().rev().copied();
    let Some(mut high) = rest.next() else { return 0.0 };
    for part in rest.by_ref() {
        let before = high;
        high = before + part;
        let low = part - (high - before);
        if low == 0.0 {
            continue;
        }
        // A tie was rounded to even; the next part's sign says where the true sum lies.
        if let Some(next) = rest.next() {
            if (low < 0.0) == (next < 0.0) {
                let doubled = low * 2.0;
                let further = high + doubled;
                if doubled == further - high {
                    high = further;
                }
            }
        }
        break;
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn sums_are_exact_and_what_leaves_is_gone() {
        let mut sum = FloatSum::default();
        for (value, weight, expected) in [
            (0.1, 10, 1.0),
            (1e300, 3, 3e300),
            (1e308, 5, f64::INFINITY),
            (1e308, -5, 3e300),
            (f64::NAN, 1, f64::NAN),
            (f64::INFINITY, 1, f64::NAN),
            (f64::NAN, -1, f64::INFINITY),
            (f64::NEG_INFINITY, 1, f64::NAN),
            (f64::INFINITY, -1, f64::NEG_INFINITY),
            (f64::NEG_INFINITY, -1, 3e300),
            (1e300, -3, 1.0),
            (0.1, -9, 0.1),
            (0.1, -1, 0.0),
            (1.0, i64::MAX, 9223372036854775807.0),
            (1.0, -(1 << 60), 8070450532247928831.0),
            (1.0, (1 << 60) - i64::MAX, 0.0),
        ] {
            sum.add(value, weight);
            assert_eq!(format!("{:?}", sum.value()), format!("{expected:?}"), "after {weight} times {value}");
        }
        assert!(sum.parts.is_empty());
    }

    #[test]
    fn any_order_of_any_magnitudes_gives_one_sum() {
        for seed in 0..200 {
            println!("seed {seed}");
            let mut random = Random(seed);
            let magnitude = |random: &mut Random| 2f64.powi(random.index(1800) as i32 - 1000);
            let values: Vec<f64> =
                (0..40).map(|_| (random.next() as i64 as f64 / 2f64.powi(63)) * magnitude(&mut random)).collect();
            let (mut forward, mut backward) = (FloatSum::default(), FloatSum::default());
            values.iter().for_each(|value| forward.add(*value, 1));
            values.iter().rev().for_each(|value| backward.add(*value, 1));
            assert_eq!(forward.value(), backward.value());
            values.iter().skip(1).for_each(|value| forward.add(*value, -1));
            assert_eq!(forward.value(), values[0]);
        }
    }
}
