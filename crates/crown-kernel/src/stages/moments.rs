//! Variances, covariances and correlations from exact sums, so that deleted rows leave no error and
//! a result does not depend on the order of rows.
//!
//! The sums of x, y, x², y² and xy are expansions (see `float_sum`). n·Σxy − Σx·Σy is computed from
//! them exactly and rounded only then, so there is no cancellation.

use super::accumulator::count_up;
use super::float_sum::{add_product, rounded};

#[derive(Default)]
pub(super) struct Moments {
    count: i64,
    /// Rows with NaN or an infinity, and rows with values whose squares would overflow.
    not_finite: i64,
    huge: i64,
    x: Vec<f64>,
    y: Vec<f64>,
    xx: Vec<f64>,
    yy: Vec<f64>,
    xy: Vec<f64>,
}

const HUGE: f64 = f64::from_bits((1023 + 480) << 52); // 2^480

impl Moments {
    /// True if a count does not fit.
    pub fn add(&mut self, x: f64, y: Option<f64>, weight: i64) -> bool {
        let overflowed = count_up(&mut self.count, weight);
        let other = y.unwrap_or(0.0);
        if !x.is_finite() || !other.is_finite() {
            self.not_finite = self.not_finite.wrapping_add(weight);
            return overflowed;
        }
        if x.abs() >= HUGE || other.abs() >= HUGE {
            self.huge = self.huge.wrapping_add(weight);
            return overflowed;
        }
        // A float holds 53 bits of a count: larger ones are added in two parts.
        let low = weight & 0xFFFF_FFFF;
        for part in [weight - low, low] {
            let times = part as f64;
            add_product(&mut self.x, x, times);
            add_square(&mut self.xx, x, x, times);
            if let Some(y) = y {
                add_product(&mut self.y, y, times);
                add_square(&mut self.yy, y, y, times);
                add_square(&mut self.xy, x, y, times);
            }
        }
        overflowed
    }

    /// `None` is NULL. `sample`: divided by one less than the number of rows.
    pub fn variance(&self, sample: bool) -> Option<f64> {
        self.spread(sample, |own| own.central(&own.xx, &own.x, &own.x))
    }

    pub fn covariance(&self, sample: bool) -> Option<f64> {
        self.spread(sample, |own| own.central(&own.xy, &own.x, &own.y))
    }

    pub fn correlation(&self) -> Option<f64> {
        if self.count < 2 {
            return None;
        }
        if self.not_finite > 0 || self.huge > 0 {
            return Some(f64::NAN);
        }
        let [x, y] = [self.central(&self.xx, &self.x, &self.x), self.central(&self.yy, &self.y, &self.y)];
        let product = x * y;
        let scale = if product.is_normal() { product.sqrt() } else { x.sqrt() * y.sqrt() };
        (scale != 0.0).then(|| self.central(&self.xy, &self.x, &self.y) / scale)
    }

    fn spread(&self, sample: bool, central: impl Fn(&Moments) -> f64) -> Option<f64> {
        let rows = self.count as f64;
        if self.count < 1 + i64::from(sample) {
            return None;
        }
        if self.not_finite > 0 {
            return Some(f64::NAN);
        }
        if self.huge > 0 {
            return Some(if self.count == 1 { 0.0 } else { f64::INFINITY });
        }
        Some(central(self) / rows / if sample { rows - 1.0 } else { rows })
    }

    /// n·Σab − Σa·Σb, rounded once.
    fn central(&self, products: &[f64], left: &[f64], right: &[f64]) -> f64 {
        let mut total = Vec::new();
        let rows = self.count as f64;
        products.iter().for_each(|part| add_product(&mut total, *part, rows));
        for one in left {
            for other in right {
                add_product(&mut total, *one, -*other);
            }
        }
        rounded(&total)
    }

    /// Bytes outside the value itself.
    pub fn bytes(&self) -> usize {
        [&self.x, &self.y, &self.xx, &self.yy, &self.xy].iter().map(|parts| parts.capacity() * 8).sum()
    }
}

/// Adds the exact product of three numbers.
fn add_square(parts: &mut Vec<f64>, left: f64, right: f64, times: f64) {
    let product = left * right;
    add_product(parts, product, times);
    let error = left.mul_add(right, -product);
    if error != 0.0 {
        add_product(parts, error, times);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_cancels_and_nothing_stays() {
        let mut moments = Moments::default();
        assert_eq!((moments.variance(false), moments.correlation()), (None, None));
        for (x, y) in [(1e9 + 1.0, 2.0), (1e9 + 2.0, 4.0), (1e9 + 3.0, 6.0)] {
            moments.add(x, Some(y), 1);
        }
        assert_eq!(moments.variance(true), Some(1.0));
        assert_eq!(moments.variance(false), Some(2.0 / 3.0));
        assert_eq!((moments.covariance(true), moments.correlation()), (Some(2.0), Some(1.0)));
        moments.add(1e100, Some(0.1), 3);
        moments.add(f64::NAN, Some(1.0), 1);
        assert!(moments.variance(true).unwrap().is_nan());
        moments.add(f64::NAN, Some(1.0), -1);
        moments.add(1e100, Some(0.1), -3);
        assert_eq!(moments.variance(true), Some(1.0));
        for (x, y) in [(1e9 + 1.0, 2.0), (1e9 + 2.0, 4.0)] {
            moments.add(x, Some(y), -1);
        }
        assert_eq!((moments.variance(true), moments.variance(false)), (None, Some(0.0)));
        moments.add(1e9 + 3.0, Some(6.0), -1);
        assert!(moments.x.is_empty() && moments.xx.is_empty() && moments.xy.is_empty());
    }
}
