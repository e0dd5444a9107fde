//! The paper's queries on differential dataflow, written as its users would: shared arrangements
//! and a chain of binary joins; `_rewritten` variants add the semi-join or pre-aggregation that a
//! careful user writes by hand.

mod graph;
#[path = "../../common/rows.rs"]
mod rows;
mod social;
#[path = "../../common/stream.rs"]
mod stream;
mod views;

use differential_dataflow::VecCollection;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use stream::{resident, Arguments, FromLine, Mark, Totals};
use timely::dataflow::operators::probe;
use timely::dataflow::Scope;

type Rows<'scope, Row> = VecCollection<'scope, u64, Row, isize>;
type Sums = Arc<Mutex<Totals>>;
type Probe = probe::Handle<u64>;
type Task<F> = Arguments<<F as Family>::Row>;

/// The tables of a family of queries, as inputs, and the plans over them.
trait Family: Sized {
    type Row: FromLine + Send + Sync + 'static;

    /// The dataflow of the task's query, its answer counted in `sums`.
    fn build(scope: Scope<u64>, task: &Task<Self>, sums: Sums) -> (Self, Probe);
    fn push(&mut self, row: &Self::Row, weight: isize);
    fn advance_to(&mut self, time: u64);
}

/// `add` hashes a row's columns in the order of the query.
fn counted<Row: Clone + 'static>(rows: Rows<Row>, sums: Sums, add: impl Fn(&mut Totals, &Row, i64) + 'static) -> Probe {
    let probe = Probe::new();
    count_with(rows, sums, &probe, add);
    probe
}

/// As `counted`, for one of several answers that are complete together.
fn count_with<Row: Clone + 'static>(
    rows: Rows<Row>,
    sums: Sums,
    probe: &Probe,
    add: impl Fn(&mut Totals, &Row, i64) + 'static,
) {
    let rows = rows.inspect_batch(move |_, rows| {
        let mut sums = sums.lock().expect("no panic while counting");
        rows.iter().for_each(|(row, _, weight)| add(&mut sums, row, *weight as i64));
    });
    rows.probe_with(probe);
}

fn main() {
    if stream::query().starts_with("snb") {
        run::<social::Social>();
    } else {
        run::<graph::Graph>();
    }
}

fn run<F: Family>() {
    let arguments = Arc::new(stream::arguments::<F::Row>());
    let totals = Arc::new(Mutex::new(Totals::default()));
    let threads = arguments.threads;
    let (task, sums) = (arguments.clone(), totals.clone());
    timely::execute(timely::Config::process(threads), move |worker| {
        let (mut tables, probe) = worker.dataflow(|scope| F::build(scope, &task, sums.clone()));
        let before = resident();
        let started = Instant::now();
        let (mut done, mut mark, mut laps) = (0, Mark::default(), Vec::new());
        for (time, batch) in (1..).zip(task.batches()) {
            let begun = Instant::now();
            for (position, update) in batch.iter().enumerate() {
                if (done + position) % worker.peers() == worker.index() {
                    tables.push(&update.row, update.weight as isize);
                }
            }
            let single = task.is_single(done);
            done += batch.len();
            tables.advance_to(time);
            worker.step_while(|| probe.less_than(&time));
            if single {
                laps.push(begun.elapsed().as_secs_f64());
            }
            if done == task.mark {
                let totals = *sums.lock().expect("no panic while counting");
                mark = Mark { totals, growth: resident().saturating_sub(before) };
            }
            if started.elapsed().as_secs_f64() > task.seconds {
                break;
            }
        }
        if worker.index() == 0 {
            let totals = *sums.lock().expect("no panic while counting");
            stream::report(started, done, task.updates.len(), totals, mark, &laps);
        }
    })
    .expect("timely runs");
}
