//! Named cases: the paper's running example, faults of its prototype, its error about deletions,
//! and the edges of the ring.

use super::harness::{enumerate, rows, run, Update};
use super::oracle::Row;
use super::random::{bind, column};
use crate::chunk::{Chunk, Word};
use crate::plan::*;
use crate::random::Random;
use crate::store::interner::Interner;
use crate::tree::Tree;

fn names(list: &str) -> Vec<String> {
    list.split_whitespace().map(String::from).collect()
}

/// A node: variables, parent, key, connex; a name in square brackets makes it generalised.
pub type Line = (&'static str, &'static str, Option<usize>, &'static str, bool, EdgeKind);

pub fn stage(lines: &[Line], outputs: &str, mode: Mode) -> TreeStage {
    let (mut atoms, mut nodes, mut variables) = (Vec::new(), Vec::new(), Vec::<Variable>::new());
    for (name, list, parent, key, connex, edge) in lines {
        let atom = (!name.starts_with('[')).then_some(atoms.len());
        for variable in names(list) {
            if variables.iter().all(|other| other.name != variable) {
                variables.push(Variable { name: variable, data_type: "int64".into(), nullable: false });
            }
        }
        if atom.is_some() {
            let bindings = bind(&names(list));
            atoms.push(Atom { name: (*name).into(), source: "t".into(), bindings, filter: None, not_null: Vec::new() });
        }
        nodes.push(Node {
            name: (*name).into(),
            variables: names(list),
            atom,
            parent: *parent,
            key: names(key),
            connex: *connex,
            edge: *edge,
        });
    }
    TreeStage {
        id: "$tree".into(),
        variables,
        atoms,
        nodes,
        outputs: names(outputs),
        mode,
        ring: Vec::new(),
        residual: Vec::new(),
        ordered: Vec::new(),
        always: false,
    }
}

fn component(factors: &[(usize, &str)], data_type: &str) -> RingComponent {
    let factors = factors.iter().map(|(atom, name)| Factor { atom: *atom, expression: column(name) }).collect();
    RingComponent { name: "c".into(), factors, data_type: data_type.into() }
}

fn update(atom: usize, words: &[Word], weight: i64) -> Update {
    Update { atom, row: words.iter().copied().map(Some).collect(), weight }
}

/// A tree whose deltas are checked row by row.
struct Probe {
    tree: Tree,
    interner: Interner,
    columns: usize,
}

impl Probe {
    fn new(stage: &TreeStage) -> Probe {
        Probe {
            tree: Tree::new(stage, true).unwrap(),
            interner: Interner::default(),
            columns: stage.outputs.len() + stage.ring.len(),
        }
    }

    fn apply(&mut self, atom: usize, words: &[Word], weight: i64) -> Vec<(Vec<Word>, i64)> {
        let mut delta = Chunk::new(self.columns);
        self.tree.apply(atom, words, 0, weight, &mut self.interner, &mut delta).unwrap();
        rows(&delta).into_iter().map(|(row, weight)| (row.into_iter().flatten().collect(), weight)).collect()
    }

    fn result(&mut self) -> Vec<(Row, i64)> {
        enumerate(&self.tree, &mut self.interner, self.columns, 3)
    }
}

fn figure_four() -> TreeStage {
    stage(
        &[
            ("[x3]", "x3", None, "", true, EdgeKind::Join),
            ("R2", "x2 x3", Some(0), "x3", true, EdgeKind::Join),
            ("R1", "x1 x2", Some(1), "x2", true, EdgeKind::Join),
            ("R3", "x3 x4", Some(0), "x3", true, EdgeKind::Join),
            ("R4", "x4 x5", Some(3), "x4", false, EdgeKind::Join),
        ],
        "x1 x2 x3 x4",
        Mode::Set,
    )
}

#[test]
fn running_example_of_figure_four() {
    let (r1, r2, r3, r4) = (1, 0, 2, 3);
    let mut probe = Probe::new(&figure_four());
    let initial: [(usize, [Word; 2]); 15] = [
        (r1, [1, 2]),
        (r1, [2, 2]),
        (r2, [2, 2]),
        (r2, [2, 4]),
        (r2, [1, 2]),
        (r2, [1, 1]),
        (r2, [1, 4]),
        (r3, [1, 1]),
        (r3, [1, 2]),
        (r3, [3, 2]),
        (r3, [4, 4]),
        (r4, [1, 1]),
        (r4, [2, 1]),
        (r4, [4, 1]),
        (r4, [4, 2]),
    ];
    for (atom, words) in initial {
        probe.apply(atom, &words, 1);
    }
    let result: Vec<Row> = probe.result().into_iter().map(|(row, _)| row).collect();
    assert_eq!(result, [[1, 2, 4, 4], [2, 2, 4, 4]].map(|row| row.map(Some).to_vec()));

    let delta = probe.apply(r1, &[1, 1], 1);
    assert_eq!(delta, [[1, 1, 1, 1], [1, 1, 1, 2], [1, 1, 4, 4]].map(|row| (row.to_vec(), 1)));
    let delta = probe.apply(r4, &[1, 1], -1);
    assert_eq!(delta, [(vec![1, 1, 1, 1], -1)]);
    let delta = probe.apply(r1, &[4, 1], 1);
    assert_eq!(delta, [[4, 1, 1, 2], [4, 1, 4, 4]].map(|row| (row.to_vec(), 1)));
    assert_eq!(probe.tree.count(), Some(6));
}

/// The paper takes the live view before the update for deletions too: then R's two rows are
/// witnesses beside their parent.
#[test]
fn two_rows_with_one_key_leave_together_with_their_parent() {
    let lines = [
        ("P", "a", None, "", true, EdgeKind::Join),
        ("R", "a b", Some(0), "a", true, EdgeKind::Join),
        ("C", "c", Some(1), "", false, EdgeKind::Join),
    ];
    let mut probe = Probe::new(&stage(&lines, "a b", Mode::Set));
    for (atom, words) in [(2, vec![7]), (1, vec![1, 1]), (1, vec![1, 2])] {
        assert_eq!(probe.apply(atom, &words, 1), []);
    }
    assert_eq!(probe.apply(0, &[1], 1), [(vec![1, 1], 1), (vec![1, 2], 1)]);
    assert_eq!(probe.apply(2, &[7], -1), [(vec![1, 1], -1), (vec![1, 2], -1)]);
}

fn random_stream(seed: u64, arities: &[usize], length: usize) -> Vec<Update> {
    let mut random = Random(seed);
    let mut present: Vec<Update> = Vec::new();
    let mut stream = Vec::new();
    for _ in 0..length {
        if present.len() > 10 && random.below(2) == 0 {
            let mut gone = present.swap_remove(random.below(present.len() as u64) as usize);
            gone.weight = -1;
            stream.push(gone);
        }
        let atom = random.below(arities.len() as u64) as usize;
        let words: Vec<Word> = (0..arities[atom]).map(|_| random.below(3)).collect();
        let new = update(atom, &words, 1);
        present.push(new.clone());
        stream.push(new);
    }
    stream.extend(present.into_iter().map(|update| Update { weight: -1, ..update }));
    stream
}

#[test]
fn height_three_with_a_relation_as_root() {
    let lines = [
        ("R", "a b", None, "", true, EdgeKind::Join),
        ("S", "b c", Some(0), "b", true, EdgeKind::Join),
        ("T", "c d", Some(1), "c", true, EdgeKind::Join),
        ("U", "d e", Some(2), "d", true, EdgeKind::Join),
    ];
    for seed in 0..4 {
        run(&stage(&lines, "a b c d e", Mode::Set), &random_stream(seed, &[2, 2, 2, 2], 120));
        run(&stage(&lines, "a b c d e", Mode::Bag), &random_stream(seed, &[2, 2, 2, 2], 80));
    }
}

#[test]
fn count_over_independent_relations() {
    let lines = [
        ("[]", "", None, "", true, EdgeKind::Join),
        ("R", "a", Some(0), "", false, EdgeKind::Join),
        ("S", "b", Some(0), "", false, EdgeKind::Join),
    ];
    let mut count = stage(&lines, "", Mode::Ring);
    count.ring = vec![component(&[], "int64"), component(&[(0, "a"), (1, "b")], "int64")];
    count.always = true;
    let mut probe = Probe::new(&count);
    assert_eq!(probe.tree.initial_row(&mut probe.interner), Some(vec![0, 0]));
    assert_eq!(probe.apply(0, &[2], 1), []);
    assert_eq!(probe.apply(1, &[5], 1), [(vec![0, 0], -1), (vec![1, 10], 1)]);
    assert_eq!(probe.apply(1, &[6], 2), [(vec![1, 10], -1), (vec![3, 34], 1)]);
    assert_eq!(probe.apply(0, &[2], -1), [(vec![0, 0], 1), (vec![3, 34], -1)]);
    run(&count, &random_stream(3, &[1, 1], 60));
}

#[test]
fn aggregate_whose_parent_row_arrives_after_its_children() {
    let lines = [("R", "a b", None, "", true, EdgeKind::Join), ("S", "b c", Some(0), "b", false, EdgeKind::Join)];
    let mut sum = stage(&lines, "a b", Mode::Ring);
    sum.ring = vec![component(&[(1, "c")], "int64")];
    let mut probe = Probe::new(&sum);
    assert_eq!(probe.apply(1, &[1, 5], 1), []);
    assert_eq!(probe.apply(1, &[1, 6], 1), []);
    assert_eq!(probe.apply(0, &[9, 1], 1), [(vec![9, 1, 11], 1)]);
    assert_eq!(probe.apply(1, &[1, 6], -1), [(vec![9, 1, 5], 1), (vec![9, 1, 11], -1)]);
}

#[test]
fn rows_that_are_formed_again() {
    let mut probe = Probe::new(&figure_four());
    for (atom, words) in [(1, [1, 1]), (0, [1, 1]), (2, [1, 1])] {
        assert_eq!(probe.apply(atom, &words, 1), []);
    }
    for _ in 0..3 {
        assert_eq!(probe.apply(3, &[1, 1], 1), [(vec![1, 1, 1, 1], 1)]);
        assert_eq!(probe.apply(3, &[1, 1], -1), [(vec![1, 1, 1, 1], -1)]);
    }
}

#[test]
fn duplicates_are_counted_and_show_only_in_bags() {
    let lines = [("R", "a", None, "", true, EdgeKind::Join), ("S", "a b", Some(0), "a", false, EdgeKind::Join)];
    let mut set = Probe::new(&stage(&lines, "a", Mode::Set));
    let mut bag = Probe::new(&stage(&lines, "a", Mode::Bag));
    for probe in [&mut set, &mut bag] {
        assert_eq!(probe.apply(0, &[1], 1), []);
    }
    assert!(bag.tree.is_plain() == bag.tree.is_unit(0));
    assert_eq!((set.apply(1, &[1, 2], 1), bag.apply(1, &[1, 2], 1)), (vec![(vec![1], 1)], vec![(vec![1], 1)]));
    assert_eq!((set.apply(1, &[1, 2], 3), bag.apply(1, &[1, 2], 3)), (vec![], vec![(vec![1], 3)]));
    assert_eq!((set.apply(0, &[1], 1), bag.apply(0, &[1], 1)), (vec![], vec![(vec![1], 4)]));
    assert_eq!((set.apply(1, &[1, 2], -3), bag.apply(1, &[1, 2], -3)), (vec![], vec![(vec![1], -6)]));
    assert_eq!((set.apply(1, &[1, 2], -1), bag.apply(1, &[1, 2], -1)), (vec![(vec![1], -1)], vec![(vec![1], -2)]));
    assert_eq!(bag.tree.atom_multiplicity(0, &[1], 0), 2);
}

#[test]
fn not_exists_turns_the_direction() {
    let lines = [("R", "a", None, "", true, EdgeKind::Join), ("S", "a b", Some(0), "a", false, EdgeKind::Anti)];
    let mut probe = Probe::new(&stage(&lines, "a", Mode::Set));
    assert_eq!(probe.apply(0, &[1], 1), [(vec![1], 1)]);
    assert_eq!(probe.apply(1, &[1, 1], 1), [(vec![1], -1)]);
    assert_eq!(probe.apply(1, &[1, 2], 1), []);
    assert_eq!(probe.apply(1, &[1, 1], -1), []);
    assert_eq!(probe.apply(1, &[1, 2], -1), [(vec![1], 1)]);
    assert!(!probe.tree.is_net());
}

#[test]
fn removing_what_is_not_there_is_refused_and_changes_nothing() {
    let mut probe = Probe::new(&figure_four());
    probe.apply(1, &[1, 1], 1);
    let mut sink = Chunk::new(4);
    for (words, weight) in [([1, 1], -2), ([5, 5], -1)] {
        let error = probe.tree.apply(1, &words, 0, weight, &mut probe.interner, &mut sink).unwrap_err();
        assert_eq!(error.code, "CROWN-CHANGE-ABSENT");
    }
    assert_eq!(probe.tree.atom_multiplicity(1, &[1, 1], 0), 1);
}

#[test]
fn an_overflow_is_an_error_that_leaves_the_tree_as_it_was() {
    let lines = [("R", "a b", None, "", true, EdgeKind::Join), ("S", "b c", Some(0), "b", false, EdgeKind::Join)];
    let mut sum = stage(&lines, "a b", Mode::Ring);
    sum.ring = vec![component(&[(1, "c")], "int64")];
    let mut probe = Probe::new(&sum);
    probe.apply(0, &[1, 1], 1);
    let large = i64::MAX as Word;
    probe.apply(1, &[1, large], 1);
    let before = probe.result();
    let mut sink = Chunk::new(3);
    let error = probe.tree.apply(1, &[1, 5], 0, 1, &mut probe.interner, &mut sink).unwrap_err();
    assert_eq!((error.code, sink.len()), ("CROWN-OVERFLOW", 0));
    assert_eq!((probe.result(), probe.tree.count()), (before, Some(1)));
    assert_eq!(probe.apply(1, &[1, large], -1), [(vec![1, 1, large], -1)]);
}

#[test]
fn floats_come_back_exactly_and_infinities_leave() {
    let lines = [("[]", "", None, "", true, EdgeKind::Join), ("R", "a b", Some(0), "", false, EdgeKind::Join)];
    let mut sum = stage(&lines, "", Mode::Ring);
    sum.variables[0].data_type = "float64".into();
    let factor = Factor { atom: 0, expression: Expression::Column { name: "a".into(), data_type: "float64".into() } };
    sum.ring = vec![RingComponent { name: "s".into(), factors: vec![factor], data_type: "float64".into() }];
    sum.always = true;
    let mut probe = Probe::new(&sum);
    let shown = |delta: Vec<(Vec<Word>, i64)>| {
        delta.into_iter().find(|(_, weight)| *weight > 0).map(|(row, _)| f64::from_bits(row[0]))
    };
    let word = |value: f64| value.to_bits();
    assert_eq!(shown(probe.apply(0, &[word(0.1), 1], 1)), Some(0.1));
    assert_eq!(shown(probe.apply(0, &[word(1e18), 2], 1)), Some(1e18));
    assert_eq!(shown(probe.apply(0, &[word(f64::INFINITY), 3], 1)), Some(f64::INFINITY));
    assert!(shown(probe.apply(0, &[word(f64::NEG_INFINITY), 4], 1)).unwrap().is_nan());
    assert_eq!(shown(probe.apply(0, &[word(f64::INFINITY), 3], -1)), Some(f64::NEG_INFINITY));
    assert!(shown(probe.apply(0, &[word(f64::NAN), 5], 1)).unwrap().is_nan());
    assert_eq!(shown(probe.apply(0, &[word(f64::NEG_INFINITY), 4], -1)), None);
    assert_eq!(shown(probe.apply(0, &[word(f64::NAN), 5], -1)), Some(1e18));
    assert_eq!(shown(probe.apply(0, &[word(1e18), 2], -1)), Some(0.1));
    assert_eq!(shown(probe.apply(0, &[word(0.1), 1], -1)), Some(0.0));
}

#[test]
fn malformed_stages_are_errors() {
    let good = figure_four();
    let spoil: Vec<fn(&mut TreeStage)> = vec![
        |stage| stage.nodes.clear(),
        |stage| stage.nodes[1].parent = Some(4),
        |stage| stage.nodes[1].atom = Some(9),
        |stage| stage.nodes[1].key = vec!["x9".into()],
        |stage| stage.nodes[1].key.clear(),
        |stage| stage.nodes[1].variables.push("x1".into()),
        |stage| stage.nodes[4].connex = true,
        |stage| stage.nodes[2].atom = None,
        |stage| stage.outputs.push("x5".into()),
        |stage| drop(stage.outputs.pop()),
        |stage| stage.always = true,
        |stage| stage.variables.clear(),
        |stage| stage.ring.push(component(&[], "string")),
    ];
    for (index, spoil) in spoil.into_iter().enumerate() {
        let mut stage = good.clone();
        spoil(&mut stage);
        let error = Tree::new(&stage, true).err().unwrap_or_else(|| panic!("case {index} was accepted"));
        assert_eq!(error.kind, crate::error::Kind::Plan, "case {index}");
    }
}
