//! Each stage against a recomputation of its whole result, after every random batch.

mod harness;

use super::*;
use crate::chunk::Chunk;
use crate::expression::compare;
use crate::plan;
use crate::store::interner::Interner;
use crate::types::{float_word, word_float};
use serde_json::{json, Value as Json};
use std::cmp::Ordering;
use std::collections::BTreeMap;

use harness::*;

#[test]
fn oracle_distinct_and_materialize() {
    for seed in 0..20 {
        let columns = input_columns();
        let once = |rows: &BTreeMap<Row, i64>, interner: &Interner| {
            rows.keys().map(|row| (texts(&input_columns(), row, interner), 1)).collect()
        };
        run(&mut Distinct::new(&columns), seed, &once);
        let same = |rows: &BTreeMap<Row, i64>, interner: &Interner| {
            rows.iter().map(|(row, weight)| (texts(&input_columns(), row, interner), *weight)).collect()
        };
        run(&mut Materialize::new(&columns), seed, &same);
    }
}

fn aggregate_stage(group: &[&str], always: bool) -> plan::AggregateStage {
    let mut aggregates = vec![json!({"name": "n", "function": "count", "argument": null, "type": "int64"})];
    let mut add = |function: &str, argument: &str, kind: &str| {
        let name = format!("{function}_{argument}");
        aggregates.push(json!({"name": name, "function": function, "argument": column(argument), "type": kind}));
    };
    add("count", "s", "int64");
    add("count_distinct", "s", "int64");
    add("count_distinct", "f", "int64");
    add("sum", "g", "int64");
    add("avg", "g", "float64");
    add("sum", "f", "float64");
    add("sum", "w", "decimal(38,2)");
    add("avg", "w", "decimal(34,6)");
    for (argument, kind) in [("g", "int64"), ("s", "string"), ("f", "float64"), ("w", "decimal(30,2)")] {
        add("min", argument, kind);
        add("max", argument, kind);
    }
    read(json!({"id": "$a", "input": "$i", "group": group, "aggregates": aggregates, "always": always}))
}

/// All aggregates of `aggregate_stage` over the copies of one group, by their definitions.
fn aggregates(rows: &[(&Row, i64)], interner: &Interner) -> Vec<String> {
    let null = || "NULL".to_string();
    let values = |column: usize| -> Vec<(Word, i64)> {
        rows.iter().filter_map(|(row, weight)| row[column].map(|word| (word, *weight))).collect()
    };
    let count = |column: usize| values(column).iter().map(|(_, weight)| weight).sum::<i64>();
    let distinct = |column: usize| {
        let mut words: Vec<Word> = values(column).into_iter().map(|(word, _)| word).collect();
        words.sort_unstable();
        words.dedup();
        words.len().to_string()
    };
    let wide = |word| crate::expression::wide(interner.get(word));
    let integers: i64 = values(0).iter().map(|(word, weight)| *word as i64 * weight).sum();
    let floats = values(2).iter().fold(0.0, |sum, (word, weight)| sum + word_float(*word) * *weight as f64);
    let decimals: i128 = values(3).iter().map(|(word, weight)| wide(*word) * i128::from(*weight)).sum();
    let average = |sum: i128, count: i64| {
        let (scaled, count) = (sum * 10_000, i128::from(count));
        let (whole, rest) = (scaled / count, scaled % count);
        whole + if 2 * rest.abs() >= count { scaled.signum() } else { 0 }
    };
    let some = |column: usize, value: String| if count(column) == 0 { null() } else { value };
    let mut result = vec![rows.iter().map(|(_, weight)| weight).sum::<i64>().to_string()];
    result.extend([count(1).to_string(), distinct(1), distinct(2), some(0, integers.to_string())]);
    result.push(some(0, format!("{:?}", integers as f64 / count(0) as f64)));
    result.push(some(2, format!("{floats:?}")));
    result.push(some(3, decimals.to_string()));
    result.push(if count(3) == 0 { null() } else { average(decimals, count(3)).to_string() });
    for (column, (_, kind)) in input_columns().iter().enumerate() {
        let mut sorted = values(column);
        sorted.sort_by(|(left, _), (right, _)| compare(*kind, *left, *right, interner));
        result.push(text(*kind, sorted.first().map(|(word, _)| *word), interner));
        result.push(text(*kind, sorted.last().map(|(word, _)| *word), interner));
    }
    result
}

#[test]
fn oracle_aggregates_per_group() {
    for (seed, group) in (0..24).zip([vec!["g"], vec!["s", "g"], vec!["w"]].iter().cycle()) {
        let columns = input_columns();
        let names: Vec<&str> = group.clone();
        let positions: Vec<usize> =
            names.iter().map(|name| columns.iter().position(|(other, _)| other == name).unwrap()).collect();
        let recompute = |rows: &BTreeMap<Row, i64>, interner: &Interner| {
            let mut groups: BTreeMap<Row, Vec<(&Row, i64)>> = BTreeMap::new();
            for (row, weight) in rows {
                groups.entry(positions.iter().map(|column| row[*column]).collect()).or_default().push((row, *weight));
            }
            let key_columns: Columns = positions.iter().map(|column| columns[*column].clone()).collect();
            let shown = |(key, rows): (&Row, &Vec<_>)| {
                let mut texts = texts(&key_columns, key, interner);
                texts.extend(aggregates(rows, interner));
                (texts, 1)
            };
            groups.iter().map(shown).collect()
        };
        run(&mut Aggregate::new(&aggregate_stage(&names, false), &columns).unwrap(), seed, &recompute);
    }
}

#[test]
fn oracle_global_aggregate_has_one_row_from_the_start() {
    for seed in 0..10 {
        let mut stage = Aggregate::new(&aggregate_stage(&[], true), &input_columns()).unwrap();
        assert_eq!(stage.rows(), 1);
        run(&mut stage, seed, &|rows, interner| {
            let rows: Vec<(&Row, i64)> = rows.iter().map(|(row, weight)| (row, *weight)).collect();
            [(aggregates(&rows, interner), 1)].into()
        });
    }
}

#[test]
fn a_sum_that_overflows_leaves_the_groups_as_they_were() {
    let mut interner = Interner::default();
    let stage = read(json!({"id": "$a", "input": "$i", "group": ["s"], "always": false,
        "aggregates": [{"name": "x", "function": "sum", "argument": column("g"), "type": "int64"}]}));
    let columns = input_columns()[..2].to_vec();
    let mut aggregate = Aggregate::new(&stage, &columns).unwrap();
    let [a, b] = ["a", "b"].map(|name| interner.intern(name.as_bytes()));
    let mut first = Chunk::new(2);
    first.push(&[i64::MAX as Word, a], 0, 1);
    aggregate.apply(&first, &mut interner, &mut Chunk::new(2)).unwrap();
    let mut second = Chunk::new(2);
    second.push(&[5, b], 0, 1);
    second.push(&[1, a], 0, 1);
    let mut out = Chunk::new(2);
    assert_eq!(aggregate.apply(&second, &mut interner, &mut out).unwrap_err().code, "CROWN-OVERFLOW");
    assert_eq!((out.len(), aggregate.rows()), (0, 1));
    assert_eq!(aggregate.weight(&[a, i64::MAX as Word], 0), 1);
    second.columns[0][1] = -1i64 as Word;
    aggregate.apply(&second, &mut interner, &mut out).unwrap();
    assert_eq!(out.weights, [1, -1, 1]);
    second.weights.fill(-1);
    aggregate.apply(&second, &mut interner, &mut Chunk::new(2)).unwrap();
    assert_eq!((aggregate.rows(), aggregate.weight(&[a, i64::MAX as Word], 0)), (1, 1));
}

#[test]
fn oracle_top() {
    let order = json!([
        {"expression": column("f"), "descending": true, "nulls_first": false},
        {"expression": column("s"), "descending": false, "nulls_first": false}
    ]);
    for seed in 0..40u64 {
        let (limit, offset) = ([0, 1, 3, 10][seed as usize % 4], [0, 0, 2, 5][seed as usize / 4 % 4]);
        let stage = read(json!({"id": "$t", "input": "$i", "order": order, "limit": limit, "offset": offset}));
        let columns = input_columns();
        let nulls_last = |left: Option<Word>, right: Option<Word>, kind, interner: &Interner| match (left, right) {
            (Some(left), Some(right)) => compare(kind, left, right, interner),
            (left, right) => left.is_none().cmp(&right.is_none()),
        };
        let recompute = |rows: &BTreeMap<Row, i64>, interner: &Interner| {
            let copies = rows.iter().flat_map(|(row, weight)| std::iter::repeat_n(row, *weight as usize));
            let mut sorted: Vec<&Row> = copies.collect();
            sorted.sort_by(|left, right| {
                let by_float = match (left[2], right[2]) {
                    (Some(left), Some(right)) => compare(DataType::Float64, right, left, interner),
                    (left, right) => left.is_none().cmp(&right.is_none()),
                };
                by_float.then_with(|| nulls_last(left[1], right[1], DataType::String, interner)).then_with(|| {
                    let by_column = |column: usize| match (left[column], right[column]) {
                        (Some(left), Some(right)) => compare(columns[column].1, left, right, interner),
                        (left, right) => left.is_some().cmp(&right.is_some()),
                    };
                    (0..4).map(by_column).find(|order| *order != Ordering::Equal).unwrap_or(Ordering::Equal)
                })
            });
            let mut result = Shown::new();
            for row in sorted.into_iter().skip(offset).take(limit) {
                *result.entry(texts(&columns, row, interner)).or_default() += 1;
            }
            result
        };
        run(&mut Top::new(&stage, &columns).unwrap(), seed, &recompute);
    }
}

#[test]
fn oracle_top_of_each_key() {
    let order = json!([{"expression": column("f"), "descending": true, "nulls_first": false}]);
    let functions = ["row_number", "rank", "dense_rank"];
    for seed in 0..54u64 {
        let (by, limit) = (functions[seed as usize % 3], [1, 2, 5][seed as usize / 3 % 3]);
        let shown_ranks = [&functions[..0], &functions[1..], &functions[..]][seed as usize / 9 % 3];
        let partition = if seed % 2 == 0 { json!(["g"]) } else { json!(["s", "g"]) };
        let ranks: Vec<_> = shown_ranks.iter().map(|name| json!({"name": name, "function": name})).collect();
        let stage = read(json!({"id": "$t", "input": "$i", "order": order, "limit": limit, "offset": 0,
            "partition": partition, "by": by, "ranks": ranks}));
        let columns = input_columns();
        let recompute = |rows: &BTreeMap<Row, i64>, interner: &Interner| {
            let mut partitions: BTreeMap<Row, Vec<&Row>> = BTreeMap::new();
            for (row, weight) in rows {
                let key = if seed % 2 == 0 { vec![row[0]] } else { vec![row[1], row[0]] };
                partitions.entry(key).or_default().extend(std::iter::repeat_n(row, *weight as usize));
            }
            let mut result = Shown::new();
            for mut rows in partitions.into_values() {
                let by_float = |left: &Row, right: &Row| match (left[2], right[2]) {
                    (Some(left), Some(right)) => compare(DataType::Float64, right, left, interner),
                    (left, right) => left.is_none().cmp(&right.is_none()),
                };
                rows.sort_by(|left, right| {
                    by_float(left, right).then_with(|| {
                        let by_column = |column: usize| match (left[column], right[column]) {
                            (Some(left), Some(right)) => compare(columns[column].1, left, right, interner),
                            (left, right) => left.is_some().cmp(&right.is_some()),
                        };
                        (0..4).map(by_column).find(|order| *order != Ordering::Equal).unwrap_or(Ordering::Equal)
                    })
                });
                let (mut rank, mut dense_rank) = (0, 0);
                for (position, row) in rows.iter().enumerate() {
                    if position == 0 || by_float(rows[position - 1], row) != Ordering::Equal {
                        (rank, dense_rank) = (position + 1, dense_rank + 1);
                    }
                    let value = |name: &str| match name {
                        "row_number" => position + 1,
                        "rank" => rank,
                        _ => dense_rank,
                    };
                    if value(by) <= limit {
                        let mut shown = texts(&columns, row, interner);
                        shown.extend(shown_ranks.iter().map(|name| value(name).to_string()));
                        *result.entry(shown).or_default() += 1;
                    }
                }
            }
            result
        };
        run(&mut Top::new(&stage, &columns).unwrap(), seed, &recompute);
    }
}

#[test]
fn oracle_set_operations() {
    let cases = ["union", "except", "intersect"].into_iter().flat_map(|name| [(name, false), (name, true)]);
    for (seed, (operator, all)) in (0..24).zip(cases.cycle()) {
        let mut interner = Interner::default();
        let mut sources = [Source::new(seed, &mut interner), Source::new(seed + 1000, &mut interner)];
        for source in &mut sources {
            // Few different rows, so that the inputs overlap.
            source.domains[2].truncate(1);
            source.domains[3].truncate(1);
        }
        let columns = input_columns();
        let mut inputs = [Materialize::new(&columns), Materialize::new(&columns)];
        let stage = read(json!({"id": "$s", "operator": operator, "all": all, "inputs": ["$l", "$r"]}));
        let operation = SetOperation::new(&stage, &columns, &columns).unwrap();
        let mut total = Shown::new();
        for step in 0..40 {
            let mut changes = [Chunk::new(4), Chunk::new(4)];
            for side in 0..2 {
                let batch = if step % 20 == 19 { sources[side].delete_all() } else { sources[side].batch(step) };
                inputs[side].apply(&batch, &mut interner, &mut changes[side]).unwrap();
            }
            let lookups: [&dyn Lookup; 2] = [&inputs[0], &inputs[1]];
            let mut out = Chunk::new(4);
            operation.apply([&changes[0], &changes[1]], lookups, &mut interner, &mut out).unwrap();
            accumulate(&mut total, shown(&out, &columns, &interner));
            let mut expected = Shown::new();
            for row in sources[0].rows.keys().chain(sources[1].rows.keys()) {
                let [m, n] = [0, 1].map(|side: usize| sources[side].rows.get(row).copied().unwrap_or(0));
                let weight = match (operator, all) {
                    ("union", true) => m + n,
                    ("union", false) => 1,
                    ("except", true) => (m - n).max(0),
                    ("except", false) => i64::from(n == 0),
                    (_, true) => m.min(n),
                    (_, false) => m.min(n).min(1),
                };
                if weight > 0 {
                    expected.insert(texts(&columns, row, &interner), weight);
                }
            }
            assert_eq!(total, expected, "{operator} all={all} step {step}");
            let mut all_rows = Shown::new();
            for (side, input) in inputs.iter().enumerate() {
                let (mut rows, mut out) = (Chunk::new(4), Chunk::new(4));
                input.read(0, usize::MAX, &mut rows);
                operation.read(side, &rows, lookups[1 - side], &mut out).unwrap();
                accumulate(&mut all_rows, shown(&out, &columns, &interner));
            }
            assert_eq!(all_rows, expected, "{operator} all={all} step {step}");
            interner.sweep();
        }
        sources.iter().for_each(|source| source.release(&mut interner));
        interner.sweep();
        assert_eq!(interner.len(), 0);
    }
}

#[test]
fn oracle_map() {
    let add_one = json!({"kind": "call", "function": "add", "type": "int64",
        "arguments": [column("g"), {"kind": "literal", "value": 1, "type": "int64"}]});
    let positive = json!({"kind": "call", "function": "gt", "type": "boolean",
        "arguments": [column("g"), {"kind": "literal", "value": 0, "type": "int64"}]});
    let output = |name: &str, kind: &str, expression: Json| json!({"name": name, "type": kind, "nullable": true, "expression": expression});
    let columns = input_columns();
    let computed = json!({"id": "$m", "input": "$i", "filter": positive,
        "columns": [output("t", "string", column("s")), output("h", "int64", add_one)]});
    let reversed = ["w", "f", "s", "g"].map(|name| output(name, "unused", column(name)));
    let reversed = json!({"id": "$m", "input": "$i", "filter": null, "columns": reversed});
    let maps = [Map::new(&read(computed), &columns).unwrap(), Map::new(&read(reversed), &columns).unwrap()];
    assert_eq!(maps.each_ref().map(Map::injective), [false, true]);
    for seed in 0..20 {
        let mut interner = Interner::default();
        let mut source = Source::new(seed, &mut interner);
        let mut totals = [Shown::new(), Shown::new()];
        for step in 0..30 {
            let batch = source.batch(step);
            for (map, total) in maps.iter().zip(&mut totals) {
                let mut out = Chunk::new(map.columns().len());
                map.apply(&batch, &mut interner, &mut out).unwrap();
                accumulate(total, shown(&out, map.columns(), &interner));
            }
            let mut expected = [Shown::new(), Shown::new()];
            for (row, weight) in &source.rows {
                let value = |column: usize| text(columns[column].1, row[column], &interner);
                if let Some(g) = row[0].map(|word| word as i64).filter(|g| *g > 0) {
                    *expected[0].entry(vec![value(1), (g + 1).to_string()]).or_default() += weight;
                }
                expected[1].insert((0..4).rev().map(value).collect(), *weight);
            }
            assert_eq!(totals, expected, "seed {seed} step {step}");
        }
    }
}

#[test]
fn a_map_that_fails_leaves_its_output_as_it_was() {
    let fails = json!({"kind": "call", "function": "modulo", "type": "int64",
        "arguments": [{"kind": "literal", "value": 1, "type": "int64"}, column("g")]});
    let stage = json!({"id": "$m", "input": "$i", "filter": null,
        "columns": [{"name": "x", "type": "int64", "nullable": true, "expression": fails}]});
    let map = Map::new(&read(stage), &input_columns()[..1]).unwrap();
    let mut input = Chunk::new(1);
    input.push(&[2], 0, 1);
    input.push(&[0], 0, 1);
    let mut out = Chunk::new(1);
    out.push(&[7], 0, 1);
    let error = map.apply(&input, &mut Interner::default(), &mut out).unwrap_err();
    assert_eq!((error.code, out.columns[0].as_slice()), ("CROWN-DIVIDE-BY-ZERO", &[7][..]));
}

/// Windows of ever-new keys must not leave anything behind, nor may deleting everything.
#[test]
fn memory_follows_the_live_rows() {
    let columns = input_columns();
    let top = json!({"id": "$t", "input": "$i", "limit": 5, "offset": 0,
        "order": [{"expression": column("g"), "descending": false, "nulls_first": true}]});
    let running = json!({"name": "m", "function": "max", "argument": column("s"), "type": "string"});
    let window = json!({"id": "$w", "input": "$i", "partition": ["g"],
        "order": [{"expression": column("f"), "descending": false, "nulls_first": true}],
        "columns": [
            {"name": "l", "function": "lag", "type": "string", "arguments": [column("s"), column("s")], "offset": 1,
             "ignore_nulls": false, "frame": null, "aggregate": null},
            {"name": "r", "function": "aggregate", "type": "string", "arguments": [], "offset": 0,
             "ignore_nulls": false, "frame": {"unit": "range", "start": null, "end": 0}, "aggregate": running}]});
    let stages: [Box<dyn Kept>; 5] = [
        Box::new(WindowFunctions::new(&read(window), &columns).unwrap()),
        Box::new(Distinct::new(&columns)),
        Box::new(Materialize::new(&columns)),
        Box::new(Aggregate::new(&aggregate_stage(&["s"], false), &columns).unwrap()),
        Box::new(Top::new(&read(top), &columns).unwrap()),
    ];
    for mut stage in stages {
        let mut interner = Interner::default();
        let mut window: Vec<Vec<Word>> = Vec::new();
        let mut after = Vec::new();
        let width = stage.shape().len();
        let feed = |stage: &mut dyn Kept, rows: &[Vec<Word>], weight: i64, interner: &mut Interner| {
            let mut chunk = Chunk::new(4);
            rows.iter().for_each(|row| chunk.push(row, 0, weight));
            stage.feed(&chunk, interner, &mut Chunk::new(width)).unwrap();
            interner.sweep();
        };
        for generation in 0..20u64 {
            let mut next = Vec::new();
            for number in 0..2000u64 {
                let value = generation * 2000 + number;
                let string = interner.intern(format!("key {value}").as_bytes());
                let decimal = interner.intern(&i128::from(value).to_le_bytes());
                next.push(vec![value, string, float_word(value as f64), decimal]);
            }
            feed(&mut *stage, &next, 1, &mut interner);
            feed(&mut *stage, &window, -1, &mut interner);
            window = next;
            after.push(stage.size().1 + interner.bytes());
        }
        assert!(after[19] <= after[1] + after[1] / 20, "{after:?}");
        feed(&mut *stage, &window, -1, &mut interner);
        assert_eq!((stage.size().0, interner.len()), (0, 0));
        assert!(stage.size().1 < 20_000, "{} bytes for no rows", stage.size().1);
    }
}
