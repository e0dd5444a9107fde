//! Skewness and kurtosis from exact sums of powers, as `moments` does for variances: there is no
//! cancellation, and deleted rows leave no error.

use super::accumulator::count_up;
use super::float_sum::{add_product, rounded};

#[derive(Default)]
pub(super) struct HigherMoments {
    count: i64,
    /// Rows with NaN or an infinity, or with values whose powers would overflow.
    not_finite: i64,
    /// The sums of x, x², x³ and x⁴, as expansions.
    sums: [Vec<f64>; 4],
}

const HUGE: f64 = f64::from_bits((1023 + 240) << 52); // 2^240

impl HigherMoments {
    /// True if a count does not fit.
    pub fn add(&mut self, x: f64, weight: i64) -> bool {
        let overflowed = count_up(&mut self.count, weight);
        if !x.is_finite() || x.abs() >= HUGE {
            self.not_finite = self.not_finite.wrapping_add(weight);
            return overflowed;
        }
        let mut power = vec![x];
        for sum in &mut self.sums {
            // A float holds 53 bits of a count: larger ones are added in two parts.
            let low = weight & 0xFFFF_FFFF;
            for part in [weight - low, low] {
                power.iter().for_each(|term| add_product(sum, *term, part as f64));
            }
            power = product(&power, &[x]);
        }
        overflowed
    }

    /// √n·M₃ / M₂^1.5; `None` is NULL, for no rows or equal values.
    pub fn skewness(&self) -> Option<f64> {
        self.standardized(|own, rows, second| {
            let [one, two, three, _] = &own.sums;
            // n²·M₃ = n²·Σx³ − 3n·Σx·Σx² + 2(Σx)³
            let mut total = product(three, &[rows * rows]);
            add(&mut total, &product(&product(one, two), &[-3.0 * rows]));
            add(&mut total, &product(&product(&product(one, one), one), &[2.0]));
            let third = rounded(&total) / rows / rows;
            rows.sqrt() * third / (second * second * second).sqrt()
        })
    }

    /// n·M₄ / M₂² − 3.
    pub fn kurtosis(&self) -> Option<f64> {
        self.standardized(|own, rows, second| {
            let [one, two, three, four] = &own.sums;
            let square = product(one, one);
            // n³·M₄ = n³·Σx⁴ − 4n²·Σx·Σx³ + 6n·(Σx)²·Σx² − 3(Σx)⁴
            let mut total = product(&product(four, &[rows * rows]), &[rows]);
            add(&mut total, &product(&product(one, three), &[-4.0 * rows * rows]));
            add(&mut total, &product(&product(&square, two), &[6.0 * rows]));
            add(&mut total, &product(&product(&square, &square), &[-3.0]));
            let fourth = rounded(&total) / rows / rows / rows;
            rows * fourth / (second * second) - 3.0
        })
    }

    fn standardized(&self, value: impl Fn(&HigherMoments, f64, f64) -> f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        if self.not_finite > 0 {
            return Some(f64::NAN);
        }
        let rows = self.count as f64;
        let [one, two, _, _] = &self.sums;
        let mut total = product(two, &[rows]);
        add(&mut total, &product(&product(one, one), &[-1.0]));
        let second = rounded(&total) / rows;
        (second != 0.0).then(|| value(self, rows, second))
    }

    /// Bytes outside the value itself.
    pub fn bytes(&self) -> usize {
        self.sums.iter().map(|parts| parts.capacity() * 8).sum()
    }
}

/// The exact product of two expansions.
fn product(left: &[f64], right: &[f64]) -> Vec<f64> {
    let mut total = Vec::new();
    for one in left {
        for other in right {
            add_product(&mut total, *one, *other);
        }
    }
    total
}

fn add(total: &mut Vec<f64>, parts: &[f64]) {
    parts.iter().for_each(|part| add_product(total, *part, 1.0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_cancels_and_nothing_stays() {
        let mut moments = HigherMoments::default();
        assert_eq!((moments.skewness(), moments.kurtosis()), (None, None));
        for x in [1e6, 1e6 + 1.0, 1e6 + 5.0] {
            moments.add(x, 1);
        }
        let mut small = HigherMoments::default();
        for x in [0.0, 1.0, 5.0] {
            small.add(x, 1);
        }
        assert_eq!((moments.skewness(), moments.kurtosis()), (small.skewness(), small.kurtosis()));
        assert!((moments.kurtosis().unwrap() + 1.5).abs() < 1e-12);
        moments.add(1e60, 3);
        moments.add(f64::NAN, 1);
        assert!(moments.skewness().unwrap().is_nan());
        moments.add(f64::NAN, -1);
        moments.add(1e60, -3);
        assert_eq!(moments.skewness(), small.skewness());
        for x in [1e6, 1e6 + 1.0] {
            moments.add(x, -1);
        }
        assert_eq!(moments.kurtosis(), None);
        moments.add(1e6 + 5.0, -1);
        assert!(moments.sums.iter().all(Vec::is_empty));
    }
}
