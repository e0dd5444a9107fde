//! What both peers share: the stream file, the running totals and the line of JSON at the end.
//!
//! A stream file has one update a line: `+` or `-`, table number, then the table's columns,
//! separated by tabs. NULL is an empty field.

use std::io::{BufRead, BufReader};
use std::time::Instant;

/// A row of any of the tables that a family of queries reads, made from its line before the clock
/// starts.
pub trait FromLine {
    fn from_line(table: &str, columns: std::str::Split<char>) -> Self;
}

pub struct Update<Row> {
    pub weight: i64,
    pub row: Row,
}

pub struct Arguments<Row> {
    pub query: String,
    pub updates: Vec<Update<Row>>,
    /// Updates between two refreshes.
    pub batch: usize,
    /// The checksum is also taken after this many updates.
    pub mark: usize,
    pub filter: u64,
    pub threads: usize,
    pub seconds: f64,
    /// The last updates before the mark that are a batch each, whose times are told; 0 for none.
    pub singles: usize,
}

/// The first argument, which tells what rows the others are about.
pub fn query() -> String {
    std::env::args().nth(1).expect("missing argument query")
}

pub fn arguments<Row: FromLine>() -> Arguments<Row> {
    let query = query();
    let mut values = std::env::args().skip(2);
    let mut next = |name: &str| values.next().unwrap_or_else(|| panic!("missing argument {name}"));
    let (path, tables) = (next("stream"), next("tables"));
    let tables: Vec<&str> = tables.split(',').collect();
    let mut number = |name: &str| next(name).parse::<f64>().unwrap_or_else(|_| panic!("{name} is not a number"));
    let (batch, mark, filter) = (number("batch") as usize, number("mark") as usize, number("filter") as u64);
    let (threads, seconds, singles) = (number("threads") as usize, number("seconds"), number("singles") as usize);
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let updates = BufReader::new(file)
        .lines()
        .map(|line| {
            let line = line.expect("readable line");
            let mut fields = line.split('\t');
            let weight = if fields.next() == Some("+") { 1 } else { -1 };
            let table = integer(&mut fields).expect("table number") as usize;
            Update { weight, row: Row::from_line(tables[table], fields) }
        })
        .collect();
    Arguments { query, updates, batch, mark, filter, threads, seconds, singles }
}

/// The next column; None for NULL and where there is none.
pub fn integer(columns: &mut std::str::Split<char>) -> Option<u64> {
    columns.next().filter(|field| !field.is_empty()).map(|field| field.parse().expect("integer"))
}

#[derive(Clone, Copy, Default)]
pub struct Totals {
    pub inserted: u64,
    pub deleted: u64,
    pub checksum: u64,
}

impl Totals {
    pub fn add(&mut self, row: &[u64], weight: i64) {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for value in row {
            hash = (hash ^ value).wrapping_mul(0x0000_0100_0000_01b3);
            hash ^= hash >> 32;
        }
        self.checksum = self.checksum.wrapping_add(hash.wrapping_mul(weight as u64));
        if weight > 0 {
            self.inserted += weight as u64;
        } else {
            self.deleted += weight.unsigned_abs();
        }
    }
}

/// The answer at the mark, and how much memory the process has taken for it.
#[derive(Clone, Copy, Default)]
pub struct Mark {
    pub totals: Totals,
    pub growth: u64,
}

/// `laps` are the seconds of the single updates.
pub fn report(started: Instant, done: usize, wanted: usize, totals: Totals, mark: Mark, laps: &[f64]) {
    println!(
        "{{\"seconds\": {}, \"updates\": {done}, \"finished\": {}, \"inserted\": {}, \"deleted\": {}, \"checksum\": {}, \"mark_checksum\": {}, \"growth_bytes\": {}, \"laps\": {laps:?}}}",
        started.elapsed().as_secs_f64(),
        done == wanted,
        totals.inserted,
        totals.deleted,
        totals.checksum,
        mark.totals.checksum,
        mark.growth,
    );
}

/// The resident memory of this process, in bytes; 0 where the system does not tell.
pub fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

impl<Row> Arguments<Row> {
    /// The stream in batches, with a cut at the mark, so that every engine stops there.
    pub fn batches(&self) -> impl Iterator<Item = &[Update<Row>]> {
        let (before, after) = self.updates.split_at(self.mark.min(self.updates.len()));
        let (before, singles) = before.split_at(before.len() - self.singles.min(before.len()));
        before.chunks(self.batch).chain(singles.chunks(1)).chain(after.chunks(self.batch))
    }

    /// Whether the update after `done` others is one whose time is reported.
    pub fn is_single(&self, done: usize) -> bool {
        done < self.mark && done + self.singles >= self.mark
    }
}
