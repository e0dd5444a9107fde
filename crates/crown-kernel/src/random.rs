//! Random numbers: small, seeded, the same everywhere.

/// SplitMix64: the same draws for the same seed on every platform.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Returns 64 random bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Draws uniformly below `bound`, without the bias of a remainder.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let bound = bound.max(1);
        loop {
            let product = u128::from(self.next()) * u128::from(bound);
            if (product as u64) >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// Draws as `below` does; above 64 bits the bias of the remainder is less than 2^-63 of a draw.
    pub(crate) fn below_wide(&mut self, bound: u128) -> u128 {
        match u64::try_from(bound) {
            Ok(bound) => u128::from(self.below(bound)),
            Err(_) => (u128::from(self.next()) << 64 | u128::from(self.next())) % bound,
        }
    }
}

/// Only tests need these.
#[cfg(test)]
impl Random {
    /// Draws an index below `bound`.
    pub(crate) fn index(&mut self, bound: usize) -> usize {
        self.below(bound as u64) as usize
    }

    /// Returns true in `percent` of 100 cases.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Shuffles the items.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for index in (1..items.len()).rev() {
            items.swap(index, self.index(index + 1));
        }
    }
}
