//! The graph queries.

use crate::rows::GraphRow;
use crate::{counted, Family, Probe, Rows, Sums, Task};
use differential_dataflow::input::{Input, InputSession};
use timely::dataflow::Scope;

type Edge = (u64, u64);

pub struct Graph {
    tables: [InputSession<u64, Edge, isize>; 3],
}

impl Family for Graph {
    type Row = GraphRow;

    fn build(scope: Scope<u64>, task: &Task<Self>, sums: Sums) -> (Self, Probe) {
        let (edges_in, edges) = scope.new_collection();
        let (first_in, first) = scope.new_collection();
        let (second_in, second) = scope.new_collection();
        let result = plan(&task.query, task.filter, edges, first, second);
        let probe = counted(result, sums, |totals, row, weight| totals.add(row, weight));
        (Graph { tables: [edges_in, first_in, second_in] }, probe)
    }

    fn push(&mut self, row: &GraphRow, weight: isize) {
        self.tables[row.table].update(row.columns, weight);
    }

    fn advance_to(&mut self, time: u64) {
        self.tables.iter_mut().for_each(|table| {
            table.advance_to(time);
            table.flush();
        });
    }
}

fn plan<'scope>(
    query: &str,
    filter: u64,
    edges: Rows<'scope, Edge>,
    first: Rows<'scope, Edge>,
    second: Rows<'scope, Edge>,
) -> Rows<'scope, Vec<u64>> {
    let by_source = edges.clone().arrange_by_key();
    let by_target = edges.clone().map(|(a, b)| (b, a)).arrange_by_key();
    match query {
        "three_hop" => {
            let last = edges.filter(move |(_, d)| *d > filter).arrange_by_key();
            by_target
                .join_core(by_source, |b, a, c| Some((*c, (*a, *b))))
                .join_core(last, |c, (a, b), d| Some(vec![*a, *b, *c, *d]))
        }
        "three_hop_tables" => edges
            .map(|(a, b)| (b, a))
            .join_map(first, |b, a, c| (*c, (*a, *b)))
            .join_map(second, |c, (a, b), d| vec![*a, *b, *c, *d]),
        "four_hop" => {
            let last = edges.filter(move |(_, e)| *e > filter).arrange_by_key();
            by_target
                .join_core(by_source.clone(), |b, a, c| Some((*c, (*a, *b))))
                .join_core(by_source, |c, (a, b), d| Some((*d, (*a, *b, *c))))
                .join_core(last, |d, (a, b, c), e| Some(vec![*a, *b, *c, *d, *e]))
        }
        "four_hop_project" => by_target
            .join_core(by_source.clone(), |b, _, c| Some((*c, *b)))
            .join_core(by_source.clone(), |c, b, d| Some((*d, (*b, *c))))
            .join_core(by_source, |d, (b, c), _| Some((*b, *c, *d)))
            .distinct()
            .map(|(b, c, d)| vec![b, c, d]),
        "four_hop_project_rewritten" => {
            let starts = edges.clone().map(|(_, b)| b).distinct();
            let ends = edges.clone().map(|(d, _)| d).distinct();
            let middle = edges.clone().semijoin(starts).map(|(b, c)| (c, b)).arrange_by_key();
            let last = edges.map(|(c, d)| (d, c)).semijoin(ends).map(|(d, c)| (c, d)).arrange_by_key();
            middle.join_core(last, |c, b, d| Some(vec![*b, *c, *d]))
        }
        "two_comb" => {
            let first = first.map(|(v, _)| (v, ()));
            let second = second.map(|(v, _)| (v, ()));
            let left = edges.clone().join_map(first, |a, b, ()| (*b, *a)).arrange_by_key();
            let right = edges.map(|(c, d)| (d, c)).join_map(second, |d, c, ()| (*c, *d)).arrange_by_key();
            left.join_core(by_source, |b, a, c| Some((*c, (*a, *b))))
                .join_core(right, |c, (a, b), d| Some(vec![*a, *b, *c, *d]))
        }
        "star" => by_source
            .clone()
            .join_core(by_source.clone(), |s, _, _| Some((*s, ())))
            .join_core(by_source.clone(), |s, _, _| Some((*s, ())))
            .join_core(by_source, |s, _, _| Some(*s))
            .count()
            .map(|(s, n)| vec![s, n as u64]),
        "star_rewritten" => edges.map(|(s, _)| s).count().map(|(s, n)| vec![s, (n * n * n * n) as u64]),
        "dumbbell" | "dumbbell_project" | "dumbbell_project_rewritten" => {
            let triangles = by_target
                .join_core(by_source, |b, a, c| Some(((*c, *a), *b)))
                .join_map(edges.clone().map(|edge| (edge, ())), |(c, a), b, ()| (*a, (*b, *c)));
            let by_node = triangles.clone().arrange_by_key();
            match query {
                "dumbbell" => edges
                    .join_core(by_node.clone(), |p, q, (x, y)| Some((*q, (*p, *x, *y))))
                    .join_core(by_node, |q, (p, x, y), (u, w)| Some(vec![*p, *x, *y, *q, *u, *w])),
                "dumbbell_project" => edges
                    .join_core(by_node.clone(), |p, q, _| Some((*q, *p)))
                    .join_core(by_node, |q, p, _| Some((*p, *q)))
                    .distinct()
                    .map(|(p, q)| vec![p, q]),
                _ => {
                    let nodes = triangles.map(|(node, _)| node).distinct();
                    let starts = edges.semijoin(nodes.clone()).map(|(p, q)| (q, p));
                    starts.semijoin(nodes).map(|(q, p)| vec![p, q])
                }
            }
        }
        other => panic!("no plan for {other}"),
    }
}
