//! The judge: nested loops over multisets, straight from the meaning of a `TreeStage`, with no
//! views, counters or lists.

use crate::chunk::{Nulls, Word};
use crate::plan::{EdgeKind, Expression, Mode, TreeStage};
use std::collections::{BTreeMap, BTreeSet};

/// A value or NULL.
pub type Value = Option<Word>;
pub type Row = Vec<Value>;
/// Rows with multiplicity.
pub type Bag = BTreeMap<Row, i128>;

pub fn row(words: &[Word], nulls: Nulls) -> Row {
    words.iter().enumerate().map(|(bit, word)| (nulls >> bit & 1 == 0).then_some(*word)).collect()
}

pub fn variables(stage: &TreeStage, node: usize) -> Vec<String> {
    let Some(atom) = stage.nodes[node].atom else { return stage.nodes[node].variables.clone() };
    let mut names: Vec<String> = Vec::new();
    for binding in &stage.atoms[atom].bindings {
        if !names.contains(&binding.variable) {
            names.push(binding.variable.clone());
        }
    }
    names
}

type Assignment = BTreeMap<String, Value>;

/// Assignments of the variables of the join part below `node`, each with the multiplicity of its
/// atom rows.
fn join(stage: &TreeStage, atoms: &[Bag], node: usize) -> Vec<(Assignment, i128)> {
    let mut results: Vec<(Assignment, i128)> =
        relation(stage, atoms, node).into_iter().map(|(row, n)| (assign(stage, node, &row), n)).collect();
    for child in children(stage, node) {
        if stage.nodes[child].edge == EdgeKind::Join {
            let below = join(stage, atoms, child);
            let mut next = Vec::new();
            for (left, n) in &results {
                for (right, m) in &below {
                    if right.iter().all(|(name, value)| left.get(name).is_none_or(|other| other == value)) {
                        let mut both = left.clone();
                        both.extend(right.clone());
                        next.push((both, n * m));
                    }
                }
            }
            results = next;
        } else if stage.nodes[child].edge == EdgeKind::Optional {
            results = results.into_iter().flat_map(|(left, n)| padded(stage, atoms, child, &left, n)).collect();
        } else {
            let keys = keys(stage, atoms, child);
            let wanted = stage.nodes[child].edge == EdgeKind::Exists;
            results.retain(|(assignment, _)| keys.contains(&project(assignment, &stage.nodes[child].key)) == wanted);
        }
    }
    results
}

/// The assignment beside each match of the optional part below `node`, or beside its NULLs.
fn padded(stage: &TreeStage, atoms: &[Bag], node: usize, left: &Assignment, n: i128) -> Vec<(Assignment, i128)> {
    let key = &stage.nodes[node].key;
    let mut results = Vec::new();
    for (right, m) in join(stage, atoms, node) {
        if project(&right, key) == project(left, key) {
            let mut both = left.clone();
            both.extend(right);
            results.push((both, n * m));
        }
    }
    if results.is_empty() {
        results.push((left.clone(), n));
        let mut waiting = vec![node];
        while let Some(node) = waiting.pop() {
            for name in variables(stage, node) {
                results[0].0.entry(name).or_insert(None);
            }
            waiting.extend(children(stage, node));
        }
    }
    results
}

fn children(stage: &TreeStage, node: usize) -> Vec<usize> {
    (0..stage.nodes.len()).filter(|other| stage.nodes[*other].parent == Some(node)).collect()
}

fn assign(stage: &TreeStage, node: usize, row: &Row) -> Assignment {
    variables(stage, node).into_iter().zip(row.iter().copied()).collect()
}

fn project(assignment: &Assignment, names: &[String]) -> Row {
    names.iter().map(|name| assignment[name]).collect()
}

/// The keys that the part below `node` offers its parent.
fn keys(stage: &TreeStage, atoms: &[Bag], node: usize) -> BTreeSet<Row> {
    join(stage, atoms, node).iter().map(|(assignment, _)| project(assignment, &stage.nodes[node].key)).collect()
}

/// The atom's rows, or for a generalised node every key that a guard offers.
fn relation(stage: &TreeStage, atoms: &[Bag], node: usize) -> Vec<(Row, i128)> {
    if let Some(atom) = stage.nodes[node].atom {
        return atoms[atom].iter().map(|(row, n)| (row.clone(), *n)).collect();
    }
    let names = variables(stage, node);
    let mut rows = BTreeSet::new();
    for child in children(stage, node) {
        let key = &stage.nodes[child].key;
        if key.len() == names.len() && matches!(stage.nodes[child].edge, EdgeKind::Join | EdgeKind::Exists) {
            for offered in keys(stage, atoms, child) {
                let assignment: Assignment = key.iter().cloned().zip(offered).collect();
                rows.insert(project(&assignment, &names));
            }
        }
    }
    rows.into_iter().map(|row| (row, 1)).collect()
}

/// The result: in mode ring with the components (of type int64) as further columns.
pub fn result(stage: &TreeStage, atoms: &[Bag]) -> Bag {
    let mut groups: BTreeMap<Row, (i128, Vec<i128>)> = BTreeMap::new();
    for (assignment, n) in join(stage, atoms, 0) {
        let output = project(&assignment, &stage.outputs);
        let rejected =
            stage.residual.iter().any(|condition| value(condition, &assignment).is_none_or(|word| word == 0));
        if rejected {
            continue;
        }
        let group = groups.entry(output).or_insert_with(|| (0, vec![0; stage.ring.len()]));
        group.0 += n;
        for (component, sum) in stage.ring.iter().zip(&mut group.1) {
            let factors = component.factors.iter().map(|factor| value(&factor.expression, &assignment));
            *sum += factors.fold(n, |product, factor| product * factor.map_or(0, |word| i128::from(word as i64)));
        }
    }
    if stage.always && groups.is_empty() {
        groups.insert(Vec::new(), (0, vec![0; stage.ring.len()]));
    }
    groups
        .into_iter()
        .map(|(mut row, (n, sums))| {
            row.extend(sums.into_iter().map(|sum| Some(sum as i64 as Word)));
            (row, if stage.mode == Mode::Bag { n } else { 1 })
        })
        .collect()
}

/// Columns, integer literals, and their sums and comparisons.
fn value(expression: &Expression, assignment: &Assignment) -> Value {
    let (function, arguments) = match expression {
        Expression::Column { name, .. } => return assignment[name],
        Expression::Literal { value, .. } => return value.as_i64().map(|value| value as Word),
        Expression::Call { function, arguments, .. } => (function, arguments),
    };
    let [left, right] = &arguments[..] else { panic!("the oracle does not know {expression:?}") };
    let (left, right) = (value(left, assignment)? as i64, value(right, assignment)? as i64);
    Some(match function.as_str() {
        "add" => (left + right) as Word,
        "lt" => Word::from(left < right),
        "le" => Word::from(left <= right),
        other => panic!("the oracle does not know {other}"),
    })
}
