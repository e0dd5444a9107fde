//! The graph queries.

use crate::rows::GraphRow;
use crate::{counted, Count, Family, Rows};
use dbsp::utils::{Tup2, Tup3, Tup6};
use dbsp::{RootCircuit, ZSetHandle};

type Edge = Tup2<u64, u64>;
/// Every result in one type: unused columns are 0 and not counted.
type Row = Tup6<u64, u64, u64, u64, u64, u64>;

pub struct Graph {
    tables: [ZSetHandle<Edge>; 3],
}

impl Family for Graph {
    type Row = GraphRow;

    fn build(circuit: &mut RootCircuit, query: &str, filter: u64) -> (Self, Count) {
        let (edges, edges_in) = circuit.add_input_zset::<Edge>();
        let (first, first_in) = circuit.add_input_zset::<Edge>();
        let (second, second_in) = circuit.add_input_zset::<Edge>();
        let width = columns(query);
        let result = plan(query, filter, &edges, &first, &second);
        let count = counted(&result, move |totals, Tup6(a, b, c, d, e, f), weight| {
            totals.add(&[a, b, c, d, e, f][..width], weight)
        });
        (Graph { tables: [edges_in, first_in, second_in] }, count)
    }

    fn push(&self, row: &GraphRow, weight: i64) {
        self.tables[row.table].push(Tup2(row.columns.0, row.columns.1), weight);
    }
}

fn columns(query: &str) -> usize {
    match query {
        "three_hop" | "three_hop_tables" | "two_comb" => 4,
        "four_hop" => 5,
        "four_hop_project" | "four_hop_project_rewritten" => 3,
        "star" | "star_rewritten" | "dumbbell_project" | "dumbbell_project_rewritten" => 2,
        _ => 6,
    }
}

fn plan(query: &str, filter: u64, edges: &Rows<Edge>, first: &Rows<Edge>, second: &Rows<Edge>) -> Rows<Row> {
    let by_source = edges.map_index(|Tup2(a, b)| (*a, *b));
    let by_target = edges.map_index(|Tup2(a, b)| (*b, *a));
    let last = edges.filter(move |Tup2(_, d)| *d > filter).map_index(|Tup2(c, d)| (*c, *d));
    match query {
        "three_hop" => by_target
            .join_index(&by_source, |b, a, c| Some((*c, Tup2(*a, *b))))
            .join(&last, |c, Tup2(a, b), d| Tup6(*a, *b, *c, *d, 0, 0)),
        "three_hop_tables" => by_target
            .join_index(&first.map_index(|Tup2(b, c)| (*b, *c)), |b, a, c| Some((*c, Tup2(*a, *b))))
            .join(&second.map_index(|Tup2(c, d)| (*c, *d)), |c, Tup2(a, b), d| Tup6(*a, *b, *c, *d, 0, 0)),
        "four_hop" => by_target
            .join_index(&by_source, |b, a, c| Some((*c, Tup2(*a, *b))))
            .join_index(&by_source, |c, Tup2(a, b), d| Some((*d, Tup3(*a, *b, *c))))
            .join(&last, |d, Tup3(a, b, c), e| Tup6(*a, *b, *c, *d, *e, 0)),
        "four_hop_project" => by_target
            .join_index(&by_source, |b, _, c| Some((*c, *b)))
            .join_index(&by_source, |c, b, d| Some((*d, Tup2(*b, *c))))
            .join(&by_source, |d, Tup2(b, c), _| Tup6(*b, *c, *d, 0, 0, 0))
            .distinct(),
        "four_hop_project_rewritten" => {
            let starts = edges.map(|Tup2(_, b)| *b).distinct().map_index(|b| (*b, ()));
            let ends = edges.map(|Tup2(d, _)| *d).distinct().map_index(|d| (*d, ()));
            let middle = by_source.join_index(&starts, |b, c, ()| Some((*c, *b)));
            let tail = by_target.join_index(&ends, |d, c, ()| Some((*c, *d)));
            middle.join(&tail, |c, b, d| Tup6(*b, *c, *d, 0, 0, 0))
        }
        "two_comb" => {
            let first = first.map_index(|Tup2(v, _)| (*v, ()));
            let second = second.map_index(|Tup2(v, _)| (*v, ()));
            let left = by_source.join_index(&first, |a, b, ()| Some((*b, *a)));
            let right = by_target.join_index(&second, |d, c, ()| Some((*c, *d)));
            left.join_index(&by_source, |b, a, c| Some((*c, Tup2(*a, *b))))
                .join(&right, |c, Tup2(a, b), d| Tup6(*a, *b, *c, *d, 0, 0))
        }
        "star" => by_source
            .join_index(&by_source, |s, _, _| Some((*s, ())))
            .join_index(&by_source, |s, _, _| Some((*s, ())))
            .join(&by_source, |s, _, _| *s)
            .weighted_count()
            .map(|(s, n)| Tup6(*s, *n as u64, 0, 0, 0, 0)),
        "star_rewritten" => {
            edges.map(|Tup2(s, _)| *s).weighted_count().map(|(s, n)| Tup6(*s, (n * n * n * n) as u64, 0, 0, 0, 0))
        }
        "dumbbell" | "dumbbell_project" | "dumbbell_project_rewritten" => {
            let whole = edges.map_index(|edge| (*edge, ()));
            let triangles = by_target
                .join_index(&by_source, |b, a, c| Some((Tup2(*c, *a), *b)))
                .join_index(&whole, |Tup2(c, a), b, ()| Some((*a, Tup2(*b, *c))));
            match query {
                "dumbbell" => by_source
                    .join_index(&triangles, |p, q, Tup2(x, y)| Some((*q, Tup3(*p, *x, *y))))
                    .join(&triangles, |q, Tup3(p, x, y), Tup2(u, w)| Tup6(*p, *x, *y, *q, *u, *w)),
                "dumbbell_project" => by_source
                    .join_index(&triangles, |p, q, _| Some((*q, *p)))
                    .join(&triangles, |q, p, _| Tup6(*p, *q, 0, 0, 0, 0))
                    .distinct(),
                _ => {
                    let nodes = triangles.map(|(node, _)| *node).distinct().map_index(|node| (*node, ()));
                    by_source
                        .join_index(&nodes, |p, q, ()| Some((*q, *p)))
                        .join(&nodes, |q, p, ()| Tup6(*p, *q, 0, 0, 0, 0))
                }
            }
        }
        other => panic!("no plan for {other}"),
    }
}
