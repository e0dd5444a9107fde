//! A Fenwick tree: prefix sums of a list that changes.

/// Sums of the beginnings of a list of numbers, each changed or found in O(log n).
#[derive(Default)]
pub struct Fenwick(Vec<u128>);

/// The last bit that is set.
fn step(place: usize) -> usize {
    place & place.wrapping_neg()
}

impl Fenwick {
    pub fn new(mut values: Vec<u128>) -> Fenwick {
        for place in 1..=values.len() {
            let above = place + step(place);
            if above <= values.len() {
                values[above - 1] += values[place - 1];
            }
        }
        Fenwick(values)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets all but the first numbers.
    pub fn truncate(&mut self, count: usize) {
        self.0.truncate(count);
    }

    /// The sum of the first `count` numbers.
    pub fn sum(&self, mut count: usize) -> u128 {
        let mut sum = 0u128;
        while count > 0 {
            sum = sum.wrapping_add(self.0[count - 1]);
            count -= step(count);
        }
        sum
    }

    pub fn total(&self) -> u128 {
        self.sum(self.0.len())
    }

    pub fn get(&self, position: usize) -> u128 {
        self.sum(position + 1).wrapping_sub(self.sum(position))
    }

    /// Adds to a number, modulo 2^128.
    pub fn add(&mut self, position: usize, difference: u128) {
        let mut place = position + 1;
        while place <= self.0.len() {
            self.0[place - 1] = self.0[place - 1].wrapping_add(difference);
            place += step(place);
        }
    }

    pub fn push(&mut self, value: u128) {
        let place = self.0.len() + 1;
        let below = self.sum(place - 1).wrapping_sub(self.sum(place - step(place)));
        self.0.push(below.wrapping_add(value));
    }

    /// How many numbers at the beginning sum up to at most `limit`, and to how much.
    pub fn find(&self, limit: u128) -> (usize, u128) {
        let (mut count, mut sum) = (0, 0u128);
        let mut width = self.0.len().checked_ilog2().map_or(0, |bits| 1 << bits);
        while width > 0 {
            let next = count + width;
            if next <= self.0.len() && sum + self.0[next - 1] <= limit {
                (count, sum) = (next, sum + self.0[next - 1]);
            }
            width /= 2;
        }
        (count, sum)
    }

    pub fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<u128>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_beginnings_follow_pushes_changes_and_cuts() {
        let mut random = crate::random::Random(5);
        let (mut model, mut sums) = (vec![3u128, 1, 4], Fenwick::new(vec![3, 1, 4]));
        for step in 0..3000 {
            match random.below(4) {
                0 if !model.is_empty() => {
                    model.pop();
                    sums.truncate(model.len());
                }
                1 if !model.is_empty() => {
                    let position = random.below(model.len() as u64) as usize;
                    let value = u128::from(random.below(9)) + 1;
                    sums.add(position, value.wrapping_sub(model[position]));
                    model[position] = value;
                }
                _ => {
                    let value = u128::from(random.below(9)) + 1;
                    model.push(value);
                    sums.push(value);
                }
            }
            assert_eq!(sums.total(), model.iter().sum::<u128>(), "step {step}");
            let limit = u128::from(random.below(2 + model.len() as u64 * 6));
            let (count, sum) = sums.find(limit);
            assert_eq!(sum, model[..count].iter().sum::<u128>(), "step {step}");
            assert!(sum <= limit && (count == model.len() || sum + model[count] > limit), "step {step}");
        }
    }
}
