//! Optional edges: the cost of a change and the size of the state, by counting, and when phantoms
//! are added and removed.

use super::harness::{rows, run, split, Update};
use super::named::stage as stage_of;
use crate::chunk::Chunk;
use crate::plan::*;
use crate::random::Random;
use crate::store::interner::Interner;
use crate::tree::Tree;

/// A table with `children` optional ones by a key each, all shown: 20 LEFT JOINs.
fn star(children: usize) -> TreeStage {
    let mut stage = stage_of(&[("F", "f", None, "", true, EdgeKind::Join)], "f", Mode::Bag);
    for child in 0..children {
        let (key, value) = (format!("k{child}"), format!("v{child}"));
        for (name, nullable) in [(&key, false), (&value, true)] {
            stage.variables.push(Variable { name: name.clone(), data_type: "int64".into(), nullable });
            stage.outputs.push(name.clone());
        }
        stage.atoms[0].bindings.push(Binding { variable: key.clone(), expression: super::random::column(&key) });
        stage.nodes[0].variables.push(key.clone());
        stage.nodes.push(Node {
            name: format!("D{child}"),
            variables: vec![key.clone(), value.clone()],
            atom: Some(child + 1),
            parent: Some(0),
            key: vec![key.clone()],
            connex: true,
            edge: EdgeKind::Optional,
        });
        stage.atoms.push(Atom {
            name: format!("D{child}"),
            source: format!("d{child}"),
            bindings: super::random::bind(&[key.clone(), value]),
            filter: None,
            not_null: vec![key],
        });
    }
    stage
}

struct Probe {
    tree: Tree,
    interner: Interner,
    columns: usize,
    emitted: usize,
}

impl Probe {
    fn new(stage: &TreeStage) -> Probe {
        let (tree, interner) = (Tree::new(stage, true).unwrap(), Interner::default());
        Probe { tree, interner, columns: stage.outputs.len() + stage.ring.len(), emitted: 0 }
    }

    fn apply(&mut self, atom: usize, words: &[u64], weight: i64) {
        let mut delta = Chunk::new(self.columns);
        self.tree.apply(atom, words, 0, weight, &mut self.interner, &mut delta).unwrap();
        self.emitted += delta.len();
    }
}

/// Every kind of change costs a constant number of counter changes, whatever the data: nothing
/// climbs an optional edge, and the rows that a flip emits are the delta. Space is linear in the
/// rows, phantoms included.
#[test]
fn twenty_outer_joins_cost_a_constant_number_of_counters_and_linear_space() {
    let children = 20;
    let mut bytes = Vec::new();
    for size in [400u64, 1600] {
        let mut probe = Probe::new(&star(children));
        let mut random = Random(size);
        for fact in 0..size {
            let row: Vec<u64> = std::iter::once(fact).chain((0..children).map(|_| random.below(size / 4))).collect();
            probe.apply(0, &row, 1);
        }
        let changes = probe.tree.stats().counter_changes;
        assert!(changes <= 2 * size, "{changes} counter changes of {size} rows without a match");
        let mut updates = 0;
        for child in 1..=children {
            for key in 0..size / 8 {
                probe.apply(child, &[key, 1], 1);
                probe.apply(child, &[key, 2], 1);
                probe.apply(child, &[key, 1], -1);
                probe.apply(child, &[key, 2], -1);
                probe.apply(child, &[key, 3], 1);
                updates += 5;
            }
        }
        let stats = probe.tree.stats();
        let flips = stats.counter_changes - changes;
        assert!(flips <= 2 * updates, "{flips} counter changes of {updates} changes below {size} rows");
        assert!(probe.emitted as u64 > 4 * updates, "the flips are in the delta");
        bytes.push(stats.bytes as f64 / stats.live_rows as f64);
        let phantoms: usize = probe.tree.rows.iter().map(|rows| rows.phantoms).sum();
        assert!(phantoms > 0 && phantoms <= children * size as usize, "{phantoms} phantoms");
    }
    assert!(bytes[1] <= 1.3 * bytes[0], "{bytes:?} bytes per row");
}

/// Phantoms leave no trace: with the last row of the kept side all memory of them is gone.
#[test]
fn phantoms_go_with_the_rows_that_they_stand_beside() {
    let mut probe = Probe::new(&star(3));
    for round in 0..3000u64 {
        probe.apply(0, &[round, round, round / 2, 7], 1);
        if round >= 50 {
            let old = round - 50;
            probe.apply(0, &[old, old, old / 2, 7], -1);
        }
    }
    let stats = probe.tree.stats();
    assert_eq!(stats.live_rows, 50);
    assert_eq!(probe.tree.rows.iter().map(|rows| rows.phantoms).collect::<Vec<_>>(), [0, 50, 25, 1]);
    assert!(stats.bytes < 1 << 17, "{} bytes", stats.bytes);
    for old in 2950..3000 {
        probe.apply(0, &[old, old, old / 2, 7], -1);
    }
    assert!(probe.tree.rows.iter().all(|rows| rows.len == 0 && rows.phantoms == 0 && rows.in_semi_join == 0));
    assert!((1..4).all(|edge| probe.tree.edges[edge].len() == 0));
    assert_eq!(probe.tree.count(), Some(0));
}

/// A row of the optional side that shows nothing but NULL is not the phantom, though it looks the
/// same: the two never exist at the same time.
#[test]
fn a_row_of_nulls_takes_the_place_of_the_phantom() {
    let stage = star(1);
    let mut probe = Probe::new(&stage);
    probe.apply(0, &[1, 5], 1);
    let mut delta = Chunk::new(3);
    let nulls = 1 << 1;
    probe.tree.apply(1, &[5, 0], nulls, 1, &mut probe.interner, &mut delta).unwrap();
    let signs: i64 = rows(&delta).iter().map(|(_, sign)| sign).sum();
    assert_eq!((rows(&delta).len(), signs), (2, 0), "the same row comes and goes");
    let (words, nulls) = split(&vec![Some(1), Some(5), None]);
    assert_eq!(probe.tree.multiplicity(&words, nulls, &probe.interner).unwrap(), 1);
    assert_eq!(probe.tree.atom_rows(1).count(), 1);
    probe.tree.apply(1, &[5, 0], 1 << 1, 1, &mut probe.interner, &mut delta).unwrap();
    assert_eq!(probe.tree.multiplicity(&words, nulls, &probe.interner).unwrap(), 2);
    probe.tree.apply(1, &[5, 0], 1 << 1, -2, &mut probe.interner, &mut delta).unwrap();
    assert_eq!(probe.tree.multiplicity(&words, nulls, &probe.interner).unwrap(), 1);
    assert_eq!(probe.tree.atom_rows(1).count(), 0);
}

/// Below a phantom there are only phantoms: its columns are NULL, which match nothing.
#[test]
fn a_chain_shows_nulls_to_its_end() {
    let mut stage = stage_of(
        &[
            ("A", "a", None, "", true, EdgeKind::Join),
            ("B", "a b", Some(0), "a", true, EdgeKind::Optional),
            ("C", "b c", Some(1), "b", true, EdgeKind::Optional),
        ],
        "a b c",
        Mode::Bag,
    );
    for variable in &mut stage.variables[1..] {
        variable.nullable = true;
    }
    stage.atoms[1].not_null = vec!["a".into()];
    stage.atoms[2].not_null = vec!["b".into()];
    let change =
        |atom: usize, row: &[u64], weight: i64| Update { atom, row: row.iter().copied().map(Some).collect(), weight };
    let stream = [
        change(2, &[7, 1], 1),
        change(0, &[1], 1),
        change(0, &[2], 1),
        change(1, &[1, 7], 1),
        change(1, &[1, 8], 1),
        change(2, &[7, 1], -1),
        change(1, &[1, 7], -1),
        change(2, &[8, 2], 2),
        change(0, &[1], -1),
        change(1, &[1, 8], -1),
    ];
    run(&stage, &stream);
}

/// What the kernel relies on is checked when the plan is loaded.
#[test]
fn plans_that_could_confuse_phantoms_are_refused() {
    let refused = |change: &dyn Fn(&mut TreeStage)| {
        let mut stage = star(1);
        change(&mut stage);
        Tree::new(&stage, true).err().expect("the plan is refused").code
    };
    assert_eq!(refused(&|stage| stage.variables[2].nullable = false), "CROWN-PLAN-MALFORMED");
    assert_eq!(
        refused(&|stage| {
            stage.variables[1].nullable = true;
            stage.atoms[1].not_null.clear();
        }),
        "CROWN-PLAN-MALFORMED"
    );
    assert_eq!(refused(&|stage| stage.nodes[1].atom = None), "CROWN-PLAN-MALFORMED");
    assert_eq!(
        refused(&|stage| {
            stage.mode = Mode::Ring;
            let factors = vec![Factor { atom: 1, expression: super::random::column("k0") }];
            stage.ring = vec![RingComponent { name: "s".into(), factors, data_type: "int64".into() }];
        }),
        "CROWN-PLAN-MALFORMED"
    );
}
