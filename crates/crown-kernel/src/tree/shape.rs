//! What never changes about a tree: its nodes and edges with names resolved to positions, checked
//! once.
//!
//! Edge i leads from node i to its parent. The root has a virtual edge with one entry whose one
//! parent is always live, so that the root's semi-join view is a list like any other and a root row
//! is a witness by the same rule as every other row. A root that is not connex (no outputs) gets a
//! connex root without variables above it: then each tree has a connex root.

use super::ring::{Arithmetic, Value};
use crate::chunk::{Nulls, Word};
use crate::expression::Compiled;
use crate::mask::Bits;
use crate::plan::Mode;
use crate::types::DataType;

/// The row's link to the entry of its own edge; in connex nodes its place in the entry's list
/// follows.
pub(super) const LINK: usize = 0;

pub(super) struct NodeShape {
    pub name: String,
    pub variables: Vec<String>,
    /// Words per row: one per variable, and one for the NULL mask if some variable may be NULL.
    pub width: usize,
    pub nullable: Nulls,
    /// The type of each variable.
    pub types: Vec<DataType>,
    pub interned: Vec<usize>,
    pub twins: Twins,
    pub parent: Option<usize>,
    pub children: Vec<usize>,
    pub connex_children: Vec<usize>,
    /// The edges to the children once more, with what an update needs side by side.
    pub below: Vec<Below>,
    /// The edges, to the parent or to children, whose key is one column that is never NULL.
    pub keyed: Vec<Keyed>,
    pub connex: bool,
    pub relation: bool,
    pub anti: bool,
    /// The node hangs by an optional edge: a key without a row shows a phantom (see `optional`).
    pub optional: bool,
    /// Some child hangs by an optional edge.
    pub has_optional: bool,
    /// The key is all of a generalised parent, by a join or exists edge: the parent's rows come
    /// from here.
    pub guard: bool,
    /// The edge carries annotations: a join or optional edge of a node that is not connex, in mode
    /// bag or ring.
    pub annotated: bool,
    /// Some annotated edge or factor: the row's annotation is not just its multiplicity.
    pub weighted: bool,
    pub key: KeyShape,
    /// Where the parent row's link to this edge's entry is; its place in the list follows.
    pub link_in_parent: usize,
    /// The own column that is the key to the parent, if it is one column that is never NULL.
    pub key_column: Option<usize>,
    /// Links per row. The first is to the own edge's entry; in connex nodes the place in its list
    /// follows.
    pub links: usize,
    /// The link that counts the missing children.
    pub missing: Option<usize>,
    /// In connex nodes but the root the variables that are not in the key: what a row adds to a
    /// result that has its parent's row. They are kept in the entries' lists.
    pub fresh: Vec<usize>,
    /// Ring factors of the atom: component and expression.
    pub factors: Vec<(usize, Compiled)>,
    /// The values of the factors in a phantom, where all that they read is NULL.
    pub phantom_factors: Vec<Value>,
}

impl NodeShape {
    /// The node with this number, without variables, parent or children.
    pub fn empty(name: String, number: usize) -> NodeShape {
        NodeShape {
            name,
            variables: Vec::new(),
            width: 0,
            nullable: 0,
            types: Vec::new(),
            interned: Vec::new(),
            twins: Twins { first: number, bit: 1 },
            parent: None,
            children: Vec::new(),
            connex_children: Vec::new(),
            below: Vec::new(),
            keyed: Vec::new(),
            connex: false,
            relation: false,
            anti: false,
            optional: false,
            has_optional: false,
            guard: false,
            annotated: false,
            weighted: false,
            key: KeyShape::default(),
            link_in_parent: 0,
            key_column: None,
            links: 0,
            missing: None,
            fresh: Vec::new(),
            factors: Vec::new(),
            phantom_factors: Vec::new(),
        }
    }

    pub fn as_seen_from_above(&self, child: usize) -> Below {
        Below {
            child,
            link: self.link_in_parent,
            connex: self.connex,
            missed: match (self.optional, self.anti) {
                (true, _) => [0, 0],
                (false, false) => [1, 0],
                (false, true) => [0, 1],
            },
            optional: self.optional,
            guard: self.guard,
            annotated: self.annotated,
            column: self.key.single(&self.key.parent_columns),
        }
    }
}

/// The nodes that share their ids with a node: those of atoms that get the same rows.
#[derive(Clone, Copy)]
pub(super) struct Twins {
    /// The first of them, by which the ids are kept.
    pub first: usize,
    /// Which of them the node is.
    pub bit: u8,
}

/// The edge to a child.
#[derive(Clone, Copy)]
pub(super) struct Below {
    pub child: usize,
    /// As the child's `link_in_parent`.
    pub link: usize,
    pub connex: bool,
    /// What a row misses for this child: without a row of the child with its key, and with one.
    pub missed: [u32; 2],
    pub optional: bool,
    pub guard: bool,
    pub annotated: bool,
    /// The parent's column that is the key, if it is one column that is never NULL.
    pub column: Option<usize>,
}

/// An edge of a node by one column.
#[derive(Clone, Copy)]
pub(super) struct Keyed {
    pub edge: usize,
    pub column: usize,
    /// The row's link to its entry.
    pub link: usize,
}

/// How a key is read from a row of either side.
#[derive(Default)]
pub(super) struct KeyShape {
    pub child_columns: Vec<usize>,
    pub parent_columns: Vec<usize>,
    /// Some variable of the key may be NULL: the key's own NULL mask is its last word.
    pub nullable: bool,
}

impl KeyShape {
    pub fn width(&self) -> usize {
        self.child_columns.len() + usize::from(self.nullable)
    }

    /// The one column of those given that is the key, if there is one and it is never NULL.
    pub fn single(&self, columns: &[usize]) -> Option<usize> {
        match columns {
            [column] if !self.nullable => Some(*column),
            _ => None,
        }
    }

    /// Reads the key from a row's words (the NULL mask is the row's last word).
    #[inline(always)]
    pub fn read(&self, columns: &[usize], words: &[Word], key: &mut Vec<Word>) {
        key.clear();
        key.extend(columns.iter().map(|column| words[*column]));
        if self.nullable {
            let mask = words[words.len() - 1];
            key.push(mask.gather(columns.iter().copied().zip(0..)));
        }
    }
}

pub(super) struct Shape {
    pub nodes: Vec<NodeShape>,
    pub root: usize,
    pub atom_nodes: Vec<usize>,
    pub outputs: usize,
    pub mode: Mode,
    /// One per ring component; in mode bag the multiplicity; none in mode set.
    pub components: Vec<Arithmetic>,
    /// Where each component's sum is among the values of an entry, and how many these are.
    pub slots: Vec<usize>,
    pub slot_count: usize,
    /// There is one component, and it is not a float.
    pub one_exact_component: bool,
    pub residual: Vec<Compiled>,
    /// Comparisons that follow from the residual, by which lists may be kept in order.
    pub comparisons: Vec<Comparison>,
    pub always: bool,
    /// The connex part is the root alone, and its rows with their annotations are the result.
    pub direct: bool,
    /// Every variable of every atom is an output.
    pub full: bool,
}

/// `lower` + `offset` is below `upper`, or equal to it unless `strict`; both are output columns.
pub(super) struct Comparison {
    pub lower: usize,
    pub offset: i128,
    pub upper: usize,
    pub strict: bool,
    /// Of either column.
    pub data_types: [DataType; 2],
}
