//! Random trees of every valid shape, and streams of updates for them.

use super::harness::{run, Update};
use super::oracle::{variables, Row};
use crate::plan::*;
use crate::random::Random;

pub fn column(name: &str) -> Expression {
    Expression::Column { name: name.into(), data_type: "int64".into() }
}

/// The columns of a table in their order: atoms of one table and width are twins, though the tests
/// give each its own rows.
pub fn bind(variables: &[String]) -> Vec<Binding> {
    let binding = |(place, variable): (usize, &String)| Binding {
        variable: variable.clone(),
        expression: column(&format!("c{place}")),
    };
    variables.iter().enumerate().map(binding).collect()
}

struct Builder<'a> {
    random: &'a mut Random,
    stage: TreeStage,
    limit: usize,
}

pub fn stage(random: &mut Random) -> TreeStage {
    let mode = [Mode::Set, Mode::Bag, Mode::Ring][random.below(3) as usize];
    let mut builder = Builder {
        stage: TreeStage {
            id: "$tree".into(),
            variables: Vec::new(),
            atoms: Vec::new(),
            nodes: Vec::new(),
            outputs: Vec::new(),
            mode,
            ring: Vec::new(),
            residual: Vec::new(),
            ordered: Vec::new(),
            always: false,
        },
        limit: 1 + random.below(6) as usize,
        random,
    };
    let connex = builder.random.chance(85);
    builder.node(None, EdgeKind::Join, connex, 0);
    let Builder { mut stage, random, .. } = builder;
    for node in stage.nodes.iter().filter(|node| node.connex) {
        for name in &node.variables {
            if !stage.outputs.contains(name) {
                stage.outputs.push(name.clone());
            }
        }
    }
    random.shuffle(&mut stage.outputs);
    if mode == Mode::Ring {
        let joined = joined_atoms(&stage);
        for index in 0..random.below(3) {
            let mut factors = Vec::new();
            for atom in &joined {
                let node = stage.nodes.iter().position(|node| node.atom == Some(*atom)).unwrap();
                let mut names = variables(&stage, node);
                if stage.nodes[node].edge == EdgeKind::Optional {
                    names.retain(|name| !stage.nodes[node].key.contains(name));
                }
                if !names.is_empty() && random.chance(40) {
                    let name = &names[random.below(names.len() as u64) as usize];
                    factors.push(Factor { atom: *atom, expression: column(name) });
                }
            }
            stage.ring.push(RingComponent { name: format!("c{index}"), factors, data_type: "int64".into() });
        }
        stage.always = stage.outputs.is_empty() && random.chance(50);
    }
    if !stage.outputs.is_empty() && random.chance(15) {
        let name = &stage.outputs[random.below(stage.outputs.len() as u64) as usize];
        stage.residual.push(Expression::Column { name: name.clone(), data_type: "boolean".into() });
        stage.variables.iter_mut().find(|variable| variable.name == *name).unwrap().data_type = "boolean".into();
        let typed =
            |factor: &Factor| matches!(&factor.expression, Expression::Column { name: other, .. } if other == name);
        for component in &mut stage.ring {
            component.factors.retain(|factor| !typed(factor));
        }
    }
    stage
}

fn joined_atoms(stage: &TreeStage) -> Vec<usize> {
    let mut joined = vec![false; stage.nodes.len()];
    for (index, node) in stage.nodes.iter().enumerate() {
        let shows = matches!(node.edge, EdgeKind::Join | EdgeKind::Optional);
        joined[index] = node.parent.is_none_or(|parent| joined[parent] && shows);
    }
    stage.nodes.iter().zip(joined).filter(|(_, joined)| *joined).filter_map(|(node, _)| node.atom).collect()
}

impl Builder<'_> {
    fn fresh(&mut self, optional: bool) -> String {
        let name = format!("v{}", self.stage.variables.len());
        let nullable = optional || self.random.chance(15);
        self.stage.variables.push(Variable { name: name.clone(), data_type: "int64".into(), nullable });
        name
    }

    /// Adds a node and what hangs below it; returns its index.
    fn node(&mut self, parent: Option<(usize, Vec<String>)>, edge: EdgeKind, connex: bool, depth: usize) -> usize {
        let guarding = parent.as_ref().is_some_and(|(parent, key)| {
            self.stage.nodes[*parent].atom.is_none() && key.len() == self.stage.nodes[*parent].variables.len()
        });
        let (parent, key) = parent.map_or((None, Vec::new()), |(parent, key)| (Some(parent), key));
        let mut names = key.clone();
        for _ in 0..self.random.below(if depth == 0 { 3 } else { 2 + u64::from(!guarding) }) {
            let name = self.fresh(edge == EdgeKind::Optional);
            names.push(name);
        }
        self.random.shuffle(&mut names);
        let index = self.stage.nodes.len();
        let optional = edge == EdgeKind::Optional;
        let generalised = depth < 3 && !optional && self.random.chance(if depth == 0 { 40 } else { 15 });
        let atom = (!generalised).then(|| {
            self.stage.atoms.push(Atom {
                name: format!("a{index}"),
                source: if self.random.chance(70) { "t" } else { "u" }.into(),
                bindings: bind(&names),
                filter: None,
                not_null: if optional { key.clone() } else { Vec::new() },
            });
            self.stage.atoms.len() - 1
        });
        let mut listed = names.clone();
        self.random.shuffle(&mut listed);
        let variables = if generalised { names.clone() } else { listed };
        self.stage.nodes.push(Node { name: format!("n{index}"), variables, atom, parent, key, connex, edge });
        if generalised {
            let mut guard = names.clone();
            self.random.shuffle(&mut guard);
            self.child(index, guard, connex, depth, true);
        }
        while depth < 4 && self.stage.nodes.len() < self.limit {
            let mut key: Vec<String> = names.iter().filter(|_| self.random.chance(60)).cloned().collect();
            if generalised && self.random.chance(60) {
                key = names.clone();
            }
            self.random.shuffle(&mut key);
            self.child(index, key, connex, depth, false);
            if self.random.chance(30) {
                break;
            }
        }
        index
    }

    fn child(&mut self, parent: usize, key: Vec<String>, connex: bool, depth: usize, guard: bool) {
        let connex = connex && self.random.chance(60);
        let optional = self.stage.nodes[parent].edge == EdgeKind::Optional;
        if optional && key.iter().all(|name| self.stage.nodes[parent].key.contains(name)) {
            return;
        }
        let edge = match self.random.below(10) {
            _ if optional => EdgeKind::Optional,
            4 | 5 if !guard => EdgeKind::Optional,
            _ if connex => EdgeKind::Join,
            0 | 1 => EdgeKind::Exists,
            2 | 3 if !guard => EdgeKind::Anti,
            _ => EdgeKind::Join,
        };
        self.node(Some((parent, key)), edge, connex, depth + 1);
    }
}

/// Updates (atom, row, weight) of one of several kinds, never removing what is not there.
pub fn updates(stage: &TreeStage, random: &mut Random, length: usize) -> Vec<Update> {
    let kind = random.below(5);
    let domain = 1 + random.below(3);
    let mut present: Vec<(usize, Row)> = Vec::new();
    let mut stream = Vec::new();
    let remove = |present: &mut Vec<(usize, Row)>, index: usize, stream: &mut Vec<Update>| {
        let (atom, row) = present.remove(index);
        stream.push(Update { atom, row, weight: -1 });
    };
    for step in 0..length {
        let window = 3 + length / 4;
        let deletes = match kind {
            0 => false,
            1 => present.len() >= window,
            2 => present.len() > 2 && random.chance(45),
            3 => step % 7 > 3 && !present.is_empty(),
            _ => present.len() > 6 && random.chance(50),
        };
        if deletes {
            let index = if kind == 1 { 0 } else { random.below(present.len() as u64) as usize };
            remove(&mut present, index, &mut stream);
        }
        let atom = random.below(stage.atoms.len() as u64) as usize;
        let node = stage.nodes.iter().position(|node| node.atom == Some(atom)).unwrap();
        let row: Row = variables(stage, node)
            .iter()
            .map(|name| {
                let nullable = stage.variables.iter().any(|variable| variable.name == *name && variable.nullable)
                    && !stage.atoms[atom].not_null.contains(name);
                (!(nullable && random.chance(25))).then(|| random.below(domain + 1))
            })
            .collect();
        let copies = if kind == 4 && random.chance(30) { 2 } else { 1 };
        for _ in 0..copies {
            present.push((atom, row.clone()));
        }
        stream.push(Update { atom, row, weight: copies });
    }
    if random.chance(60) {
        random.shuffle(&mut present);
        while !present.is_empty() {
            remove(&mut present, 0, &mut stream);
        }
    }
    stream
}

#[test]
fn oracle_random_trees_after_every_update() {
    let first = std::env::var("CROWN_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = first.map_or(0..300, |seed| seed..seed + 1);
    for seed in seeds {
        let mut random = Random(seed);
        let stage = stage(&mut random);
        let length = 10 + random.below(30) as usize;
        let stream = updates(&stage, &mut random, length);
        let outcome = std::panic::catch_unwind(|| run(&stage, &stream));
        assert!(outcome.is_ok(), "fails with CROWN_SEED={seed}: {:#?}", stage.nodes);
    }
}
