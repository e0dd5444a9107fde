//! Results by position, and at random, without enumerating.
//!
//! `counts` finds the rows of the result at a position. A position that is drawn uniformly makes
//! every result equally likely (by multiplicity). With residual conditions the positions are not
//! known, so draws that fail the conditions are repeated.

use super::ring::Value;
use super::Tree;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{overflow, Result};
use crate::mask::Bits;
use crate::plan::Mode;
use crate::store::interner::Interner;

/// Rejected draws in a row before the whole result is enumerated instead.
const PATIENCE: usize = 256;

impl Tree {
    /// Appends the result at a position of the enumeration (weight 1); false if there are fewer.
    /// `None` where counting can't tell. `count_positions` comes first.
    pub fn nth(&self, number: u128, interner: &mut Interner, out: &mut Chunk) -> Result<Option<bool>> {
        let Some(total) = self.numbered().filter(|_| self.shape.residual.is_empty() && !self.shape.always) else {
            return Ok(None);
        };
        if number >= total {
            return Ok(Some(false));
        }
        let mut words = Vec::new();
        let nulls = self.row_at(number, interner, &mut words)?;
        out.push(&words, nulls, 1);
        Ok(Some(true))
    }

    /// The words and the NULL mask of the result at a position, with the values of an aggregate.
    fn row_at(&self, number: u128, interner: &mut Interner, words: &mut Vec<Word>) -> Result<Nulls> {
        words.clear();
        words.resize(self.shape.outputs, 0);
        let ring = self.shape.mode == Mode::Ring;
        let components = if ring { &self.shape.components[..] } else { &[] };
        let mut product: Vec<Value> = components.iter().map(|component| component.of_count(1)).collect();
        let (mut nulls, mut own, mut overflowed) = (0, Vec::new(), false);
        self.follow(number, |node, row| {
            let (rows, shape) = (&self.rows[node], &self.shape.nodes[node]);
            for (position, column) in self.projections[node].iter().enumerate() {
                words[*column] = rows.word(row, position);
            }
            if shape.nullable != 0 {
                let mask = rows.word(row, shape.variables.len());
                nulls = nulls.union(mask.gather((0..).zip(self.projections[node].iter().copied())));
            }
            if ring && !self.is_unit(node) {
                own.clear();
                overflowed |= self.weight(node, row, rows.multiplicity(row), None, &mut own);
                for ((value, factor), component) in product.iter_mut().zip(&own).zip(components) {
                    let (times, over) = component.multiply(*value, *factor);
                    *value = times;
                    overflowed |= over;
                }
            }
        });
        if overflowed {
            return Err(overflow());
        }
        for (value, component) in product.iter().zip(components) {
            words.push(component.word(*value, interner)?);
        }
        Ok(nulls)
    }

    /// Appends one result row (weight 1) drawn with probability proportional to its multiplicity,
    /// independent of earlier draws; false when the result is empty. `random(n)` returns a number
    /// below n. `count_positions` comes first.
    pub fn draw(&self, interner: &mut Interner, random: &mut impl FnMut(u64) -> u64, out: &mut Chunk) -> Result<bool> {
        let Some(total) = self.numbered().filter(|_| !self.shape.always) else {
            return self.draw_by_enumerating(interner, random, out);
        };
        if total == 0 {
            return Ok(false);
        }
        let mut words = Vec::new();
        'draw: for _ in 0..PATIENCE {
            let nulls = self.row_at(below(total, random), interner, &mut words)?;
            for condition in &self.shape.residual {
                if !condition.is_true(&words[..self.shape.outputs], nulls, interner)? {
                    continue 'draw;
                }
            }
            out.push(&words, nulls, 1);
            return Ok(true);
        }
        self.draw_by_enumerating(interner, random, out)
    }

    /// Reservoir sampling, for residual conditions that reject nearly all.
    fn draw_by_enumerating(
        &self,
        interner: &mut Interner,
        random: &mut impl FnMut(u64) -> u64,
        out: &mut Chunk,
    ) -> Result<bool> {
        let mut cursor = self.cursor();
        let mut block = Chunk::new(out.columns.len());
        let mut chosen: Option<(Vec<Word>, Nulls)> = None;
        let mut seen = 0u128;
        loop {
            block.clear();
            let more = cursor.fill(self, interner, &mut block, 1024)?;
            for index in 0..block.len() {
                let weight = u128::from(block.weights[index].unsigned_abs());
                seen += weight;
                if below(seen, random) < weight {
                    let mut words = Vec::new();
                    let nulls = block.read(index, &mut words);
                    chosen = Some((words, nulls));
                }
            }
            if !more {
                break;
            }
        }
        let Some((words, nulls)) = chosen else { return Ok(false) };
        out.push(&words, nulls, 1);
        Ok(true)
    }
}

/// A number below `bound`, from numbers of 64 bits.
fn below(bound: u128, random: &mut impl FnMut(u64) -> u64) -> u128 {
    if let Ok(bound) = u64::try_from(bound) {
        return u128::from(random(bound));
    }
    // Two 32-bit halves at a time keep every draw below 2^64; the remainder's bias is below 2^-64
    // of a draw.
    let mut wide = 0u128;
    for _ in 0..4 {
        wide = wide << 32 | u128::from(random(1 << 32));
    }
    wide % bound
}
