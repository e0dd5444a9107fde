//! The paper's queries on DBSP, written as its users would: a chain of incremental binary joins;
//! `_rewritten` variants add the semi-join or pre-aggregation that a careful user writes by hand.

mod graph;
#[path = "../../common/rows.rs"]
mod rows;
mod social;
#[path = "../../common/stream.rs"]
mod stream;
mod views;

use dbsp::typed_batch::IndexedZSetReader;
use dbsp::{DBData, OrdZSet, RootCircuit, Runtime, Stream};
use std::time::Instant;
use stream::{resident, FromLine, Mark, Totals};

type Rows<T> = Stream<RootCircuit, OrdZSet<T>>;
/// Adds what the last step gave out.
type Count = Box<dyn Fn(&mut Totals) + Send>;

/// The tables of a family of queries, as inputs, and the plans over them.
trait Family: Sized + Send + 'static {
    type Row: FromLine;

    fn build(circuit: &mut RootCircuit, query: &str, filter: u64) -> (Self, Count);
    fn push(&self, row: &Self::Row, weight: i64);
}

/// `add` hashes a row's columns in the order of the query.
fn counted<Row: DBData>(rows: &Rows<Row>, add: impl Fn(&mut Totals, Row, i64) + Send + 'static) -> Count {
    // Accumulated: a step with much to say gives its rows out in several parts, and `output` would
    // keep the last one only.
    let output = rows.accumulate_output();
    Box::new(move |totals| {
        output.concat().consolidate().iter().for_each(|(row, (), weight)| add(totals, row, weight));
    })
}

fn main() {
    if stream::query().starts_with("snb") {
        run::<social::Social>();
    } else {
        run::<graph::Graph>();
    }
}

fn run<F: Family>() {
    let task = stream::arguments::<F::Row>();
    let (query, filter) = (task.query.clone(), task.filter);
    let (mut circuit, (tables, count)) =
        Runtime::init_circuit(task.threads, move |circuit| Ok(F::build(circuit, &query, filter)))
            .expect("the circuit builds");
    let before = resident();
    let started = Instant::now();
    let (mut done, mut totals, mut mark, mut laps) = (0, Totals::default(), Mark::default(), Vec::new());
    for batch in task.batches() {
        let begun = Instant::now();
        for update in batch {
            tables.push(&update.row, update.weight);
        }
        circuit.transaction().expect("the step runs");
        count(&mut totals);
        if task.is_single(done) {
            laps.push(begun.elapsed().as_secs_f64());
        }
        done += batch.len();
        if done == task.mark {
            mark = Mark { totals, growth: resident().saturating_sub(before) };
        }
        if started.elapsed().as_secs_f64() > task.seconds {
            break;
        }
    }
    stream::report(started, done, task.updates.len(), totals, mark, &laps);
    circuit.kill().expect("the workers stop");
}
