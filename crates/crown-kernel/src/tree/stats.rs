//! What a tree holds and what its updates cost.

#[derive(Clone, Debug, PartialEq)]
pub struct NodeStats {
    pub name: String,
    /// Rows of the relation, and those of them in the semi-join view.
    pub rows: usize,
    pub semi_join_rows: usize,
    /// Distinct keys towards the parent.
    pub keys: usize,
    pub bytes: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TreeStats {
    pub nodes: Vec<NodeStats>,
    /// Calls of `apply`.
    pub updates: u64,
    /// Counters that changed; live enclosureness is counter changes per update.
    pub counter_changes: u64,
    pub bytes: usize,
}
