//! Exact sums of integers: a sum may exceed 128 bits temporarily; if it stays out of range, that is
//! detected.

use arrow::datatypes::i256;

/// `high` times 2^128, plus `low`. Every value has one form, so it fits an i128 exactly if `high`
/// is 0. Of values below 2^127 and counts below 2^63 no sum leaves this range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ExactSum {
    low: i128,
    high: i64,
}

impl ExactSum {
    pub fn add(&mut self, value: i128, weight: i64) {
        match value.checked_mul(i128::from(weight)) {
            Some(product) => self.add_low(product),
            None => {
                let (low, high) = i256::from_i128(value).wrapping_mul(i256::from(weight)).to_parts();
                let low = low as i128;
                self.high += high as i64 + i64::from(low < 0);
                self.add_low(low);
            }
        }
    }

    fn add_low(&mut self, value: i128) {
        let (sum, passed) = self.low.overflowing_add(value);
        self.low = sum;
        if passed {
            self.high += value.signum() as i64;
        }
    }

    pub fn value(&self) -> Option<i128> {
        (self.high == 0).then_some(self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_sum_that_comes_back_is_right() {
        let digits = 10i128.pow(38) - 1;
        for (value, weight) in [(digits, i64::MAX), (-digits, i64::MAX), (i128::MAX, 1), (1 << 126, 4), (-7, 3)] {
            let mut sum = ExactSum::default();
            sum.add(5, 1);
            for _ in 0..3 {
                sum.add(value, weight);
            }
            assert_eq!(sum.value(), value.checked_mul(3 * i128::from(weight)).map(|total| total + 5));
            for _ in 0..3 {
                sum.add(value, -weight);
            }
            assert_eq!(sum.value(), Some(5));
        }
    }

    #[test]
    fn it_is_the_sum_in_256_bits() {
        for seed in 0..500 {
            println!("seed {seed}");
            let mut random = Random(seed);
            let (mut sum, mut wide) = (ExactSum::default(), i256::ZERO);
            for _ in 0..20 {
                let value = (i128::from(random.next() as i64) << 64 | i128::from(random.next())) >> random.index(120);
                let weight = random.next() as i64 >> random.index(60);
                sum.add(value, weight);
                wide = wide.wrapping_add(i256::from_i128(value).wrapping_mul(i256::from(weight)));
                assert_eq!(sum.value(), wide.to_i128());
            }
        }
    }
}
