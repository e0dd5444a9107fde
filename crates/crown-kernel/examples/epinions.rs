//! The paper's graph workloads on a file of edges (two integers a line), against a bare hash set of
//! the same atom tuples.
//!
//! `cargo run --release -p crown-kernel --example epinions -- soc-Epinions1.tsv
//! [hop|project|star|large] [rounds] [--json]`
//!
//! A FIFO window of a fifth of the edges: the oldest goes before each insertion once the window is
//! full, and all go at the end. Every delta is produced as columns in reused buffers. Ratios are to
//! `hashbrown::HashSet` in the same run.

use crown_kernel::chunk::{Chunk, Word};
use crown_kernel::error::Result;
use crown_kernel::plan::{Atom, Binding, EdgeKind, Expression, Mode, Node, RingComponent, TreeStage, Variable};
use crown_kernel::store::interner::Interner;
use crown_kernel::tree::{AtomChange, Sink, Tree};
use hashbrown::HashSet;
use std::time::{Duration, Instant};

/// Counts rows and takes them away, as a consumer of batches would.
struct Counter {
    chunk: Chunk,
    inserted: i64,
    deleted: i64,
}

impl Counter {
    fn new(columns: usize) -> Counter {
        Counter { chunk: Chunk::new(columns), inserted: 0, deleted: 0 }
    }

    fn take(&mut self) {
        // Every weight is 1 or -1.
        let (rows, sum) = (self.chunk.len() as i64, self.chunk.weights.iter().sum::<i64>());
        self.inserted += (rows + sum) / 2;
        self.deleted += (rows - sum) / 2;
        self.chunk.clear();
    }
}

impl Sink for Counter {
    fn chunk(&mut self) -> &mut Chunk {
        &mut self.chunk
    }

    fn flush_if_full(&mut self) -> Result<()> {
        if self.chunk.len() >= 2048 {
            self.take();
        }
        Ok(())
    }
}

fn names(list: &str) -> Vec<String> {
    list.split_whitespace().map(String::from).collect()
}

fn column(name: &str) -> Expression {
    Expression::Column { name: name.into(), data_type: "int64".into() }
}

fn atom(name: &str, variables: &str) -> Atom {
    let bindings = names(variables)
        .into_iter()
        .zip(["src", "dst"])
        .map(|(variable, name)| Binding { variable, expression: column(name) })
        .collect();
    Atom { name: name.into(), source: "g".into(), bindings, filter: None, not_null: Vec::new() }
}

fn node(variables: &str, atom: Option<usize>, parent: Option<usize>, key: &str, connex: bool) -> Node {
    let name = format!("{atom:?}");
    Node { name, variables: names(variables), atom, parent, key: names(key), connex, edge: EdgeKind::Join }
}

fn stage(atoms: Vec<Atom>, nodes: Vec<Node>, outputs: &str, mode: Mode) -> TreeStage {
    let variable = |name: &str| Variable { name: name.into(), data_type: "int64".into(), nullable: false };
    let ring = if mode == Mode::Ring {
        vec![RingComponent { name: "count".into(), factors: Vec::new(), data_type: "int64".into() }]
    } else {
        Vec::new()
    };
    TreeStage {
        id: "$tree".into(),
        variables: ["a", "b", "c", "d", "e"].map(variable).to_vec(),
        atoms,
        nodes,
        outputs: names(outputs),
        mode,
        ring,
        residual: Vec::new(),
        ordered: Vec::new(),
        always: false,
    }
}

/// `filter`: only edges to a higher vertex match G3. The stream leaves the others out.
fn three_hop(filter: Option<Word>) -> TreeStage {
    let mut atoms = vec![atom("G1", "a b"), atom("G2", "b c"), atom("G3", "c d")];
    atoms[2].filter = filter.map(|bound| Expression::Call {
        function: "gt".into(),
        arguments: vec![column("dst"), Expression::Literal { value: bound.into(), data_type: "int64".into() }],
        data_type: "boolean".into(),
    });
    let nodes = vec![
        node("b c", Some(1), None, "", true),
        node("a b", Some(0), Some(0), "b", true),
        node("c d", Some(2), Some(0), "c", true),
    ];
    stage(atoms, nodes, "a b c d", Mode::Set)
}

fn four_hop_project() -> TreeStage {
    let atoms = vec![atom("G1", "a b"), atom("G2", "b c"), atom("G3", "c d"), atom("G4", "d e")];
    let nodes = vec![
        node("c", None, None, "", true),
        node("b c", Some(1), Some(0), "c", true),
        node("a b", Some(0), Some(1), "b", false),
        node("c d", Some(2), Some(0), "c", true),
        node("d e", Some(3), Some(3), "d", false),
    ];
    stage(atoms, nodes, "b c d", Mode::Set)
}

fn star_count() -> TreeStage {
    let atoms = vec![atom("G1", "a b"), atom("G2", "a c"), atom("G3", "a d"), atom("G4", "a e")];
    let mut nodes = vec![node("a", None, None, "", true)];
    for (index, variables) in ["a b", "a c", "a d", "a e"].iter().enumerate() {
        nodes.push(node(variables, Some(index), Some(0), "a", false));
    }
    stage(atoms, nodes, "a", Mode::Ring)
}

/// CPU time of this process where the system reports it, because other processes don't distort it;
/// else wall-clock time.
fn clock(start: &Instant) -> Duration {
    let statistics = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = statistics.split_whitespace().next().and_then(|field| field.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// One change of one atom.
struct Change {
    atom: usize,
    edge: [Word; 2],
    weight: i64,
}

/// The stream of the FIFO window, each update for all of its atoms in turn.
fn stream(edges: &[[Word; 2]], atoms: usize, keep: impl Fn(usize, &[Word; 2]) -> bool) -> Vec<Change> {
    let window = edges.len().div_ceil(5);
    let mut changes = Vec::new();
    let mut each = |edge: &[Word; 2], weight| {
        let served = (0..atoms).filter(|atom| keep(*atom, edge));
        changes.extend(served.map(|atom| Change { atom, edge: *edge, weight }));
    };
    for (index, edge) in edges.iter().enumerate() {
        if index >= window {
            each(&edges[index - window], -1);
        }
        each(edge, 1);
    }
    for edge in &edges[edges.len().saturating_sub(window)..] {
        each(edge, -1);
    }
    changes
}

fn bare(changes: &[Change], atoms: usize) -> Duration {
    let mut sets: Vec<HashSet<[Word; 2]>> = vec![HashSet::new(); atoms];
    let origin = Instant::now();
    let start = clock(&origin);
    for change in changes {
        if change.weight > 0 {
            sets[change.atom].insert(change.edge);
        } else {
            sets[change.atom].remove(&change.edge);
        }
    }
    assert!(sets.iter().all(HashSet::is_empty));
    clock(&origin) - start
}

#[derive(Clone, Copy)]
struct Options {
    rounds: usize,
    json: bool,
}

/// What one run over the stream took, gave and held half-way.
struct Run {
    elapsed: Duration,
    inserted: i64,
    deleted: i64,
    bytes_per_row: f64,
}

fn run(stage: &TreeStage, changes: &[Change], deltas: bool) -> Run {
    let mut tree = Tree::new(stage, deltas).expect("the stage is well formed");
    let mut interner = Interner::default();
    let mut sink = Counter::new(stage.outputs.len() + stage.ring.len());
    let mut bytes_per_row = 0.0;
    let origin = Instant::now();
    let start = clock(&origin);
    let (early, late) = changes.split_at(changes.len() / 2);
    for half in [early, late] {
        let changes = half.iter().map(|change| AtomChange {
            atom: change.atom,
            words: &change.edge,
            nulls: 0,
            weight: change.weight,
        });
        tree.apply_all(changes, &mut interner, &mut sink).map_err(|(_, error)| error).expect("no overflow");
        if bytes_per_row == 0.0 {
            let stats = tree.stats();
            bytes_per_row = stats.bytes as f64 / stats.live_rows as f64;
        }
    }
    let elapsed = clock(&origin) - start;
    sink.take();
    Run { elapsed, inserted: sink.inserted, deleted: sink.deleted, bytes_per_row }
}

/// How often the hash set runs in a round: so that it takes about as long as the tree, and is as
/// likely to meet a neighbour on the machine.
const REPEAT: u32 = 8;

/// Runs the hash set and the tree with and without deltas in turn, `rounds` times, and shows the
/// round in the middle by the ratio of the tree with deltas to the hash set: what runs side by side
/// is compared.
fn workload(
    name: &str,
    edges: &[[Word; 2]],
    stage: &TreeStage,
    options: Options,
    keep: impl Fn(usize, &[Word; 2]) -> bool,
) {
    let changes = stream(edges, stage.atoms.len(), keep);
    let Options { rounds, json } = options;
    let round = |_| {
        let set = (0..REPEAT).map(|_| bare(&changes, stage.atoms.len())).sum::<Duration>() / REPEAT;
        (set, run(stage, &changes, true), run(stage, &changes, false))
    };
    let mut found: Vec<(Duration, Run, Run)> = (0..rounds).map(round).collect();
    found.sort_by(|left, right| {
        let ratio = |(set, with, _): &(Duration, Run, Run)| with.elapsed.as_secs_f64() / set.as_secs_f64();
        ratio(left).total_cmp(&ratio(right))
    });
    let (set, with, without) = found.swap_remove(rounds / 2);
    let seconds = |duration: Duration| duration.as_secs_f64();
    if json {
        let row = serde_json::json!({
            "workload": name,
            "changes": changes.len(),
            "rows": with.inserted + with.deleted,
            "hash_set_seconds": seconds(set),
            "seconds": seconds(with.elapsed),
            "silent_seconds": seconds(without.elapsed),
            "bytes_per_row": with.bytes_per_row,
        });
        return println!("{row}");
    }
    let rows = (with.inserted + with.deleted) as f64 / 1e6;
    println!(
        "{name}: {} changes of atoms, {} rows inserted, {} deleted; bare hash set {:.3} s; with deltas {:.3} s = {:.2} times \
         ({:.0} million rows/s, {:.0} above the propagation); without {:.3} s = {:.2} times; {:.1} bytes per atom row",
        changes.len(),
        with.inserted,
        with.deleted,
        seconds(set),
        seconds(with.elapsed),
        seconds(with.elapsed) / seconds(set),
        rows / seconds(with.elapsed),
        rows / (seconds(with.elapsed) - seconds(without.elapsed)),
        seconds(without.elapsed),
        seconds(without.elapsed) / seconds(set),
        with.bytes_per_row,
    );
}

fn main() {
    let json = std::env::args().any(|argument| argument == "--json");
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--json");
    let path = arguments.next().expect("the path of a file of edges");
    let only = arguments.next().unwrap_or_default();
    let text = std::fs::read_to_string(path).expect("a readable file");
    let edges: Vec<[Word; 2]> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut fields = line.split_whitespace().map(|field| field.parse().ok());
            Some([fields.next()??, fields.next()??])
        })
        .collect();
    let rounds = arguments.next().map_or(5, |rounds| rounds.parse().expect("a number of rounds"));
    let filter: Word = 32684;
    let wanted = |name: &str| only.is_empty() || only == name;
    let options = Options { rounds, json };
    if wanted("hop") {
        workload("3-Hop", &edges, &three_hop(Some(filter)), options, |atom, edge| atom != 2 || edge[1] > filter);
    }
    if wanted("project") {
        workload("4-Hop project", &edges, &four_hop_project(), options, |_, _| true);
    }
    if wanted("star") {
        workload("star count", &edges, &star_count(), options, |_, _| true);
    }
    if wanted("large") {
        let prefix = &edges[..edges.len().min(60_000)];
        workload("3-Hop without filter, first 60,000 edges", prefix, &three_hop(None), options, |_, _| true);
    }
}
