//! What a tree holds and what its updates cost.

use super::Tree;

/// The size of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeStats {
    /// The name of the node in the plan.
    pub name: String,
    /// Rows of the node.
    pub rows: usize,
    /// Rows in the semi-join view.
    pub semi_join_rows: usize,
    /// Distinct keys towards the parent.
    pub keys: usize,
    /// Bytes of the rows, keys, lists and ordered indexes; the lists of parent rows are counted for the whole tree.
    pub bytes: usize,
}

/// The size of a tree and the work it has done.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeStats {
    /// The nodes, in the order of the plan.
    pub nodes: Vec<NodeStats>,
    /// Atom changes so far.
    pub updates: u64,
    /// Counters that changed so far; the average per update is the work ratio.
    pub counter_changes: u64,
    /// Rows of all atoms now.
    pub live_rows: usize,
    /// Bytes held by the tree.
    pub bytes: usize,
}

impl Tree {
    /// Measures the tree.
    pub fn stats(&self) -> TreeStats {
        let nodes: Vec<NodeStats> = (0..self.rows.len())
            .map(|node| NodeStats {
                name: self.shape.nodes[node].name.clone(),
                rows: self.rows[node].len - self.rows[node].phantoms,
                semi_join_rows: self.rows[node].in_semi_join - self.rows[node].phantoms,
                keys: self.edges[node].len(),
                bytes: self.ids[node].bytes()
                    + self.rows[node].bytes()
                    + self.edges[node].bytes()
                    + self.children[node].bytes()
                    + self.orders.bytes(node),
            })
            .collect();
        let bytes = nodes.iter().map(|node| node.bytes).sum::<usize>() + self.parents.bytes();
        TreeStats {
            nodes,
            updates: self.updates,
            counter_changes: self.counter_changes,
            live_rows: self.shape.atom_nodes.iter().map(|node| self.rows[*node].len - self.rows[*node].phantoms).sum(),
            bytes,
        }
    }
}
