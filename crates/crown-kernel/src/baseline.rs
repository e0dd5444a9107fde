//! The conventional plan, for benchmarks only: a chain of pairwise joins that propagates changes
//! through materialised views.
//!
//! With atoms A1, A2, ..., the view V1 is A1 and Vi is V(i-1) joined with Ai. A change of Ai is
//! joined with V(i-1); the resulting change of Vi is joined with A(i+1), and so on to the end. All
//! views between the first atom and the result are stored, indexed by the variables that they share
//! with the next atom; the result itself is not. This plan runs on the same tables as `bag`, so
//! that only the plans differ.

use crate::bag::relation::Relation;
use crate::chunk::{Chunk, Word};
use crate::store::interner::Interner;
use crate::types::DataType;

/// A chain of hash joins that stores every intermediate result, to compare memory and time with.
pub struct PairwiseBaseline {
    /// The variables of the result, in order of first appearance.
    variables: Vec<String>,
    atoms: Vec<Relation>,
    /// `views[i]` joins the atoms `0..=i`; the last one would be the result. The first is the first
    /// atom itself.
    views: Vec<Relation>,
    joins: Vec<Join>,
    interner: Interner,
    output_rows: u64,
    output_weight: i64,
}

/// How atom i + 1 meets the view of the atoms up to i.
struct Join {
    /// Columns of the view and of the atom that must be equal, pairwise.
    view_key: Vec<usize>,
    atom_key: Vec<usize>,
    /// Columns that the atom adds to the view.
    added: Vec<usize>,
    view_index: usize,
    atom_index: usize,
}

/// Rows of one width, end to end, with weights.
#[derive(Default)]
struct Delta {
    words: Vec<Word>,
    weights: Vec<i64>,
}

impl PairwiseBaseline {
    /// `atoms` are lists of variables (as words of inline types), in the order in which they are
    /// joined.
    pub fn new(atoms: &[Vec<String>]) -> PairwiseBaseline {
        let relation = |width: usize| Relation::new((0..width).map(|_| DataType::Int64));
        let mut baseline = PairwiseBaseline {
            variables: atoms.first().cloned().unwrap_or_default(),
            atoms: Vec::new(),
            views: Vec::new(),
            joins: Vec::new(),
            interner: Interner::default(),
            output_rows: 0,
            output_weight: 0,
        };
        for (position, atom) in atoms.iter().enumerate() {
            let mut own = relation(atom.len());
            if position > 0 {
                let mut view = relation(baseline.variables.len());
                let place = |name| baseline.variables.iter().position(|other| other == name);
                let shared = atom.iter().enumerate().filter_map(|(column, name)| Some((place(name)?, column)));
                let (view_key, atom_key): (Vec<_>, Vec<_>) = shared.unzip();
                let added: Vec<usize> = (0..atom.len()).filter(|column| !atom_key.contains(column)).collect();
                let view_index = view.add_index(view_key.clone(), None);
                let atom_index = own.add_index(atom_key.clone(), None);
                baseline.variables.extend(added.iter().map(|column| atom[*column].clone()));
                baseline.joins.push(Join { view_key, atom_key, added, view_index, atom_index });
                baseline.views.push(view);
            }
            baseline.atoms.push(own);
        }
        baseline
    }

    /// The result's columns.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// Changes a row of one atom; the change of the result is counted, and appended to `out` if
    /// there is one.
    pub fn apply(&mut self, atom: usize, words: &[Word], weight: i64, out: Option<&mut Chunk>) {
        let mut delta = Delta { words: words.to_vec(), weights: vec![weight] };
        let mut width = words.len();
        if atom > 0 {
            delta = self.join_with_view(atom, words, weight);
            width = self.view_width(atom - 1) + self.joins[atom - 1].added.len();
            self.atoms[atom].add(words, 0, weight, &mut self.interner);
        }
        // The first atom is the first view, so it is kept as that only.
        for next in atom.max(1)..=self.joins.len() {
            if next > atom {
                let changed = self.join_with_atom(next, &delta, width);
                self.keep(next - 1, &delta, width);
                width += self.joins[next - 1].added.len();
                delta = changed;
            }
        }
        self.output_rows += delta.weights.len() as u64;
        self.output_weight += delta.weights.iter().sum::<i64>();
        if let Some(out) = out {
            for (row, weight) in delta.words.chunks_exact(width.max(1)).zip(&delta.weights) {
                out.push(row, 0, *weight);
            }
        }
    }

    fn view_width(&self, view: usize) -> usize {
        self.variables.len() - self.joins[view..].iter().map(|join| join.added.len()).sum::<usize>()
    }

    /// A row of an atom with the view of all atoms before it.
    fn join_with_view(&self, atom: usize, words: &[Word], weight: i64) -> Delta {
        let (join, view) = (&self.joins[atom - 1], &self.views[atom - 1]);
        let key: Vec<Word> = join.atom_key.iter().map(|column| words[*column]).collect();
        let mut delta = Delta::default();
        for candidate in view.candidates(join.view_index, &key) {
            delta.words.extend_from_slice(view.row(candidate.row as usize).0);
            delta.words.extend(join.added.iter().map(|column| words[*column]));
            delta.weights.push(weight * view.count_at(candidate.row as usize));
        }
        delta
    }

    /// A change of the view before an atom with that atom.
    fn join_with_atom(&self, atom: usize, delta: &Delta, width: usize) -> Delta {
        let (join, relation) = (&self.joins[atom - 1], &self.atoms[atom]);
        let mut key: Vec<Word> = Vec::new();
        let mut result = Delta::default();
        for (row, weight) in delta.words.chunks_exact(width).zip(&delta.weights) {
            key.clear();
            key.extend(join.view_key.iter().map(|column| row[*column]));
            for candidate in relation.candidates(join.atom_index, &key) {
                let (words, _) = relation.row(candidate.row as usize);
                result.words.extend_from_slice(row);
                result.words.extend(join.added.iter().map(|column| words[*column]));
                result.weights.push(weight * relation.count_at(candidate.row as usize));
            }
        }
        result
    }

    fn keep(&mut self, view: usize, delta: &Delta, width: usize) {
        for (row, weight) in delta.words.chunks_exact(width).zip(&delta.weights) {
            self.views[view].add(row, 0, *weight, &mut self.interner);
        }
    }

    /// How many rows the changes of the result had so far.
    pub fn output_rows(&self) -> u64 {
        self.output_rows
    }

    /// How many rows the result has, duplicates counted.
    pub fn result_rows(&self) -> i64 {
        self.output_weight
    }

    /// Rows of atoms and views.
    pub fn state_rows(&self) -> usize {
        self.atoms.iter().chain(&self.views).map(Relation::len).sum()
    }

    /// Bytes held by the stored rows.
    pub fn bytes(&self) -> usize {
        self.atoms.iter().chain(&self.views).map(Relation::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::collections::BTreeMap;

    type Counts = BTreeMap<Vec<Word>, i64>;

    /// Nested loops over the atoms' rows.
    fn join(
        atoms: &[(Vec<String>, Counts)],
        bound: &BTreeMap<String, Word>,
        weight: i64,
        out: &mut Counts,
        order: &[String],
    ) {
        let Some(((names, rows), rest)) = atoms.split_first() else {
            *out.entry(order.iter().map(|name| bound[name]).collect()).or_default() += weight;
            return;
        };
        for (row, count) in rows {
            let mut next = bound.clone();
            if names.iter().zip(row).all(|(name, word)| *next.entry(name.clone()).or_insert(*word) == *word) {
                join(rest, &next, weight * count, out, order);
            }
        }
    }

    #[test]
    fn oracle_pairwise_joins_against_nested_loops() {
        let names = |atom: &str| atom.chars().map(String::from).collect::<Vec<_>>();
        for (seed, query) in
            (0..8).zip([&["ab", "bc", "ca"][..], &["ab", "bc", "ca", "cd", "de", "ef", "fd"]].iter().cycle())
        {
            println!("seed {seed}");
            let mut random = Random(seed);
            let mut atoms: Vec<(Vec<String>, Counts)> =
                query.iter().map(|atom| (names(atom), BTreeMap::new())).collect();
            let variables: Vec<Vec<String>> = atoms.iter().map(|(names, _)| names.clone()).collect();
            let mut baseline = PairwiseBaseline::new(&variables);
            let mut total = Counts::new();
            for step in 0..100 {
                let atom = random.index(atoms.len());
                let known = atoms[atom].1.len();
                let delete = known > 0 && random.index(5) < if step < 70 { 1 } else { 4 };
                let row = if delete {
                    atoms[atom].1.keys().nth(random.index(known)).unwrap().clone()
                } else {
                    vec![random.index(4) as Word, random.index(4) as Word]
                };
                let weight = if delete { -1 } else { 1 };
                let mut out = Chunk::new(baseline.variables().len());
                baseline.apply(atom, &row, weight, Some(&mut out));
                *atoms[atom].1.entry(row).or_default() += weight;
                atoms[atom].1.retain(|_, count| *count != 0);
                let mut words = Vec::new();
                for index in 0..out.len() {
                    out.read(index, &mut words);
                    *total.entry(words.clone()).or_default() += out.weights[index];
                }
                total.retain(|_, count| *count != 0);
                if step % 5 == 0 {
                    let mut expected = BTreeMap::new();
                    join(&atoms, &BTreeMap::new(), 1, &mut expected, baseline.variables());
                    assert_eq!(total, expected, "seed {seed} step {step}");
                    assert_eq!(baseline.result_rows(), total.values().sum::<i64>());
                }
            }
            for (atom, (_, rows)) in atoms.iter().enumerate() {
                rows.iter().for_each(|(row, count)| baseline.apply(atom, row, -count, None));
            }
            assert_eq!((baseline.state_rows(), baseline.result_rows()), (0, 0));
        }
    }
}
