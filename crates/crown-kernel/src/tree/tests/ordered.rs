//! Comparisons between the rows of two nodes: right, and only matching rows are visited.

use super::harness::{enumerate, run, Update};
use super::named::{stage as stage_of, Line};
use super::random::{column, stage, updates};
use crate::chunk::{Chunk, Word};
use crate::error::{KernelError, Result};
use crate::plan::{Comparison, EdgeKind, Expression, Mode, TreeStage};
use crate::random::Random;
use crate::store::interner::Interner;
use crate::tree::{Sink, Tree};
use crate::types::float_word;

/// Adds `lower` + `offset` < `upper` (or <=), as a residual condition and as an order.
fn compare(stage: &mut TreeStage, lower: &str, offset: i64, upper: &str, strict: bool) {
    let call = |function: &str, arguments: Vec<Expression>, data_type: &str| Expression::Call {
        function: function.into(),
        arguments,
        data_type: data_type.into(),
    };
    let offset_value = Expression::Literal { value: offset.into(), data_type: "int64".into() };
    let sum = if offset == 0 { column(lower) } else { call("add", vec![column(lower), offset_value], "int64") };
    stage.residual.push(call(if strict { "lt" } else { "le" }, vec![sum, column(upper)], "boolean"));
    stage.ordered.push(Comparison { lower: lower.into(), offset, upper: upper.into(), strict });
}

#[test]
fn oracle_random_trees_with_comparisons() {
    let first = std::env::var("CROWN_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = first.map_or(0..500, |seed| seed..seed + 1);
    let mut compared = 0;
    for seed in seeds {
        let mut random = Random(seed);
        let mut stage = stage(&mut random);
        let integer = |name: &&String| {
            stage.variables.iter().any(|variable| variable.name == **name && variable.data_type == "int64")
        };
        let names: Vec<String> = stage.outputs.iter().filter(integer).cloned().collect();
        if names.len() < 2 {
            continue;
        }
        let length = names.len() as u64;
        for _ in 0..1 + random.below(2) {
            let lower = random.below(length);
            let upper = (lower + 1 + random.below(length - 1)) % length;
            let offset = random.below(3) as i64 - 1;
            let strict = random.chance(50);
            compare(&mut stage, &names[lower as usize], offset, &names[upper as usize], strict);
            if random.chance(30) {
                // A band: the other bound on the same pair.
                compare(&mut stage, &names[upper as usize], -2, &names[lower as usize], false);
            }
        }
        compared += 1;
        let steps = 10 + random.below(30) as usize;
        let stream = updates(&stage, &mut random, steps);
        let outcome = std::panic::catch_unwind(|| run(&stage, &stream));
        assert!(outcome.is_ok(), "fails with CROWN_SEED={seed}: {:#?} {:?}", stage.nodes, stage.ordered);
    }
    assert!(first.is_some() || compared > 150, "{compared}");
}

const JOIN: EdgeKind = EdgeKind::Join;
/// The two relations below what they share; the one below the other; and with a third one below,
/// and above.
const SIBLINGS: &[Line] = &[
    ("[k]", "k", None, "", true, JOIN),
    ("A", "k x", Some(0), "k", true, JOIN),
    ("B", "k y", Some(0), "k", true, JOIN),
];
const PARENT_FIRST: &[Line] = &[("A", "k x", None, "", true, JOIN), ("B", "k y", Some(0), "k", true, JOIN)];
const CHILD_FIRST: &[Line] = &[("A", "k x", Some(1), "k", true, JOIN), ("B", "k y", None, "", true, JOIN)];
const CHAIN: &[Line] = &[
    ("A", "k x", None, "", true, JOIN),
    ("B", "k y", Some(0), "k", true, JOIN),
    ("C", "y z", Some(1), "y", true, JOIN),
];

/// The lines with the root first, as a stage wants them.
fn rooted(lines: &[Line], outputs: &str, mode: Mode) -> TreeStage {
    let mut lines = lines.to_vec();
    if lines[0].2.is_some() {
        lines.swap(0, 1);
        lines[1].2 = Some(0);
    }
    stage_of(&lines, outputs, mode)
}

struct Counted {
    results: u64,
    visits: u64,
}

/// Rows of one key, `x` and `y` from 0 to `size`, in a mixed order, then all deleted: the delta
/// walks of all of them, and one full enumeration between.
fn walk(stage: &TreeStage, size: u64) -> [Counted; 3] {
    let (mut tree, mut interner) = (Tree::new(stage, true).unwrap(), Interner::default());
    let mut random = Random(size);
    let mut changes: Vec<(usize, Vec<Word>)> = Vec::new();
    for value in 0..size {
        for (atom, relation) in stage.atoms.iter().enumerate() {
            let row = if relation.name == "C" { vec![value, value] } else { vec![7, value] };
            changes.insert(random.below(changes.len() as u64 + 1) as usize, (atom, row));
        }
    }
    let mut parts = Vec::new();
    for sign in [1, -1] {
        let before = tree.walk.as_ref().map_or(0, |walk| walk.visits());
        let mut delta = Chunk::new(stage.outputs.len());
        for (atom, words) in &changes {
            tree.apply(*atom, words, 0, sign, &mut interner, &mut delta).unwrap();
        }
        let visits = tree.walk.as_ref().unwrap().visits() - before;
        parts.push(Counted { results: delta.len() as u64, visits });
        if sign > 0 {
            let (mut cursor, mut all) = (tree.cursor(), Chunk::new(stage.outputs.len()));
            while cursor.fill(&tree, &mut interner, &mut all, 1000).unwrap() {}
            parts.push(Counted { results: all.len() as u64, visits: cursor.visits() });
        }
    }
    assert_eq!(tree.count(), Some(0));
    parts.try_into().ok().unwrap()
}

/// A band of three values: every change has a few results, and a plain filter would look at all
/// rows of the key for each.
#[test]
fn only_matching_rows_are_visited() {
    let size = 300;
    for (lines, outputs) in [(SIBLINGS, "k x y"), (PARENT_FIRST, "k x y"), (CHILD_FIRST, "k x y"), (CHAIN, "k x y z")] {
        let mut stage = rooted(lines, outputs, Mode::Bag);
        compare(&mut stage, "x", -1, "y", false);
        compare(&mut stage, "y", -2, "x", true);
        let rows = size * stage.atoms.len() as u64;
        for Counted { results, visits } in walk(&stage, size) {
            assert_eq!(results, 3 * size - 2);
            assert!(visits <= 8 * (results + rows), "{lines:?}: {visits} for {results}");
        }
        stage.ordered.clear();
        for Counted { results, visits } in walk(&stage, size) {
            assert_eq!(results, 3 * size - 2);
            assert!(visits >= 6 * 8 * (results + rows) / 5, "{lines:?}: a filter looks at {visits} rows");
        }
    }
}

/// Values at both ends of their type, where bounds lie outside of it.
#[test]
fn bounds_don_t_wrap() {
    let ends = [i64::MIN + 1, -1, 0, 1, i64::MAX - 1];
    for lines in [SIBLINGS, PARENT_FIRST, CHILD_FIRST] {
        for (offset, strict) in [(0, true), (0, false), (1, true), (-1, false)] {
            let mut stage = rooted(lines, "k x y", Mode::Set);
            compare(&mut stage, "x", offset, "y", strict);
            let update = |atom: usize, value: i64| Update { atom, row: vec![Some(0), Some(value as Word)], weight: 1 };
            let stream: Vec<Update> = ends.iter().flat_map(|end| [update(0, *end), update(1, *end)]).collect();
            run(&stage, &stream);
        }
    }
}

#[test]
fn floats_are_in_the_order_of_their_values() {
    let mut stage = rooted(SIBLINGS, "k x y", Mode::Set);
    compare(&mut stage, "x", 0, "y", true);
    for variable in stage.variables.iter_mut().filter(|variable| variable.name != "k") {
        variable.data_type = "float64".into();
    }
    for name in ["x", "y"] {
        let Expression::Call { arguments, .. } = &mut stage.residual[0] else { unreachable!() };
        for argument in arguments {
            if let Expression::Column { name: other, data_type } = argument {
                if other == name {
                    *data_type = "float64".into();
                }
            }
        }
    }
    let (mut tree, mut interner) = (Tree::new(&stage, true).unwrap(), Interner::default());
    let values = [f64::NEG_INFINITY, -2.5, -0.0, 1e-9, 3.0, f64::INFINITY, f64::NAN];
    let mut delta = Chunk::new(3);
    for value in values {
        for atom in [0, 1] {
            tree.apply(atom, &[1, float_word(value)], 0, 1, &mut interner, &mut delta).unwrap();
        }
    }
    // Each value is below those after it, NaN being the greatest.
    assert_eq!((delta.len(), tree.count()), (7 * 6 / 2, Some(7 * 6 / 2)));
    assert_eq!(enumerate(&tree, &mut interner, 3, 4).len(), 21);
}

/// Thousands of rows come and go: ids are renamed, and memory goes back.
#[test]
fn ordered_lists_survive_compaction_and_give_memory_back() {
    let mut stage = rooted(CHAIN, "k x y z", Mode::Set);
    compare(&mut stage, "x", 0, "y", true);
    let mut plain = stage.clone();
    plain.ordered.clear();
    let mut trees = [Tree::new(&stage, true).unwrap(), Tree::new(&plain, true).unwrap()];
    let mut interner = Interner::default();
    let row = |step: u64| match step % 3 {
        2 => (2, [step / 9 % 100, step]),
        atom => (atom as usize, [step / 50, step / 9 % 100]),
    };
    let window = 3000;
    let mut sizes = Vec::new();
    let mut present: std::collections::VecDeque<(usize, [Word; 2])> = std::collections::VecDeque::new();
    for step in 0..12 * window {
        let mut changes = Vec::new();
        // A window that shrinks now and then, so that slabs become sparse.
        let kept = if step / window % 3 == 2 { 60 } else { window as usize };
        while present.len() >= kept {
            let (atom, words) = present.pop_front().unwrap();
            changes.push((atom, words, -1));
        }
        let (atom, words) = row(step);
        if trees[0].atom_multiplicity(atom, &words, 0) == 0 {
            changes.push((atom, words, 1));
            present.push_back((atom, words));
        }
        for (atom, words, weight) in changes {
            let deltas: Vec<_> = trees
                .iter_mut()
                .map(|tree| {
                    let mut delta = Chunk::new(4);
                    tree.apply(atom, &words, 0, weight, &mut interner, &mut delta).unwrap();
                    super::harness::rows(&delta)
                })
                .collect();
            assert_eq!(deltas[0], deltas[1], "step {step}");
        }
        if (step + 1) % window == 0 {
            sizes.push(trees[0].stats().bytes);
            let results = trees.each_ref().map(|tree| enumerate(tree, &mut interner, 4, 100));
            assert_eq!(results[0], results[1], "step {step}");
        }
    }
    assert!(sizes[2] < sizes[1] / 4 && sizes[11] < sizes[10] / 4, "{sizes:?}");
    assert!(sizes[10] <= sizes[1] * 5 / 4, "{sizes:?}");
}

struct Failing(Chunk);

impl Sink for Failing {
    fn chunk(&mut self) -> &mut Chunk {
        &mut self.0
    }

    fn flush_if_full(&mut self) -> Result<()> {
        Err(KernelError::invalid("CROWN-INTERNAL", "full"))
    }
}

#[test]
fn a_failed_update_leaves_the_ordered_lists_as_they_were() {
    for lines in [SIBLINGS, PARENT_FIRST, CHILD_FIRST] {
        let mut stage = rooted(lines, "k x y", Mode::Bag);
        compare(&mut stage, "x", 0, "y", false);
        let (mut tree, mut interner) = (Tree::new(&stage, true).unwrap(), Interner::default());
        for value in 0..5 {
            for atom in [0, 1] {
                tree.apply(atom, &[1, value], 0, 1, &mut interner, &mut Chunk::new(3)).unwrap();
            }
        }
        let before = enumerate(&tree, &mut interner, 3, 100);
        assert_eq!(before.len(), 15);
        for (words, weight) in [([1, 9], 1), ([1, 2], -1)] {
            for atom in [0, 1] {
                let failed = tree.apply(atom, &words, 0, weight, &mut interner, &mut Failing(Chunk::new(3)));
                assert!(failed.is_err());
                assert_eq!(enumerate(&tree, &mut interner, 3, 100), before);
                let mut delta = Chunk::new(3);
                tree.apply(atom, &[1, 3], 0, -1, &mut interner, &mut delta).unwrap();
                tree.apply(atom, &[1, 3], 0, 1, &mut interner, &mut delta).unwrap();
                assert_eq!(delta.weights.iter().sum::<i64>(), 0);
                assert!(!delta.is_empty());
            }
        }
    }
}
