//! The order in which enumeration visits the connex nodes, fixed once per node that can hold a
//! witness.
//!
//! From a witness the walk goes up to the root over live rows, then down into every other branch
//! over the semi-join views (paper, Algorithm 5). Each step finds its list through a row of an
//! earlier step, and every list it meets is not empty: that makes the delay constant.

use super::ordered::{Bound, OrderShape, Range};
use super::shape::{Shape, LINK};
use crate::mask::Bits;

pub(super) struct Step {
    pub node: usize,
    /// The edge whose entry has the list, and whether it is walked from child to parent.
    pub edge: usize,
    pub up: bool,
    /// Its rows are the witnesses.
    pub is_first: bool,
    /// The earlier step whose row leads to the entry, and the row's link to it.
    pub source: usize,
    pub link: usize,
    /// Output columns that the step's rows determine, with their position in the row.
    pub columns: Vec<(usize, usize)>,
    /// The same columns with their position in the items of the child's lists, on the way down.
    pub listed: Vec<(usize, usize)>,
    /// Whether some of these may be NULL.
    pub nullable: bool,
    /// The next step, if it starts from this step's row.
    pub feeds: Option<usize>,
    /// Only the rows of the list in this range matter.
    pub range: Option<Range>,
}

/// How the two innermost steps go together, when they can be walked at once: both over lists that
/// give one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pairs {
    None,
    /// A row of the outer one leads to the list of the inner one.
    Chain,
    /// Both lists hang on an earlier step.
    Product,
}

pub(super) struct Program {
    pub pairs: Pairs,
    pub steps: Vec<Step>,
    pub nullable: bool,
    /// Some step has a range.
    pub ranged: bool,
}

impl Program {
    /// The walk from rows of `start`, a connex node. Lists that it wants in order are added to
    /// `orders`.
    pub fn new(shape: &Shape, stage_outputs: &[String], start: usize, orders: &mut Vec<OrderShape>) -> Program {
        let mut assigned = vec![false; stage_outputs.len()];
        let mut program = Program { pairs: Pairs::None, steps: Vec::new(), nullable: false, ranged: false };
        program.add(
            shape,
            stage_outputs,
            &mut assigned,
            Step {
                node: start,
                edge: start,
                up: false,
                is_first: true,
                source: 0,
                link: 0,
                columns: Vec::new(),
                listed: Vec::new(),
                nullable: false,
                feeds: None,
                range: None,
            },
        );
        let mut path = vec![start];
        let mut node = start;
        while let Some(parent) = shape.nodes[node].parent {
            program.add(
                shape,
                stage_outputs,
                &mut assigned,
                Step {
                    node: parent,
                    edge: node,
                    up: true,
                    is_first: false,
                    source: path.len() - 1,
                    link: LINK,
                    columns: Vec::new(),
                    listed: Vec::new(),
                    nullable: false,
                    feeds: None,
                    range: None,
                },
            );
            path.push(parent);
            node = parent;
        }
        for step in 0..path.len() {
            program.descend(shape, stage_outputs, &mut assigned, step, &path);
        }
        program.pairs = program.pairs();
        for step in 1..program.steps.len() {
            program.steps[step].range = program.range(shape, step, orders);
            program.ranged |= program.steps[step].range.is_some();
        }
        program
    }

    /// The bounds of a step's rows by the rows of earlier steps, if its list is in an order that
    /// they bound. A list has one order: that of the first comparison that wants one.
    fn range(&self, shape: &Shape, index: usize, orders: &mut Vec<OrderShape>) -> Option<Range> {
        let step = &self.steps[index];
        let mut known = orders.iter().position(|order| (order.edge, order.up) == (step.edge, step.up));
        let mut bounds = Vec::new();
        for comparison in &shape.comparisons {
            let [lower, upper] = [comparison.lower, comparison.upper];
            for (own, other, above) in [(upper, lower, true), (lower, upper, false)] {
                let Some((_, position)) = step.columns.iter().find(|(column, _)| *column == own) else { continue };
                let Some((source, column)) = self.place_of(other, index) else { continue };
                let nullable = |node: usize, position: usize| shape.nodes[node].nullable.has(position);
                let [data_type, other_type] =
                    [comparison.data_types[usize::from(above)], comparison.data_types[usize::from(!above)]];
                let order = *known.get_or_insert_with(|| {
                    orders.push(OrderShape {
                        edge: step.edge,
                        up: step.up,
                        column: *position,
                        nullable: nullable(step.node, *position),
                        data_type,
                    });
                    orders.len() - 1
                });
                if orders[order].column == *position {
                    bounds.push(Bound {
                        source,
                        column,
                        nullable: nullable(self.steps[source].node, column),
                        data_type: other_type,
                        above,
                        offset: comparison.offset + i128::from(comparison.strict),
                    });
                }
            }
        }
        (!bounds.is_empty()).then_some(Range { bounds })
    }

    /// The step before `end` whose rows have an output column, and its position in them.
    fn place_of(&self, column: usize, end: usize) -> Option<(usize, usize)> {
        let own =
            |step: &Step| step.columns.iter().find(|(output, _)| *output == column).map(|(_, position)| *position);
        self.steps[..end].iter().enumerate().find_map(|(index, step)| Some((index, own(step)?)))
    }

    fn pairs(&self) -> Pairs {
        match &self.steps[..] {
            [_, .., outer, inner] if !inner.up && inner.listed.len() == 1 && inner.columns.len() == 1 => {
                if inner.source == self.steps.len() - 2 {
                    Pairs::Chain
                } else if !outer.up {
                    Pairs::Product
                } else {
                    Pairs::None
                }
            }
            _ => Pairs::None,
        }
    }

    fn descend(&mut self, shape: &Shape, outputs: &[String], assigned: &mut [bool], source: usize, path: &[usize]) {
        let node = self.steps[source].node;
        for child in shape.nodes[node].connex_children.iter().filter(|child| !path.contains(child)) {
            let step = self.add(
                shape,
                outputs,
                assigned,
                Step {
                    node: *child,
                    edge: *child,
                    up: false,
                    is_first: false,
                    source,
                    link: shape.nodes[*child].link_in_parent,
                    columns: Vec::new(),
                    listed: Vec::new(),
                    nullable: false,
                    feeds: None,
                    range: None,
                },
            );
            self.descend(shape, outputs, assigned, step, path);
        }
    }

    fn add(&mut self, shape: &Shape, outputs: &[String], assigned: &mut [bool], mut step: Step) -> usize {
        let node = &shape.nodes[step.node];
        for (column, name) in outputs.iter().enumerate().filter(|(column, _)| !assigned[*column]) {
            if let Some(position) = node.variables.iter().position(|variable| variable == name) {
                step.columns.push((column, position));
                step.nullable |= node.nullable.has(position);
                if let Some(place) = node.fresh.iter().position(|fresh| *fresh == position) {
                    step.listed.push((column, place));
                }
            }
        }
        debug_assert!(
            step.up || step.is_first || step.listed.len() == step.columns.len(),
            "the parent's columns come first"
        );
        for (column, _) in &step.columns {
            assigned[*column] = true;
        }
        self.nullable |= step.nullable;
        let index = self.steps.len();
        if index > 0 && step.source == index - 1 {
            self.steps[index - 1].feeds = Some(index);
        }
        self.steps.push(step);
        index
    }
}
