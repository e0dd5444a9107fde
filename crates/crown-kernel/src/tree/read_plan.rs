//! A tree of the plan read into its shape: names become positions, and what the kernel relies on is
//! checked.

use super::ids::MOST_TWINS;
use super::optional::PHANTOM;
use super::ring::Arithmetic;
use super::shape::{Comparison, KeyShape, Keyed, NodeShape, Shape, Twins, LINK};
use crate::chunk::Nulls;
use crate::error::{KernelError, Result};
use crate::expression::Compiled;
use crate::mask::{self, Bits};
use crate::plan::{self, Mode};
use crate::store::interner::Interner;
use crate::types::DataType;
use std::collections::HashMap;

fn malformed(message: impl Into<String>) -> KernelError {
    KernelError::plan("CROWN-PLAN-MALFORMED", message)
}

fn require(condition: bool, message: impl FnOnce() -> String) -> Result<()> {
    if condition {
        Ok(())
    } else {
        Err(malformed(message()))
    }
}

impl Shape {
    /// Resolves the names of a tree of the plan, and checks it.
    pub fn new(stage: &plan::TreeStage) -> Result<Shape> {
        let variables = Variables::new(stage)?;
        let components = match stage.mode {
            Mode::Set => Vec::new(),
            Mode::Bag => vec![Arithmetic::Integer],
            Mode::Ring => {
                stage.ring.iter().map(|component| Arithmetic::parse(&component.data_type)).collect::<Result<_>>()?
            }
        };
        require(stage.mode == Mode::Ring || stage.ring.is_empty(), || "components without mode ring".into())?;
        require(!stage.always || (stage.mode == Mode::Ring && stage.outputs.is_empty()), || {
            "`always` is for mode ring without outputs".into()
        })?;
        let mut nodes = read_nodes(stage, &variables)?;
        if stage.mode != Mode::Bag {
            leave_out_of_enumeration(&mut nodes);
        }
        let root = add_connex_root(&mut nodes);
        link(&mut nodes, !components.is_empty())?;
        let atom_nodes = place_atoms(stage, &nodes)?;
        find_twins(stage, &mut nodes);
        read_factors(stage, &components, &variables, &atom_nodes, &mut nodes)?;
        check_outputs(stage, &nodes)?;
        let typed_outputs: Vec<(String, DataType)> =
            stage.outputs.iter().map(|name| Ok((name.clone(), variables.get(name)?.0))).collect::<Result<_>>()?;
        let residual =
            stage.residual.iter().map(|condition| Compiled::new(condition, &typed_outputs)).collect::<Result<_>>()?;
        let comparisons = read_comparisons(stage, &typed_outputs)?;
        let full = stage.atoms.iter().all(|atom| atom.bindings.iter().all(|b| stage.outputs.contains(&b.variable)));
        let connex = nodes.iter().filter(|node| node.connex).count();
        let direct = stage.mode == Mode::Ring && connex == 1 && stage.residual.is_empty() && !stage.always;
        let slots_before = |end: usize| components[..end].iter().map(|component| component.slots()).sum();
        Ok(Shape {
            nodes,
            root,
            atom_nodes,
            outputs: stage.outputs.len(),
            mode: stage.mode,
            slots: (0..components.len()).map(slots_before).collect(),
            slot_count: slots_before(components.len()),
            one_exact_component: matches!(components[..], [Arithmetic::Integer | Arithmetic::Decimal]),
            components,
            residual,
            comparisons,
            always: stage.always,
            direct,
            full,
        })
    }
}

struct Variables(HashMap<String, (DataType, bool)>);

impl Variables {
    fn new(stage: &plan::TreeStage) -> Result<Variables> {
        let mut variables = HashMap::new();
        for variable in &stage.variables {
            variables.insert(variable.name.clone(), (DataType::parse(&variable.data_type)?, variable.nullable));
        }
        Ok(Variables(variables))
    }

    fn get(&self, name: &str) -> Result<(DataType, bool)> {
        self.0.get(name).copied().ok_or_else(|| malformed(format!("unknown variable '{name}'")))
    }
}

fn atom_variables(atom: &plan::Atom) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for binding in &atom.bindings {
        if !names.contains(&binding.variable) {
            names.push(binding.variable.clone());
        }
    }
    names
}

fn read_nodes(stage: &plan::TreeStage, variables: &Variables) -> Result<Vec<NodeShape>> {
    require(!stage.nodes.is_empty(), || format!("stage '{}' has no nodes", stage.id))?;
    let mut nodes: Vec<NodeShape> = Vec::new();
    for (index, node) in stage.nodes.iter().enumerate() {
        require(node.parent.is_none() == (index == 0), || format!("node '{}': only the first is the root", node.name))?;
        require(node.parent.is_none_or(|parent| parent < index), || {
            format!("node '{}' comes before its parent", node.name)
        })?;
        let names = match node.atom {
            Some(atom) => {
                let atom = stage.atoms.get(atom).ok_or_else(|| malformed(format!("no atom {atom}")))?;
                let names = atom_variables(atom);
                let same =
                    names.len() == node.variables.len() && names.iter().all(|name| node.variables.contains(name));
                require(same, || format!("node '{}' has other variables than its atom", node.name))?;
                names
            }
            None => node.variables.clone(),
        };
        let mut distinct = names.clone();
        distinct.sort();
        distinct.dedup();
        require(distinct.len() == names.len(), || format!("node '{}' repeats a variable", node.name))?;
        let types: Vec<(DataType, bool)> = names.iter().map(|name| variables.get(name)).collect::<Result<_>>()?;
        let optional = node.edge == plan::EdgeKind::Optional;
        let mut nullable: Nulls = mask::of((0..types.len()).filter(|column| types[*column].1));
        if optional {
            check_optional(stage, node, &names, nullable)?;
            nullable |= PHANTOM;
        }
        let key = match node.parent {
            Some(parent) => read_key(node, &names, &nodes[parent], variables)?,
            None => KeyShape::default(),
        };
        if let Some(parent) = node.parent {
            let shows = matches!(node.edge, plan::EdgeKind::Join | plan::EdgeKind::Optional);
            require(!node.connex || (nodes[parent].connex && shows), || {
                format!("node '{}' is connex under a node or by an edge that is not", node.name)
            })?;
            let above = &stage.nodes[parent];
            let by_own = node.key.iter().any(|name| !above.key.contains(name));
            require(!nodes[parent].optional || (optional && by_own), || {
                format!(
                    "node '{}' hangs below an optional node, but not by an optional edge and its own columns",
                    node.name
                )
            })?;
        }
        require(!node.connex || names.iter().all(|name| stage.outputs.contains(name)), || {
            format!("connex node '{}' has a variable that is not an output", node.name)
        })?;
        nodes.push(NodeShape {
            width: names.len() + usize::from(nullable != 0),
            nullable,
            types: types.iter().map(|(data_type, _)| *data_type).collect(),
            interned: (0..names.len()).filter(|i| node.atom.is_some() && types[*i].0.interned()).collect(),
            variables: names,
            parent: node.parent,
            connex: node.connex,
            relation: node.atom.is_some(),
            anti: node.edge == plan::EdgeKind::Anti,
            optional,
            guard: matches!(node.edge, plan::EdgeKind::Join | plan::EdgeKind::Exists),
            annotated: matches!(node.edge, plan::EdgeKind::Join | plan::EdgeKind::Optional) && !node.connex,
            key,
            ..NodeShape::empty(node.name.clone(), index)
        });
    }
    Ok(nodes)
}

/// Whether phantoms of the node can be told from its rows, and what they show is known to be NULL
/// at times.
fn check_optional(stage: &plan::TreeStage, node: &plan::Node, names: &[String], nullable: Nulls) -> Result<()> {
    require(node.atom.is_some() && node.parent.is_some(), || format!("optional node '{}' has no atom", node.name))?;
    let not_null = node.atom.map_or(&[][..], |atom| &stage.atoms[atom].not_null);
    for (bit, name) in names.iter().enumerate() {
        let may_be_null = nullable.has(bit);
        if node.key.contains(name) {
            require(!may_be_null || not_null.contains(name), || format!("NULL in '{name}' would match NULL"))?;
        } else {
            require(may_be_null, || format!("'{name}' is optional, but said never to be NULL"))?;
        }
    }
    let factors = stage.ring.iter().flat_map(|component| &component.factors);
    for factor in factors.filter(|factor| Some(factor.atom) == node.atom) {
        let reads_key = node.key.iter().any(|name| reads(&factor.expression, name));
        require(!reads_key, || format!("a factor of optional node '{}' reads its key", node.name))?;
    }
    Ok(())
}

fn reads(expression: &plan::Expression, column: &str) -> bool {
    match expression {
        plan::Expression::Column { name, .. } => name == column,
        plan::Expression::Call { arguments, .. } => arguments.iter().any(|argument| reads(argument, column)),
        plan::Expression::Literal { .. } => false,
    }
}

fn read_key(node: &plan::Node, names: &[String], parent: &NodeShape, variables: &Variables) -> Result<KeyShape> {
    let position = |list: &[String], name: &String| {
        list.iter()
            .position(|other| other == name)
            .ok_or_else(|| malformed(format!("key variable '{name}' is not on both sides of '{}'", node.name)))
    };
    let mut nullable = false;
    for name in &node.key {
        nullable |= variables.get(name)?.1;
    }
    for name in names.iter().filter(|_| matches!(node.edge, plan::EdgeKind::Join | plan::EdgeKind::Optional)) {
        require(node.key.contains(name) || !parent.variables.contains(name), || {
            format!("'{name}' is on both sides of '{}' but not in its key", node.name)
        })?;
    }
    Ok(KeyShape {
        child_columns: node.key.iter().map(|name| position(names, name)).collect::<Result<_>>()?,
        parent_columns: node.key.iter().map(|name| position(&parent.variables, name)).collect::<Result<_>>()?,
        nullable,
    })
}

/// Nodes that add no variable to their parent's are conditions on its rows, or factors of them: to
/// count their rows is enough, and no result has to walk over them. (In mode bag their copies would
/// weigh on every result.)
fn leave_out_of_enumeration(nodes: &mut [NodeShape]) {
    for index in (1..nodes.len()).rev() {
        let below_counts = nodes.iter().all(|node| node.parent != Some(index) || !node.connex);
        let node = &mut nodes[index];
        if node.connex && below_counts && node.key.child_columns.len() == node.variables.len() {
            (node.connex, node.annotated) = (false, true);
        }
    }
}

/// Returns the connex root's index, adding it if there is none.
fn add_connex_root(nodes: &mut Vec<NodeShape>) -> usize {
    if nodes[0].connex {
        return 0;
    }
    let root = nodes.len();
    let top = &mut nodes[0];
    (top.parent, top.anti, top.guard, top.annotated) = (Some(root), false, true, true);
    nodes.push(NodeShape { connex: true, ..NodeShape::empty("[]".into(), root) });
    root
}

fn link(nodes: &mut [NodeShape], annotate: bool) -> Result<()> {
    for index in 0..nodes.len() {
        let Some(parent) = nodes[index].parent else { continue };
        nodes[index].link_in_parent = LINK + 1 + usize::from(nodes[parent].connex) + 2 * nodes[parent].children.len();
        let all = nodes[index].key.parent_columns.len() == nodes[parent].variables.len();
        let generalised = !nodes[parent].relation;
        let node = &mut nodes[index];
        node.guard &= generalised && all;
        node.annotated &= annotate;
        node.key_column = node.key.single(&node.key.child_columns);
        let (connex, annotated, optional) = (node.connex, node.annotated, node.optional);
        nodes[parent].weighted |= annotated;
        nodes[parent].has_optional |= optional;
        nodes[parent].children.push(index);
        let below = nodes[index].as_seen_from_above(index);
        nodes[parent].below.push(below);
        if connex {
            nodes[parent].connex_children.push(index);
        }
    }
    for index in 0..nodes.len() {
        let guarded = nodes[index].children.iter().any(|child| nodes[*child].guard);
        let node = &mut nodes[index];
        require(node.relation || guarded, || format!("node '{}' has neither an atom nor a guard", node.name))?;
        node.links = LINK + 1 + usize::from(node.connex) + 2 * node.children.len();
        let own = node.key_column.map(|column| Keyed { edge: index, column, link: LINK });
        let below = node
            .below
            .iter()
            .filter_map(|below| Some(Keyed { edge: below.child, column: below.column?, link: below.link }));
        node.keyed = own.into_iter().chain(below).collect();
        if !node.children.is_empty() {
            node.missing = Some(node.links);
            node.links += 1;
        }
        if node.parent.is_some() && node.connex {
            node.fresh = (0..node.variables.len()).filter(|column| !node.key.child_columns.contains(column)).collect();
        }
    }
    Ok(())
}

fn place_atoms(stage: &plan::TreeStage, nodes: &[NodeShape]) -> Result<Vec<usize>> {
    let mut places = vec![usize::MAX; stage.atoms.len()];
    for (index, node) in stage.nodes.iter().enumerate() {
        if let Some(atom) = node.atom {
            require(places[atom] == usize::MAX, || format!("atom '{}' has two nodes", stage.atoms[atom].name))?;
            places[atom] = index;
        }
    }
    let missing = places.iter().position(|place| *place == usize::MAX);
    require(missing.is_none() && nodes.len() >= stage.nodes.len(), || "an atom has no node".into())?;
    Ok(places)
}

/// Atoms that read the same columns of one source under the same conditions have the same rows.
fn find_twins(stage: &plan::TreeStage, nodes: &mut [NodeShape]) {
    let mut families: Vec<(&plan::Atom, Nulls, usize, usize)> = Vec::new();
    for (index, node) in stage.nodes.iter().enumerate() {
        let Some(atom) = node.atom.map(|atom| &stage.atoms[atom]) else { continue };
        let nullable = nodes[index].nullable;
        let known = families
            .iter_mut()
            .find(|(other, mask, _, members)| *mask == nullable && *members < MOST_TWINS && read_the_same(atom, other));
        match known {
            Some((_, _, first, members)) => {
                nodes[index].twins = Twins { first: *first, bit: 1 << *members };
                *members += 1;
            }
            None => families.push((atom, nullable, index, 1)),
        }
    }
}

fn read_the_same(left: &plan::Atom, right: &plan::Atom) -> bool {
    // The variables' names differ; which columns are bound to the same one must not.
    let shape = |atom: &plan::Atom| {
        let names = atom_variables(atom);
        let place = |name: &String| names.iter().position(|other| other == name);
        let not_null: Vec<_> = atom.not_null.iter().map(place).collect();
        let bindings: Vec<_> = atom.bindings.iter().map(|binding| place(&binding.variable)).collect();
        (bindings, not_null)
    };
    let same = |(left, right): (&plan::Binding, &plan::Binding)| left.expression == right.expression;
    left.source == right.source
        && left.filter == right.filter
        && shape(left) == shape(right)
        && left.bindings.iter().zip(&right.bindings).all(same)
}

fn read_factors(
    stage: &plan::TreeStage,
    components: &[Arithmetic],
    variables: &Variables,
    atom_nodes: &[usize],
    nodes: &mut [NodeShape],
) -> Result<()> {
    for (component, ring) in stage.ring.iter().enumerate() {
        let mut scale = 0;
        for factor in &ring.factors {
            let place = *atom_nodes.get(factor.atom).ok_or_else(|| malformed("a factor of no atom"))?;
            let node = &mut nodes[place];
            let columns: Vec<(String, DataType)> =
                node.variables.iter().map(|name| Ok((name.clone(), variables.get(name)?.0))).collect::<Result<_>>()?;
            let compiled = Compiled::new(&factor.expression, &columns)?;
            match compiled.data_type() {
                DataType::Float32 | DataType::Float64 => require(components[component] == Arithmetic::Float, || {
                    format!("component '{}' is exact but has a float factor", ring.name)
                })?,
                DataType::Decimal { scale: own, .. } => scale += i32::from(own),
                DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {}
                other => return Err(malformed(format!("component '{}' has a factor of type {other:?}", ring.name))),
            }
            let repeated = node.factors.iter().any(|(other, _)| *other == component);
            require(!repeated, || format!("component '{}' has two factors of one atom", ring.name))?;
            if node.optional {
                let (mut interner, nothing) = (Interner::default(), vec![0; node.variables.len()]);
                let word = compiled.evaluate(&nothing, mask::of(0..nothing.len()), &mut interner)?;
                let value = components[component].factor(word, compiled.data_type(), &interner)?;
                node.phantom_factors.push(value);
            }
            node.factors.push((component, compiled));
            node.weighted = true;
        }
        let shown = if let DataType::Decimal { scale, .. } = DataType::parse(&ring.data_type)? { scale } else { 0 };
        require(components[component] == Arithmetic::Float || i32::from(shown) == scale, || {
            format!("component '{}' has a scale other than its factors'", ring.name)
        })?;
    }
    Ok(())
}

fn read_comparisons(stage: &plan::TreeStage, outputs: &[(String, DataType)]) -> Result<Vec<Comparison>> {
    let find = |name: &String| {
        let column = outputs.iter().position(|(other, _)| other == name);
        let column = column.ok_or_else(|| malformed(format!("'{name}' is compared but is no output")))?;
        require(!outputs[column].1.interned(), || format!("'{name}' is of a type that has no ordered words"))?;
        Ok(column)
    };
    let read = |comparison: &plan::Comparison| {
        let (lower, upper) = (find(&comparison.lower)?, find(&comparison.upper)?);
        Ok(Comparison {
            lower,
            offset: i128::from(comparison.offset),
            upper,
            strict: comparison.strict,
            data_types: [outputs[lower].1, outputs[upper].1],
        })
    };
    stage.ordered.iter().map(read).collect()
}

fn check_outputs(stage: &plan::TreeStage, nodes: &[NodeShape]) -> Result<()> {
    for name in &stage.outputs {
        let placed = nodes.iter().any(|node| node.connex && node.variables.contains(name));
        require(placed, || format!("output '{name}' is in no connex node"))?;
    }
    Ok(())
}
