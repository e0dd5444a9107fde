//! The rows of the two families of queries, with the columns that their plans use.

use crate::stream::{integer, FromLine};
use std::str::Split;

/// `table` is the place in the query's list of tables; of a table with one column the second is 0.
pub struct GraphRow {
    pub table: usize,
    pub columns: (u64, u64),
}

impl FromLine for GraphRow {
    fn from_line(table: &str, mut columns: Split<char>) -> Self {
        let table = match table {
            "G" | "g1" => 0,
            "V1" | "g2" => 1,
            "V2" | "g3" => 2,
            other => panic!("no such table: {other}"),
        };
        GraphRow { table, columns: (integer(&mut columns).expect("a number"), integer(&mut columns).unwrap_or(0)) }
    }
}

pub enum SocialRow {
    Person { id: u64, first_name: String, last_name: String },
    Knows { p1: u64, p2: u64 },
    Message { id: u64, creator: u64, reply_of: Option<u64> },
    MessageTag { message: u64, tag: u64 },
    Tag { id: u64, name: String },
}

impl FromLine for SocialRow {
    fn from_line(table: &str, columns: Split<char>) -> Self {
        let columns = &mut { columns };
        let number = |columns: &mut Split<char>| integer(columns).expect("a number");
        let text = |columns: &mut Split<char>| columns.next().expect("a string").to_string();
        match table {
            "person" => SocialRow::Person { id: number(columns), first_name: text(columns), last_name: text(columns) },
            "knows" => SocialRow::Knows { p1: number(columns), p2: number(columns) },
            "message" => {
                SocialRow::Message { id: number(columns), creator: number(columns), reply_of: integer(columns) }
            }
            "message_tag" => SocialRow::MessageTag { message: number(columns), tag: number(columns) },
            "tag" => SocialRow::Tag { id: number(columns), name: text(columns) },
            other => panic!("no such table: {other}"),
        }
    }
}

/// A string of an answer as it is hashed: its first seven bytes, the first one lowest.
pub fn word(text: &str) -> u64 {
    text.bytes().take(7).rev().fold(0, |word, byte| word << 8 | u64::from(byte))
}
