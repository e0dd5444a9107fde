//! Applies a batch of changes as one: the fallback when a value overflows between two of them.
//!
//! Changes are applied one after the other, and each emits its delta. A sum that overflows with one
//! change and returns into range with the next has no delta in between, though the batch has one.
//! In that case all changes are made without output, and the delta is the difference of the full
//! results. This takes time linear in the result, but is very rarely needed.

use super::apply::AtomChange;
use super::id::RowId;
use super::prefetch::Hints;
use super::ring::Arithmetic;
use super::shape::LINK;
use super::Tree;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{overflow, Result};
use crate::store::interner::Interner;
use crate::store::net::net_chunks;

/// Float sums up to this are certain not to have passed 2^127.
const LIMIT: f64 = 1.6e38;
/// Of larger summands the rounding errors of a float sum could matter.
const LARGEST: f64 = 1e48;

impl Tree {
    /// The net delta of all changes, of `width` columns. On an error nothing has changed.
    pub fn apply_by_difference(
        &mut self,
        changes: &[AtomChange],
        width: usize,
        interner: &mut Interner,
    ) -> Result<Chunk> {
        let total = self.total;
        let mut before = self.all_rows(width, interner)?;
        before.weights.iter_mut().for_each(|weight| *weight = -*weight);
        let mut done = 0;
        let made = changes.iter().try_for_each(|change| {
            self.apply_silently(change, interner)?;
            done += 1;
            Ok(())
        });
        let after = made.and_then(|()| if self.sums_fit() { self.all_rows(width, interner) } else { Err(overflow()) });
        let delta = after.and_then(|after| {
            let rows = after.weights.iter().map(|weight| i128::from(*weight)).sum();
            Ok((net_chunks(&[before, after], width)?, rows))
        });
        match delta {
            Ok((delta, rows)) => {
                self.total = if self.deltas && !self.shape.always { rows } else { total };
                Ok(delta)
            }
            Err(error) => {
                for change in changes[..done].iter().rev() {
                    self.apply_silently(&AtomChange { weight: -change.weight, ..*change }, interner)?;
                }
                self.total = total;
                Err(error)
            }
        }
    }

    fn apply_silently(&mut self, change: &AtomChange, interner: &mut Interner) -> Result<()> {
        let (words, nulls): (&[Word], Nulls) = (change.words, change.nulls);
        let hash = self.hash_row(self.shape.atom_nodes[change.atom], words, nulls);
        let quiet = std::mem::replace(&mut self.quiet, true);
        self.careless = true;
        let result = self.apply_hashed(change, hash, &Hints::NOTHING, interner, &mut Chunk::default());
        (self.quiet, self.careless) = (quiet, false);
        self.failure = None;
        result
    }

    /// The full result; empty if deltas are not needed.
    fn all_rows(&self, width: usize, interner: &mut Interner) -> Result<Chunk> {
        let mut rows = Chunk::new(width);
        if self.deltas && !self.quiet {
            let mut cursor = self.cursor();
            while cursor.fill(self, interner, &mut rows, 65536)? {}
        }
        Ok(rows)
    }

    /// Whether no exact sum of the tree has left 128 bits. Sums are right modulo 2^128, so it is
    /// enough to know their size. From the leaves up, so that the sums that others are made of are
    /// known to be right.
    fn sums_fit(&self) -> bool {
        let width = self.shape.components.len();
        (0..self.rows.len()).rev().filter(|node| self.shape.nodes[*node].annotated).all(|node| {
            let mut sums = vec![(0.0, 0.0); self.edges[node].entries.len() * width];
            for row in self.row_ids(node).filter(|row| self.rows[node].missing(*row) == 0) {
                let entry = self.rows[node].entry(row, LINK).index();
                for (component, (sum, size)) in sums[entry * width..][..width].iter_mut().enumerate() {
                    let weight = self.approximate(node, row, component);
                    *sum += weight;
                    *size += f64::abs(weight);
                }
            }
            sums.iter().all(|(sum, size): &(f64, f64)| sum.abs() < LIMIT && *size < LARGEST)
        })
    }

    /// About w_s of a row.
    fn approximate(&self, node: usize, row: RowId, component: usize) -> f64 {
        let shape = &self.shape.nodes[node];
        if self.shape.components[component] == Arithmetic::Float {
            return 0.0;
        }
        let factors = shape.factors.iter().zip(self.rows[node].factors(row));
        let own: f64 = factors.filter(|((of, _), _)| *of == component).map(|(_, factor)| *factor as f64).product();
        let slot = self.shape.slots[component];
        let below = shape.below.iter().filter(|below| below.annotated);
        let sums =
            below.map(|below| self.edges[below.child].values(self.rows[node].entry(row, below.link))[slot] as f64);
        self.rows[node].multiplicity(row) as f64 * own * sums.product::<f64>()
    }
}
