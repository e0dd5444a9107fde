//! Looking ahead: the memory that coming changes will touch is asked for while earlier ones are applied.
//!
//! An update is a chain of dependent reads (index slot, row, entry, list), each likely to miss the cache when the state is large. A single update
//! can't hide that; neighbouring updates can. So each coming change is taken one link of its chain further at a time. Nothing
//! here changes state or is needed for correctness: ids that are out of date only ask for memory in vain.

use super::hash::hash_words;
use super::shape::LINK;
use super::Tree;
use crate::chunk::Word;

/// How far ahead each link of the chain is asked for.
const DISTANCES: [usize; 4] = [8, 6, 4, 2];

/// Keys up to this many words are looked ahead for.
const WIDEST: usize = 4;

impl Tree {
    /// To be called before each `apply` of a batch: `coming(n)` gives the atom, words and weight of the change n
    /// places later, if there is one. Rows with NULLs may be left out.
    #[inline]
    pub fn look_ahead<'a>(&self, coming: impl Fn(usize) -> Option<(usize, &'a [Word], i64)>) {
        for (depth, distance) in DISTANCES.into_iter().enumerate() {
            let Some((atom, words, weight)) = coming(distance) else { continue };
            let node = self.shape.atom_nodes[atom];
            if self.shape.nodes[node].nullable != 0 || words.len() > WIDEST {
                continue;
            }
            if weight > 0 {
                self.before_insertion(node, words, depth);
            } else {
                self.before_deletion(node, words, depth);
            }
        }
    }

    #[inline]
    fn before_insertion(&self, node: usize, words: &[Word], depth: usize) {
        if depth == 0 {
            self.rows[node].prefetch_slot(hash_words(words));
        }
        let shape = &self.shape.nodes[node];
        for edge in shape.children.iter().copied().chain(shape.parent.map(|_| node)) {
            let key_shape = &self.shape.nodes[edge].key;
            let columns = if edge == node { &key_shape.child_columns } else { &key_shape.parent_columns };
            let mut key = [0; WIDEST];
            for (word, column) in key.iter_mut().zip(columns) {
                *word = words[*column];
            }
            let hash = hash_words(&key[..columns.len()]);
            if depth == 0 {
                self.edges[edge].prefetch_slot(hash);
                continue;
            }
            let Some(entry) = self.edges[edge].guess(hash) else { continue };
            if depth == 1 {
                self.edges[edge].prefetch(entry);
                continue;
            }
            let state = &self.edges[edge].entries[entry as usize];
            if edge != node {
                self.parents.prefetch(&state.parents, state.parents.len);
            } else if shape.connex {
                self.children[node].prefetch(&state.children, state.children.len);
            }
        }
    }

    #[inline]
    fn before_deletion(&self, node: usize, words: &[Word], depth: usize) {
        let hash = hash_words(words);
        if depth == 0 {
            return self.rows[node].prefetch_slot(hash);
        }
        let Some(row) = self.rows[node].guess(hash) else { return };
        if depth == 1 {
            return self.rows[node].prefetch(row);
        }
        let shape = &self.shape.nodes[node];
        for edge in shape.children.iter().copied().chain(shape.parent.map(|_| node)) {
            let link = if edge == node { LINK } else { self.shape.nodes[edge].link_in_parent };
            let entry = self.rows[node].link(row, link);
            if depth == 2 {
                self.edges[edge].prefetch(entry);
                continue;
            }
            let Some(state) = self.edges[edge].entries.get(entry as usize) else { continue };
            if edge != node {
                self.parents.prefetch(&state.parents, self.rows[node].link(row, link + 1));
                self.parents.prefetch(&state.parents, state.parents.len.saturating_sub(1));
            } else if shape.connex {
                self.children[node].prefetch(&state.children, self.rows[node].link(row, link + 1));
                self.children[node].prefetch(&state.children, state.children.len.saturating_sub(1));
            }
        }
    }
}
