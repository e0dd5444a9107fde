//! Result rows at random, without enumerating.
//!
//! The number of results below a row is its annotation times, for each connex child, the sum over the rows of its entry: one pass
//! bottom-up. A draw then goes top-down and picks in each list a row by its share, which makes every result equally likely (by
//! multiplicity). With residual conditions, draws that they reject are repeated.

use super::id::EntryId;
use super::Tree;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::Result;
use crate::mask::Bits;
use crate::plan::Mode;
use crate::store::interner::Interner;

/// Rejected draws in a row before the sampler enumerates instead.
const PATIENCE: usize = 256;

/// Weights of the rows of a tree by the number of results they are in.
pub struct Sampler {
    nodes: Vec<Shares>,
    root_total: u128,
    overflowed: bool,
}

/// For each entry of a connex node's edge the running sums of its rows' results.
#[derive(Default)]
struct Shares {
    starts: Vec<usize>,
    sums: Vec<u128>,
}

impl Sampler {
    pub(super) fn new(tree: &Tree) -> Sampler {
        let mut sampler = Sampler {
            nodes: (0..tree.rows.len()).map(|_| Shares::default()).collect(),
            root_total: 0,
            overflowed: false,
        };
        sampler.root_total = sampler.build(tree, tree.shape.root).first().copied().unwrap_or(0);
        sampler
    }

    /// The totals of each entry of the node's edge.
    fn build(&mut self, tree: &Tree, node: usize) -> Vec<u128> {
        let below: Vec<(usize, Vec<u128>)> = tree.shape.nodes[node]
            .connex_children
            .iter()
            .map(|child| (tree.shape.nodes[*child].link_in_parent, self.build(tree, *child)))
            .collect();
        let edge = &tree.edges[node];
        let mut totals = vec![0; edge.entries.len()];
        let mut shares = Shares { starts: vec![0; edge.entries.len()], sums: Vec::new() };
        let mut weight = Vec::new();
        for entry in edge.iter() {
            shares.starts[entry.index()] = shares.sums.len();
            let mut sum = 0u128;
            let list = &edge.entries[entry.index()].children;
            for row in (0..list.len).map(|position| tree.children[node].get(list, position)) {
                let mut results = Some(1u128);
                if tree.shape.mode == Mode::Bag {
                    weight.clear();
                    self.overflowed |= tree.weight(node, row, tree.rows[node].multiplicity(row), None, &mut weight);
                    results = u128::try_from(weight[0]).ok();
                }
                for (link, totals) in &below {
                    let total = totals[tree.rows[node].entry(row, *link).index()];
                    results = results.and_then(|results| results.checked_mul(total));
                }
                match results.and_then(|results| sum.checked_add(results)) {
                    Some(next) => sum = next,
                    None => self.overflowed = true,
                }
                shares.sums.push(sum);
            }
            totals[entry.index()] = sum;
        }
        self.nodes[node] = shares;
        totals
    }

    /// How many results there are, residual conditions aside.
    pub(super) fn total(&self) -> Option<i128> {
        i128::try_from(self.root_total).ok().filter(|_| !self.overflowed)
    }

    /// Appends one result row (weight 1) drawn with probability proportional to its multiplicity, independent of earlier draws;
    /// false when the result is empty. `random(n)` returns a number below n.
    pub fn draw(
        &self,
        tree: &Tree,
        interner: &mut Interner,
        random: &mut impl FnMut(u64) -> u64,
        out: &mut Chunk,
    ) -> Result<bool> {
        if tree.shape.mode == Mode::Ring || self.overflowed {
            return self.draw_by_enumerating(tree, interner, random, out);
        }
        if self.root_total == 0 {
            return Ok(false);
        }
        let mut words = vec![0; tree.shape.outputs];
        'draw: for _ in 0..PATIENCE {
            let mut nulls = 0;
            self.pick(tree, tree.shape.root, EntryId::FIRST, random, &mut words, &mut nulls);
            for condition in &tree.shape.residual {
                if !condition.is_true(&words, nulls, interner)? {
                    continue 'draw;
                }
            }
            out.push(&words, nulls, 1);
            return Ok(true);
        }
        self.draw_by_enumerating(tree, interner, random, out)
    }

    fn pick(
        &self,
        tree: &Tree,
        node: usize,
        entry: EntryId,
        random: &mut impl FnMut(u64) -> u64,
        words: &mut [Word],
        nulls: &mut Nulls,
    ) {
        let list = &tree.edges[node].entries[entry.index()].children;
        let start = self.nodes[node].starts[entry.index()];
        let sums = &self.nodes[node].sums[start..start + list.len as usize];
        let ticket = below(sums[sums.len() - 1], random);
        let row = tree.children[node].get(list, sums.partition_point(|sum| *sum <= ticket) as u32);
        let rows = &tree.rows[node];
        let shape = &tree.shape.nodes[node];
        for (position, column) in tree.projections[node].iter().enumerate() {
            words[*column] = rows.word(row, position);
        }
        if shape.nullable != 0 {
            let mask = rows.word(row, shape.variables.len());
            *nulls = nulls.union(mask.gather((0..).zip(tree.projections[node].iter().copied())));
        }
        for child in &shape.connex_children {
            let entry = rows.entry(row, tree.shape.nodes[*child].link_in_parent);
            self.pick(tree, *child, entry, random, words, nulls);
        }
    }

    /// Reservoir sampling: for residual conditions that reject nearly all, and for groups with their aggregates.
    fn draw_by_enumerating(
        &self,
        tree: &Tree,
        interner: &mut Interner,
        random: &mut impl FnMut(u64) -> u64,
        out: &mut Chunk,
    ) -> Result<bool> {
        let mut cursor = tree.cursor();
        let mut block = Chunk::new(out.columns.len());
        let mut chosen: Option<(Vec<Word>, Nulls)> = None;
        let mut seen = 0u128;
        loop {
            block.clear();
            let more = cursor.fill(tree, interner, &mut block, 1024)?;
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
    // Two 32-bit halves at a time keep every draw below 2^64; the remainder's bias is below 2^-64 of a draw.
    let mut wide = 0u128;
    for _ in 0..4 {
        wide = wide << 32 | u128::from(random(1 << 32));
    }
    wide % bound
}
