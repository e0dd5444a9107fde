//! Bags against nested loops, after every batch of six changes; counted work; memory.

use super::*;
use crate::random::Random;
use serde_json::json;
use std::collections::BTreeMap;

/// A query: atoms as texts of one-letter variables; capitals are nullable variables of one atom.
struct Query {
    atoms: &'static [&'static str],
    outputs: &'static str,
    /// All atoms are over one table: a change goes to each of them.
    self_join: bool,
}

const QUERIES: [Query; 10] = [
    Query { atoms: &["ab", "bc", "ca"], outputs: "abc", self_join: false },
    Query { atoms: &["ab", "bc", "ca"], outputs: "abc", self_join: true },
    Query { atoms: &["ab", "bc", "cd", "da"], outputs: "abcd", self_join: false },
    Query { atoms: &["ab", "bc", "cd", "da"], outputs: "dcba", self_join: true },
    Query { atoms: &["ab", "ac", "ad", "bc", "bd", "cd"], outputs: "abcd", self_join: true },
    Query { atoms: &["ab", "bc", "ca", "cd"], outputs: "abcd", self_join: false },
    Query { atoms: &["abP", "bc", "caQ", "a", "ab"], outputs: "aPbQ", self_join: false },
    Query { atoms: &["abc", "bcd", "da"], outputs: "abcd", self_join: false },
    Query { atoms: &["ab", "bc", "ca", "de", "ef", "fd"], outputs: "af", self_join: false },
    Query { atoms: &["abP", "bcQ", "caR"], outputs: "QR", self_join: true },
];

fn bag(query: &Query) -> Bag {
    let mut names: Vec<char> = query.atoms.iter().flat_map(|atom| atom.chars()).collect();
    names.sort_unstable();
    names.dedup();
    let variable = |name: &char| json!({"name": name, "type": "int64", "nullable": name.is_uppercase()});
    let atom = |atom: &&str| {
        let column = |name: char| json!({"kind": "column", "name": name, "type": "int64"});
        let bindings: Vec<_> = atom.chars().map(|v| json!({"variable": v, "expression": column(v)})).collect();
        json!({"name": atom, "source": "t", "bindings": bindings, "filter": null, "not_null": []})
    };
    let stage = json!({
        "id": "$b",
        "variables": names.iter().map(variable).collect::<Vec<_>>(),
        "atoms": query.atoms.iter().map(atom).collect::<Vec<_>>(),
        "outputs": query.outputs.chars().collect::<Vec<_>>(),
        "order": names.iter().filter(|name| name.is_lowercase()).collect::<Vec<_>>(),
    });
    Bag::new(&serde_json::from_value(stage).unwrap()).unwrap()
}

type Row = Vec<Option<Word>>;
type Counts = BTreeMap<Row, i64>;

/// The join by nested loops.
fn join(query: &Query, atoms: &[Counts], binding: &mut BTreeMap<char, Option<Word>>, weight: i64, out: &mut Counts) {
    let next = query.atoms.len() - atoms.len();
    let Some((rows, rest)) = atoms.split_first() else {
        let row = query.outputs.chars().map(|name| binding[&name]).collect();
        *out.entry(row).or_default() += weight;
        return;
    };
    for (row, count) in rows {
        let before = binding.clone();
        let fits =
            query.atoms[next].chars().zip(row).all(|(name, value)| *binding.entry(name).or_insert(*value) == *value);
        if fits {
            join(query, rest, binding, weight * count, out);
        }
        *binding = before;
    }
}

fn add(total: &mut Counts, chunk: &Chunk) {
    let mut words = Vec::new();
    for index in 0..chunk.len() {
        let nulls = chunk.read(index, &mut words);
        let row: Row = words.iter().enumerate().map(|(c, word)| (nulls >> c & 1 == 0).then_some(*word)).collect();
        *total.entry(row.clone()).or_default() += chunk.weights[index];
        if total[&row] == 0 {
            total.remove(&row);
        }
    }
}

fn row_parts(row: &Row) -> (Vec<Word>, Nulls) {
    let nulls = row.iter().enumerate().map(|(column, value)| Nulls::from(value.is_none()) << column).sum();
    (row.iter().map(|value| value.unwrap_or(0)).collect(), nulls)
}

#[test]
fn oracle_random_changes_against_nested_loops() {
    for (seed, query) in (0..30).zip(QUERIES.iter().cycle()) {
        println!("seed {seed}");
        let mut random = Random(seed);
        let mut bag = bag(query);
        let mut interner = Interner::default();
        let mut atoms: Vec<Counts> = vec![Counts::new(); query.atoms.len()];
        let mut total = Counts::new();
        let empty = bag.stats();
        for step in 0..150 {
            // Mostly insertions first, then mostly deletions.
            let delete = random.index(4) < if step < 90 { 1 } else { 3 };
            let first = if query.self_join { 0 } else { random.index(atoms.len()) };
            let known = atoms[first].len();
            let row: Row = if delete && known > 0 {
                atoms[first].keys().nth(random.index(known)).unwrap().clone()
            } else {
                let value = |name: char, random: &mut Random| {
                    (name.is_lowercase() || random.index(3) > 0).then(|| random.index(4) as Word)
                };
                query.atoms[first].chars().map(|name| value(name, &mut random)).collect()
            };
            let has = atoms[first].get(&row).copied().unwrap_or(0);
            let weight = if delete { -has.min(1 + random.index(2) as i64) } else { 1 + random.index(2) as i64 };
            let changed = if query.self_join { 0..atoms.len() } else { first..first + 1 };
            let (words, nulls) = row_parts(&row);
            let mut out = Chunk::new(query.outputs.len());
            for atom in changed {
                bag.apply(atom, &words, nulls, weight, &mut interner, &mut out).unwrap();
                *atoms[atom].entry(row.clone()).or_default() += weight;
                if atoms[atom][&row] == 0 {
                    atoms[atom].remove(&row);
                }
                assert_eq!(bag.atom_multiplicity(atom, &words, nulls), has + weight);
            }
            add(&mut total, &out);
            if step % 6 != 5 {
                continue;
            }
            let mut expected = Counts::new();
            join(query, &atoms, &mut BTreeMap::new(), 1, &mut expected);
            assert_eq!(total, expected, "seed {seed} step {step}");
        }
        let (mut full, mut next) = (Chunk::new(query.outputs.len()), 0);
        while next < bag.atom_len(0) {
            next = bag.read(next, 2, &mut full).unwrap();
        }
        let mut read = Counts::new();
        add(&mut read, &full);
        assert_eq!(read, total, "seed {seed}");
        for (atom, rows) in atoms.into_iter().enumerate() {
            let listed: Counts = bag
                .atom_rows(atom)
                .map(|(words, nulls, count)| {
                    let value = |(column, word): (usize, &Word)| (nulls >> column & 1 == 0).then_some(*word);
                    (words.iter().enumerate().map(value).collect(), count)
                })
                .collect();
            assert_eq!(listed, rows);
            for (row, count) in rows {
                let (words, nulls) = row_parts(&row);
                bag.apply(atom, &words, nulls, -count, &mut interner, &mut Chunk::new(query.outputs.len())).unwrap();
            }
        }
        let stats = bag.stats();
        assert_eq!((stats.rows, stats.keys), (empty.rows, empty.keys), "seed {seed}");
    }
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut bag = bag(&QUERIES[6]);
    let mut interner = Interner::default();
    let mut out = Chunk::new(4);
    let error = bag.apply(1, &[1, 2], 0, -1, &mut interner, &mut out).unwrap_err();
    assert_eq!(error.code, "CROWN-CHANGE-ABSENT");
    let error = bag.apply(1, &[1, 0], 0b10, 1, &mut interner, &mut out).unwrap_err();
    assert_eq!(error.code, "CROWN-PLAN-MALFORMED");
    bag.apply(0, &[1, 2, 0], 0b100, 1, &mut interner, &mut out).unwrap();
    assert_eq!((out.len(), bag.atom_multiplicity(0, &[1, 2, 0], 0b100)), (0, 1));
    for (atom, row) in [(1, &[2, 3][..]), (2, &[3, 1, 0]), (3, &[1])] {
        bag.apply(atom, row, 0, 1 << 30, &mut interner, &mut out).unwrap();
    }
    let error = bag.apply(4, &[1, 2], 0, 1, &mut interner, &mut out).unwrap_err();
    assert_eq!((error.code, out.len(), bag.atom_multiplicity(4, &[1, 2], 0)), ("CROWN-OVERFLOW", 0, 0));
}

/// A change's work follows the smallest list, not the largest: a hub with many neighbours costs
/// nothing as long as the other side has few.
#[test]
fn work_follows_the_smallest_list() {
    let mut interner = Interner::default();
    for (many, few) in [(1000, 3), (10_000, 3), (10_000, 30)] {
        let mut bag = bag(&QUERIES[0]);
        let mut out = Chunk::new(3);
        let (hub, leaf) = (1, 2);
        for other in 0..many {
            bag.apply(1, &[hub, 100 + other], 0, 1, &mut interner, &mut out).unwrap();
        }
        for other in 0..few {
            bag.apply(2, &[100 + 2 * other, leaf], 0, 1, &mut interner, &mut out).unwrap();
        }
        let before = bag.stats().work;
        out.clear();
        bag.apply(0, &[leaf, hub], 0, 1, &mut interner, &mut out).unwrap();
        assert_eq!(out.len() as u64, few);
        assert_eq!(bag.stats().work - before, 2 * few, "one visit and one probe for each of the {few} candidates");
        let before = bag.stats().work;
        bag.apply(0, &[77, hub], 0, 1, &mut interner, &mut out).unwrap();
        assert_eq!(bag.stats().work - before, 0, "an empty list ends the join");
    }
}

#[test]
fn memory_follows_the_live_rows() {
    for query in [&QUERIES[1], &QUERIES[7]] {
        let mut bag = bag(query);
        let mut interner = Interner::default();
        let mut random = Random(7);
        let mut window: Vec<(usize, Vec<Word>)> = Vec::new();
        let mut after = Vec::new();
        for generation in 0..20u64 {
            let mut next = Vec::new();
            for number in 0..1500 {
                let atom = number % query.atoms.len();
                let word = |random: &mut Random| generation * 10_000 + random.index(300) as Word;
                let row: Vec<Word> = (0..query.atoms[atom].len()).map(|_| word(&mut random)).collect();
                bag.apply(atom, &row, 0, 1, &mut interner, &mut Chunk::new(query.outputs.len())).unwrap();
                next.push((atom, row));
            }
            for (atom, row) in std::mem::replace(&mut window, next) {
                bag.apply(atom, &row, 0, -1, &mut interner, &mut Chunk::new(query.outputs.len())).unwrap();
            }
            after.push(bag.stats().bytes);
        }
        assert!(after[19] <= after[1] + after[1] / 10, "{after:?}");
        for (atom, row) in window {
            bag.apply(atom, &row, 0, -1, &mut interner, &mut Chunk::new(query.outputs.len())).unwrap();
        }
        assert_eq!((bag.stats().rows, bag.stats().keys), (0, 0));
        assert!(bag.stats().bytes < after[1] / 10, "{} bytes for no rows, of {after:?}", bag.stats().bytes);
    }
}

#[test]
fn strings_are_held_while_their_rows_live() {
    let mut stage: plan::BagStage = serde_json::from_value(json!({
        "id": "$b", "outputs": ["a"], "order": ["a"],
        "variables": [{"name": "a", "type": "string", "nullable": false}],
        "atoms": [{"name": "r", "source": "t", "filter": null, "not_null": [],
            "bindings": [{"variable": "a", "expression": {"kind": "column", "name": "a", "type": "string"}}]}],
    }))
    .unwrap();
    stage.atoms.push(stage.atoms[0].clone());
    let mut bag = Bag::new(&stage).unwrap();
    let mut interner = Interner::default();
    let word = interner.intern(b"value");
    let mut out = Chunk::new(1);
    bag.apply(0, &[word], 0, 1, &mut interner, &mut out).unwrap();
    interner.sweep();
    assert_eq!(interner.find(b"value"), Some(word));
    bag.apply(1, &[word], 0, 2, &mut interner, &mut out).unwrap();
    assert_eq!((out.len(), out.weights[0]), (1, 2));
    bag.apply(0, &[word], 0, -1, &mut interner, &mut out).unwrap();
    bag.apply(1, &[word], 0, -2, &mut interner, &mut out).unwrap();
    interner.sweep();
    assert!(interner.is_empty());
}
