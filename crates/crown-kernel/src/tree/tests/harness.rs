//! Runs a stream of updates against the oracle, checking all that a tree answers after every one of
//! them.

use super::oracle::{self, row, Bag, Row};
use crate::chunk::{Chunk, Nulls, Word};
use crate::plan::{EdgeKind, Mode, TreeStage};
use crate::store::interner::Interner;
use crate::tree::{AtomChange, Tree};

#[derive(Clone, Debug)]
pub struct Update {
    pub atom: usize,
    pub row: Row,
    pub weight: i64,
}

pub fn split(row: &Row) -> (Vec<Word>, Nulls) {
    let words = row.iter().map(|value| value.unwrap_or(0)).collect();
    let nulls = row.iter().enumerate().map(|(bit, value)| u64::from(value.is_none()) << bit).sum();
    (words, nulls)
}

/// The rows of a chunk, each of which must be there only once (with one sign).
pub fn rows(chunk: &Chunk) -> Vec<(Row, i64)> {
    let mut words = Vec::new();
    for column in &chunk.columns {
        assert_eq!(column.len(), chunk.len(), "columns of unequal length");
    }
    assert!(chunk.nulls.is_empty() || chunk.nulls.len() == chunk.len());
    let mut result: Vec<(Row, i64)> = (0..chunk.len())
        .map(|index| {
            let nulls = chunk.read(index, &mut words);
            (row(&words, nulls), chunk.weights[index])
        })
        .collect();
    result.sort();
    result
}

fn net(rows: Vec<(Row, i64)>) -> Vec<(Row, i64)> {
    let mut sums = Bag::new();
    for (row, n) in rows {
        *sums.entry(row).or_default() += i128::from(n);
    }
    sums.into_iter().filter(|(_, n)| *n != 0).map(|(row, n)| (row, n as i64)).collect()
}

pub fn enumerate(tree: &Tree, interner: &mut Interner, columns: usize, block: usize) -> Vec<(Row, i64)> {
    let mut chunk = Chunk::new(columns);
    let mut cursor = tree.cursor();
    while cursor.fill(tree, interner, &mut chunk, block).unwrap() {}
    rows(&chunk)
}

/// What changed, as rows with signed multiplicity.
fn difference(old: &Bag, new: &Bag) -> Vec<(Row, i64)> {
    let mut changes = Bag::new();
    for (row, n) in new {
        *changes.entry(row.clone()).or_default() += n;
    }
    for (row, n) in old {
        *changes.entry(row.clone()).or_default() -= n;
    }
    changes.into_iter().filter(|(_, n)| *n != 0).map(|(row, n)| (row, n as i64)).collect()
}

pub fn run(stage: &TreeStage, stream: &[Update]) {
    let columns = stage.outputs.len() + stage.ring.len();
    let mut interner = Interner::default();
    let mut tree = Tree::new(stage, true).unwrap();
    let mut pulled = Tree::new(stage, false).unwrap();
    let mut atoms: Vec<Bag> = vec![Bag::new(); stage.atoms.len()];
    let mut old = oracle::result(stage, &atoms);
    if let Some(initial) = tree.initial_row(&mut interner) {
        assert_eq!(old.keys().next(), Some(&row(&initial, 0)));
    }
    // What an optional child shows before and after may be the same; whether it is, only netting
    // tells.
    let flips = stage.nodes.iter().any(|node| node.edge == EdgeKind::Optional);
    let mut seen: Vec<Row> = Vec::new();
    let mut deltas = Vec::new();
    for (step, update) in stream.iter().enumerate() {
        let (words, nulls) = split(&update.row);
        let mut delta = Chunk::new(columns);
        tree.apply(update.atom, &words, nulls, update.weight, &mut interner, &mut delta).unwrap();
        let mut silent = Chunk::new(columns);
        pulled.apply(update.atom, &words, nulls, update.weight, &mut interner, &mut silent).unwrap();
        assert!(silent.is_empty());

        let multiplicity = atoms[update.atom].entry(update.row.clone()).or_default();
        *multiplicity += i128::from(update.weight);
        assert_eq!(i128::from(tree.atom_multiplicity(update.atom, &words, nulls)), *multiplicity);
        if *multiplicity == 0 {
            atoms[update.atom].remove(&update.row);
        }
        let new = oracle::result(stage, &atoms);
        let found = if flips { net(rows(&delta)) } else { rows(&delta) };
        assert_eq!(found, difference(&old, &new), "delta of step {step}: {update:?}");
        deltas.extend(in_order(&delta));

        let expected: Vec<(Row, i64)> = new.iter().map(|(row, n)| (row.clone(), *n as i64)).collect();
        let block = [1, 2, 3, 1000][step % 4];
        assert_eq!(enumerate(&tree, &mut interner, columns, block), expected, "enumeration after step {step}");
        assert_eq!(enumerate(&pulled, &mut interner, columns, 7), expected, "pulled enumeration after step {step}");

        let count: i128 = new.values().sum();
        assert_eq!(tree.count(), Some(count), "count after step {step}");
        if stage.residual.is_empty() {
            assert_eq!(pulled.count(), Some(count), "pulled count after step {step}");
        }
        seen.extend(expected.iter().map(|(row, _)| row[..stage.outputs.len()].to_vec()));
        seen.sort();
        seen.dedup();
        seen.truncate(60);
        for candidate in &seen {
            let (words, nulls) = split(candidate);
            let found = tree.multiplicity(&words, nulls, &interner).unwrap();
            let expected: i128 =
                new.iter().filter(|(row, _)| row[..stage.outputs.len()] == candidate[..]).map(|(_, n)| n).sum();
            assert_eq!(i128::from(found), expected, "membership of {candidate:?} after step {step}");
        }
        let mut random = crate::random::Random(step as u64);
        let mut drawn = Chunk::new(columns);
        tree.count_positions();
        let found = tree.draw(&mut interner, &mut |n| random.below(n), &mut drawn).unwrap();
        assert_eq!(found, count > 0);
        assert!(rows(&drawn).iter().all(|(row, _)| new.contains_key(row)), "sample after step {step}");
        check_positions(&tree, &mut interner, columns, step);
        if step % 5 == 0 {
            pulled.count_positions();
        }
        old = new;
    }
    check_rebuild(stage, &tree, &old, &mut interner);
    check_all_at_once(stage, stream, &deltas, &mut interner);
}

/// Results are found by their position in the enumeration.
fn check_positions(tree: &Tree, interner: &mut Interner, columns: usize, step: usize) {
    let (mut walked, mut found) = (Chunk::new(columns), Chunk::new(columns));
    let mut cursor = tree.cursor();
    while cursor.fill(tree, interner, &mut walked, 100).unwrap() {}
    let copies = |(words, nulls, weight): (Vec<Word>, Nulls, i64)| (0..weight).map(move |_| (words.clone(), nulls, 1));
    let walked: Vec<_> = in_order(&walked).into_iter().flat_map(copies).collect();
    for number in 0..=walked.len() {
        match tree.nth(number as u128, interner, &mut found).unwrap() {
            None => return assert!(!tree.shape.residual.is_empty() || tree.shape.always),
            Some(more) => assert_eq!(more, number < walked.len(), "result {number} after step {step}"),
        }
    }
    assert_eq!(in_order(&found), walked, "places after step {step}");
}

/// Changes that are looked ahead for have the deltas, in the order, that they have one by one.
fn check_all_at_once(
    stage: &TreeStage,
    stream: &[Update],
    deltas: &[(Vec<Word>, Nulls, i64)],
    interner: &mut Interner,
) {
    let mut tree = Tree::new(stage, true).unwrap();
    let parts: Vec<(Vec<Word>, Nulls)> = stream.iter().map(|update| split(&update.row)).collect();
    let changes = stream.iter().zip(&parts).map(|(update, (words, nulls))| AtomChange {
        atom: update.atom,
        words,
        nulls: *nulls,
        weight: update.weight,
    });
    let mut sink = Chunk::new(stage.outputs.len() + stage.ring.len());
    tree.apply_all(changes, interner, &mut sink).map_err(|(_, error)| error).unwrap();
    assert_eq!(in_order(&sink), deltas, "all at once");
}

fn in_order(chunk: &Chunk) -> Vec<(Vec<Word>, Nulls, i64)> {
    let read = |index: usize| {
        let mut words = Vec::new();
        let nulls = chunk.read(index, &mut words);
        (words, nulls, chunk.weights[index])
    };
    (0..chunk.len()).map(read).collect()
}

/// A tree built from the atoms' rows alone enumerates the same result.
fn check_rebuild(stage: &TreeStage, tree: &Tree, expected: &Bag, interner: &mut Interner) {
    let columns = stage.outputs.len() + stage.ring.len();
    let mut rebuilt = Tree::new(stage, stage.mode != Mode::Bag).unwrap();
    for atom in 0..stage.atoms.len() {
        for (words, nulls, multiplicity) in tree.atom_rows(atom) {
            let mut sink = Chunk::new(columns);
            rebuilt.apply(atom, words, nulls, multiplicity as i64, interner, &mut sink).unwrap();
        }
    }
    let rows: Vec<(Row, i64)> = expected.iter().map(|(row, n)| (row.clone(), *n as i64)).collect();
    assert_eq!(enumerate(&rebuilt, interner, columns, 5), rows, "rebuilt");
}
