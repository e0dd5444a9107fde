//! The paper's bounds, by counting operations.

use super::harness::{enumerate, split};
use super::named::{stage as stage_of, Line};
use super::random::{stage, updates};
use crate::chunk::Chunk;
use crate::plan::{EdgeKind, Mode};
use crate::random::Random;
use crate::store::interner::Interner;
use crate::tree::Tree;

/// Lemma 4.4: between two results the walk does at most a constant number of steps, whatever the
/// data.
#[test]
fn delay_is_bounded_by_the_size_of_the_query() {
    for seed in 0..300 {
        let mut random = Random(seed);
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

/// A hop of `length` relations, all connex: the first is the root.
fn hops(length: usize) -> crate::plan::TreeStage {
    const VARIABLES: [&str; 5] = ["a b", "b c", "c d", "d e", "e f"];
    const KEYS: [&str; 5] = ["", "b", "c", "d", "e"];
    let lines: Vec<Line> =
        (0..length).map(|node| ("R", VARIABLES[node], node.checked_sub(1), KEYS[node], true, EdgeKind::Join)).collect();
    stage_of(&lines, &"a b c d e f"[..2 * length + 1], Mode::Set)
}

fn apply(tree: &mut Tree, interner: &mut Interner, atom: usize, words: [u64; 2], weight: i64) {
    let mut sink = Chunk::new(tree.programs.len() + 1);
    tree.apply(atom, &words, 0, weight, interner, &mut sink).unwrap();
}

/// Section 5.3: insertions alone cost amortised constant time; each counter only rises, so their
/// changes are linear in the input.
#[test]
fn insertions_change_a_linear_number_of_counters() {
    let mut ratios = Vec::new();
    for size in [500u64, 2000] {
        let (mut tree, mut interner, mut random) =
            (Tree::new(&hops(4), true).unwrap(), Interner::default(), Random(size));
        let mut updates = 0;
        for _ in 0..size {
            let (atom, row) = (random.below(4) as usize, [random.below(size), random.below(size)]);
            if tree.atom_multiplicity(atom, &row, 0) == 0 {
                apply(&mut tree, &mut interner, atom, row, 1);
                updates += 1;
            }
        }
        // A row enters its semi-join view once, and each child's key comes once.
        assert!(tree.stats().counter_changes <= 3 * updates, "{:?}", tree.stats());
        ratios.push(tree.stats().counter_changes as f64 / updates as f64);
    }
    assert!(ratios[1] <= 1.5 * ratios[0] + 0.5, "{ratios:?}");
}

/// Section 5.3: first-in-first-out updates of a tree of height 2 cost amortised constant time,
/// however skewed the keys.
#[test]
fn fifo_updates_of_height_two_change_a_linear_number_of_counters() {
    for window in [50usize, 400] {
        let (mut tree, mut interner, mut random) = (Tree::new(&hops(2), true).unwrap(), Interner::default(), Random(5));
        let mut queue = std::collections::VecDeque::new();
        let mut updates = 0u64;
        for step in 0..4000u64 {
            if queue.len() == window {
                let (atom, row) = queue.pop_front().unwrap();
                apply(&mut tree, &mut interner, atom, row, -1);
                updates += 1;
            }
            let key = random.below(3);
            let (atom, row) = if random.below(2) == 0 { (0, [step, key]) } else { (1, [key, step]) };
            apply(&mut tree, &mut interner, atom, row, 1);
            queue.push_back((atom, row));
            updates += 1;
        }
        assert!(tree.stats().counter_changes <= 4 * updates, "window {window}: {:?}", tree.stats().counter_changes);
    }
}

/// Lemma 3.1: the views are linear in the live input, and memory follows it through windows of
/// ever-new keys.
#[test]
fn memory_follows_the_live_rows() {
    let (mut tree, mut interner) = (Tree::new(&hops(3), true).unwrap(), Interner::default());
    let mut sizes = Vec::new();
    let window = 3000u64;
    let row = |step: u64| ((step % 3) as usize, [step / 7 * 1000, step / 7 * 1000 + step % 2]);
    for step in 0..window * 20 {
        if step >= window {
            let (atom, words) = row(step - window);
            apply(&mut tree, &mut interner, atom, words, -1);
        }
        let (atom, words) = row(step);
        apply(&mut tree, &mut interner, atom, words, 1);
        if (step + 1) % window == 0 {
            sizes.push(tree.stats().bytes);
        }
    }
    assert!(sizes[19] as f64 <= 1.05 * sizes[1] as f64, "{sizes:?}");
    let stats = tree.stats();
    assert!(stats.live_rows > 500 && stats.bytes < 200 * stats.live_rows, "{stats:?}");
    for step in window * 19..window * 20 {
        let (atom, words) = row(step);
        apply(&mut tree, &mut interner, atom, words, -1);
    }
    tree.compact();
    // Slabs of up to a few hundred slots are not worth giving back.
    assert!(tree.stats().bytes < 1 << 16 && sizes[19] > 1 << 17, "{sizes:?} {:?}", tree.stats());
}

/// Twins share ids, of which each has its own part when rows come and go in another order in each:
/// also when ids are given anew.
#[test]
fn twins_keep_their_rows_when_ids_change() {
    let (mut tree, mut interner) = (Tree::new(&hops(3), true).unwrap(), Interner::default());
    let size = 2000;
    let stays = |atom: usize, row: u64| (row + 7) % 30 < [3, 4, 5][atom];
    for atom in [2, 0, 1] {
        (0..size).for_each(|row| apply(&mut tree, &mut interner, atom, [row, row + 1], 1));
    }
    let full = tree.stats().bytes;
    for atom in [1, 0, 2] {
        let leaving = (0..size).filter(|row| !stays(atom, *row));
        leaving.for_each(|row| apply(&mut tree, &mut interner, atom, [row, row + 1], -1));
    }
    tree.compact();
    assert!(tree.stats().bytes * 2 < full, "{full} {:?}", tree.stats());
    let mut found = Vec::new();
    for (row, _) in enumerate(&tree, &mut interner, 4, 100) {
        found.extend(row[0]);
    }
    let expected: Vec<u64> = (0..size).filter(|row| stays(0, *row) && stays(1, row + 1) && stays(2, row + 2)).collect();
    assert!(expected.len() > 5);
    assert_eq!(found, expected);
}

/// A result is found by its position in time logarithmic in the lists, of a million results as of
/// few; and after a change only what it has touched is counted again.
#[test]
fn positions_are_found_without_passing_over_results() {
    let (mut tree, mut interner) = (Tree::new(&hops(2), true).unwrap(), Interner::default());
    const ROOTS: u64 = 1 << 14;
    const EACH: u64 = 1 << 6;
    for number in 0..ROOTS {
        apply(&mut tree, &mut interner, 0, [number, number % EACH], 1);
    }
    for number in 0..EACH * EACH {
        apply(&mut tree, &mut interner, 1, [number % EACH, number], 1);
    }
    let visited = |tree: &Tree| tree.counts.as_ref().unwrap().visited.load(std::sync::atomic::Ordering::Relaxed);
    tree.count_positions();
    assert_eq!(tree.count(), Some(1 << 20));
    let (mut found, before) = (Chunk::new(3), visited(&tree));
    for number in (1 << 20) - 10..1 << 20 {
        assert_eq!(tree.nth(number, &mut interner, &mut found).unwrap(), Some(true));
    }
    assert_eq!(tree.nth(1 << 20, &mut interner, &mut found).unwrap(), Some(false));
    // Two lists for each row: of 2^14 and of 2^6 rows.
    assert!(visited(&tree) - before <= 10 * (15 + 7), "{} rows for 10 results", visited(&tree) - before);
    for number in 0..20 {
        apply(&mut tree, &mut interner, 0, [ROOTS + number, number % EACH], 1);
        apply(&mut tree, &mut interner, 0, [number, number % EACH], -1);
        let before = visited(&tree);
        tree.count_positions();
        assert!(visited(&tree) - before <= 4, "{} rows counted again", visited(&tree) - before);
        assert_eq!(tree.nth((1 << 20) - 1, &mut interner, &mut found).unwrap(), Some(true));
    }
    // Positions that nobody reads any more are no longer counted.
    for number in 0..ROOTS {
        apply(&mut tree, &mut interner, 0, [2 * ROOTS + number, number % EACH], 1);
    }
    assert!(tree.counts.is_none());
}
