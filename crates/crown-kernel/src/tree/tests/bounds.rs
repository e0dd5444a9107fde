//! The paper's bounds, by counting operations.

use super::harness::split;
use super::random::{stage, updates, Random};
use crate::chunk::Chunk;
use crate::interner::Interner;
use crate::tree::Tree;

/// Lemma 4.4: between two results the walk does at most a constant number of steps, whatever the data.
#[test]
fn delay_is_bounded_by_the_size_of_the_query() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut stage = stage(&mut random);
        stage.residual.clear();
        let mut tree = Tree::new(&stage, false).unwrap();
        let mut interner = Interner::default();
        let columns = stage.outputs.len() + stage.ring.len();
        for update in updates(&stage, &mut random, 60) {
            let (words, nulls) = split(&update.row);
            tree.apply(update.atom, &words, nulls, update.weight, &mut interner, &mut Chunk::new(columns)).unwrap();
        }
        let mut cursor = tree.cursor();
        let mut chunk = Chunk::new(columns);
        let mut before = 0;
        while cursor.fill(&tree, &mut interner, &mut chunk, 1).unwrap() {
            assert!(cursor.operations() - before <= 2 * stage.nodes.len() as u64 + 2, "seed {seed}");
            before = cursor.operations();
        }
    }
}
