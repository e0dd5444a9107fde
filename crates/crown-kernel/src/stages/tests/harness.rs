//! Random inputs of a stage, and the runner that compares its deltas with a recomputation.

use super::super::*;
use crate::chunk::Chunk;
use crate::error::Result;
use crate::random::Random;
use crate::store::interner::Interner;
use crate::types::{float_word, word_float};
use serde_json::{json, Value as Json};
use std::collections::BTreeMap;

pub(super) type Row = Vec<Option<Word>>;
/// Rows in a form that does not depend on the interner: one text per value.
pub(super) type Shown = BTreeMap<Vec<String>, i64>;

pub(super) fn input_columns() -> Columns {
    let columns = [("g", "int64"), ("s", "string"), ("f", "float64"), ("w", "decimal(30,2)")];
    columns.iter().map(|(name, kind)| (name.to_string(), DataType::parse(kind).unwrap())).collect()
}

pub(super) fn column(name: &str) -> Json {
    let kind = match name {
        "g" => "int64",
        "s" => "string",
        "f" => "float64",
        _ => "decimal(30,2)",
    };
    json!({"kind": "column", "name": name, "type": kind})
}

pub(super) fn read<T: serde::de::DeserializeOwned>(json: Json) -> T {
    serde_json::from_value(json).expect("the test's plan data is well-formed")
}

/// An input: a multiset of random rows, its words held by the test.
pub(super) struct Source {
    pub(super) random: Random,
    pub(super) domains: Vec<Vec<Word>>,
    pub(super) held: Vec<Word>,
    pub(super) rows: BTreeMap<Row, i64>,
}

impl Source {
    pub(super) fn new(seed: u64, interner: &mut Interner) -> Source {
        println!("seed {seed}");
        let strings = ["", "a", "ab", "b", "\0", "é"].map(|text| interner.intern(text.as_bytes()));
        let decimals = [-250i128, 0, 175, 10i128.pow(25)].map(|value| interner.intern(&value.to_le_bytes()));
        let held = [&strings[..], &decimals[..]].concat();
        held.iter().for_each(|word| interner.retain(*word));
        let floats = [-1.5, 0.0, 0.5, 2.0, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(float_word);
        let integers = [-2i64, 0, 1, 2, 3].map(|value| value as Word);
        let domains = vec![integers.to_vec(), strings.to_vec(), floats.to_vec(), decimals.to_vec()];
        Source { random: Random(seed), domains, held, rows: BTreeMap::new() }
    }

    pub(super) fn row(&mut self) -> Row {
        let random = &mut self.random;
        let pick = |domain: &Vec<Word>| (random.index(6) > 0).then(|| domain[random.index(domain.len())]);
        self.domains.iter().map(pick).collect()
    }

    /// A net batch that leaves no weight below 0.
    pub(super) fn batch(&mut self, size: usize) -> Chunk {
        let mut changes: BTreeMap<Row, i64> = BTreeMap::new();
        for _ in 0..size {
            let existing = self.rows.len();
            let row = match self.random.index(3) {
                0 if existing > 0 => self.rows.keys().nth(self.random.index(existing)).unwrap().clone(),
                _ => self.row(),
            };
            let now = self.rows.get(&row).copied().unwrap_or(0) + changes.get(&row).copied().unwrap_or(0);
            let weight = self.random.index(4) as i64 - 2;
            *changes.entry(row).or_default() += weight.max(-now);
        }
        self.commit(changes)
    }

    pub(super) fn delete_all(&mut self) -> Chunk {
        let changes = self.rows.iter().map(|(row, weight)| (row.clone(), -weight)).collect();
        self.commit(changes)
    }

    fn commit(&mut self, changes: BTreeMap<Row, i64>) -> Chunk {
        let mut chunk = Chunk::new(self.domains.len());
        for (row, weight) in changes {
            if weight == 0 {
                continue;
            }
            push(&mut chunk, &row, weight);
            let now = self.rows.entry(row.clone()).or_default();
            *now += weight;
            if *now == 0 {
                self.rows.remove(&row);
            }
        }
        chunk
    }

    pub(super) fn release(&self, interner: &mut Interner) {
        self.held.iter().for_each(|word| interner.release(*word));
    }
}

pub(super) fn push(chunk: &mut Chunk, row: &Row, weight: i64) {
    let words: Vec<Word> = row.iter().map(|value| value.unwrap_or(0)).collect();
    let nulls = row.iter().enumerate().map(|(column, value)| Nulls::from(value.is_none()) << column).sum();
    chunk.push(&words, nulls, weight);
}

pub(super) fn text(data_type: DataType, value: Option<Word>, interner: &Interner) -> String {
    let Some(word) = value else { return "NULL".into() };
    match data_type {
        DataType::String => String::from_utf8_lossy(interner.get(word)).into_owned(),
        DataType::Float64 => format!("{:?}", word_float(word)),
        kind if kind.interned() => crate::expression::wide(interner.get(word)).to_string(),
        _ => (word as i64).to_string(),
    }
}

pub(super) fn texts(columns: &[(String, DataType)], row: &[Option<Word>], interner: &Interner) -> Vec<String> {
    columns.iter().zip(row).map(|((_, kind), value)| text(*kind, *value, interner)).collect()
}

/// Rows of a chunk, which must have each row once and none with weight 0.
pub(super) fn shown(chunk: &Chunk, columns: &[(String, DataType)], interner: &Interner) -> Shown {
    let mut result = Shown::new();
    let mut words = Vec::new();
    for index in 0..chunk.len() {
        let nulls = chunk.read(index, &mut words);
        let row: Row = words.iter().enumerate().map(|(c, word)| (nulls >> c & 1 == 0).then_some(*word)).collect();
        assert_ne!(chunk.weights[index], 0);
        let repeated = result.insert(texts(columns, &row, interner), chunk.weights[index]);
        assert_eq!(repeated, None, "a row comes twice in one delta: {row:?}");
    }
    result
}

/// Adds a delta to the rows shown so far; no weight may fall below 0.
pub(super) fn accumulate(total: &mut Shown, delta: Shown) {
    for (row, weight) in delta {
        let now = total.entry(row.clone()).or_default();
        *now += weight;
        assert!(*now >= 0, "{row:?} goes more often than it came");
        if *now == 0 {
            total.remove(&row);
        }
    }
}

/// The stages with state, for one runner.
pub(super) trait Kept {
    fn has(&self, words: &[Word], nulls: Nulls, interner: &mut Interner) -> i64;
    fn shape(&self) -> Columns;
    fn feed(&mut self, input: &Chunk, interner: &mut Interner, out: &mut Chunk) -> Result<()>;
    fn all(&self, out: &mut Chunk);
    fn size(&self) -> (usize, usize);
}

macro_rules! kept {
    ($($stage:ty),*) => {$(
        impl Kept for $stage {
            fn has(&self, words: &[Word], nulls: Nulls, _: &mut Interner) -> i64 {
                self.weight(words, nulls)
            }
            fn shape(&self) -> Columns {
                self.columns().to_vec()
            }
            fn feed(&mut self, input: &Chunk, interner: &mut Interner, out: &mut Chunk) -> Result<()> {
                self.apply(input, interner, out)
            }
            fn all(&self, out: &mut Chunk) {
                let mut next = 0;
                while next < self.rows() {
                    next = self.read(next, 3, out);
                }
            }
            fn size(&self) -> (usize, usize) {
                (self.rows(), self.bytes())
            }
        }
    )*};
}

kept!(Distinct, Materialize, Aggregate);

impl Kept for WindowFunctions {
    fn has(&self, words: &[Word], nulls: Nulls, interner: &mut Interner) -> i64 {
        self.weight(words, nulls, interner)
    }
    fn shape(&self) -> Columns {
        self.columns().to_vec()
    }
    fn feed(&mut self, input: &Chunk, interner: &mut Interner, out: &mut Chunk) -> Result<()> {
        self.apply(input, interner, out)
    }
    fn all(&self, out: &mut Chunk) {
        let mut place = None;
        while self.read(&mut place, 3, out) {}
    }
    fn size(&self) -> (usize, usize) {
        (self.rows(), self.bytes())
    }
}

impl Kept for Top {
    fn has(&self, words: &[Word], nulls: Nulls, interner: &mut Interner) -> i64 {
        self.weight(words, nulls, interner)
    }
    fn shape(&self) -> Columns {
        self.columns().to_vec()
    }
    fn feed(&mut self, input: &Chunk, interner: &mut Interner, out: &mut Chunk) -> Result<()> {
        self.apply(input, interner, out)
    }
    fn all(&self, out: &mut Chunk) {
        let mut place = None;
        while self.read(&mut place, 3, out) {}
        assert_eq!(self.count(), out.weights.iter().map(|weight| i128::from(*weight)).sum::<i128>());
    }
    fn size(&self) -> (usize, usize) {
        (self.state_rows(), self.bytes())
    }
}

/// Random batches, then delete all: the sum of deltas, a full read and look-ups must all equal the
/// recomputation.
pub(super) fn run(stage: &mut dyn Kept, seed: u64, recompute: &dyn Fn(&BTreeMap<Row, i64>, &Interner) -> Shown) {
    let mut interner = Interner::default();
    let mut source = Source::new(seed, &mut interner);
    let columns = stage.shape();
    let mut total = Shown::new();
    for step in 0..60 {
        let batch = match step % 20 {
            19 => source.delete_all(),
            size => source.batch(size),
        };
        let mut out = Chunk::new(columns.len());
        stage.feed(&batch, &mut interner, &mut out).unwrap();
        accumulate(&mut total, shown(&out, &columns, &interner));
        interner.sweep();
        let expected = recompute(&source.rows, &interner);
        assert_eq!(total, expected, "seed {seed} step {step}");
        let mut all = Chunk::new(columns.len());
        stage.all(&mut all);
        assert_eq!(shown(&all, &columns, &interner), expected, "seed {seed} step {step}");
        let mut words = Vec::new();
        for index in 0..all.len() {
            let nulls = all.read(index, &mut words);
            assert_eq!(stage.has(&words, nulls, &mut interner), all.weights[index]);
            if nulls & 1 == 0 {
                words[0] = 99;
                assert_eq!(stage.has(&words, nulls, &mut interner), 0);
            }
        }
    }
    source.release(&mut interner);
    interner.sweep();
    assert_eq!(interner.len(), 0, "the stage still holds values");
}
