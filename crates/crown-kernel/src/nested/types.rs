//! Nested types: their names, and one copy of each for the whole process.

use crate::error::{KernelError, Result};
use crate::types::DataType;
use std::collections::HashSet;
use std::sync::{LazyLock, PoisonError, RwLock};

/// What a nested type consists of.
#[derive(Debug, PartialEq, Eq, Hash)]
pub enum Nested {
    /// `array<type>`
    Array(DataType),
    /// `struct<`name`:type,...>`
    Struct(Vec<(String, DataType)>),
    /// `map<key,value>`
    Map(DataType, DataType),
}

impl Nested {
    /// The type as SQL writes it.
    pub fn sql_name(&self) -> String {
        match self {
            Nested::Array(element) => format!("ARRAY<{}>", element.sql_name()),
            Nested::Map(key, value) => format!("MAP<{}, {}>", key.sql_name(), value.sql_name()),
            Nested::Struct(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, field)| format!("{name}: {}", field.sql_name())).collect();
                format!("STRUCT<{}>", fields.join(", "))
            }
        }
    }
}

/// Types may be nested this deep.
const DEEPEST: usize = 32;

/// The types of all plans of the process: there are as many as plans have different ones.
static KNOWN: LazyLock<RwLock<HashSet<&'static Nested>>> = LazyLock::new(RwLock::default);

/// The one copy of a nested type.
pub fn known(nested: Nested) -> DataType {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(&nested) {
        return DataType::Nested(found);
    }
    let leaked: &'static Nested = Box::leak(Box::new(nested));
    known.insert(leaked);
    DataType::Nested(leaked)
}

/// Reads the name of a nested type; `None` if it is not one.
pub fn parse(name: &str) -> Option<DataType> {
    let mut rest = name;
    let found = parse_part(&mut rest, 0)?;
    rest.is_empty().then_some(found)
}

fn parse_part(rest: &mut &str, depth: usize) -> Option<DataType> {
    if depth > DEEPEST {
        return None;
    }
    if let Some(inside) = rest.strip_prefix("array<") {
        *rest = inside;
        let element = parse_part(rest, depth + 1)?;
        eat(rest, '>')?;
        return Some(known(Nested::Array(element)));
    }
    if let Some(inside) = rest.strip_prefix("map<") {
        *rest = inside;
        let key = parse_part(rest, depth + 1)?;
        eat(rest, ',')?;
        let value = parse_part(rest, depth + 1)?;
        eat(rest, '>')?;
        return Some(known(Nested::Map(key, value)));
    }
    if let Some(inside) = rest.strip_prefix("struct<") {
        *rest = inside;
        let mut fields = Vec::new();
        loop {
            let name = quoted(rest)?;
            eat(rest, ':')?;
            fields.push((name, parse_part(rest, depth + 1)?));
            if eat(rest, ',').is_none() {
                break;
            }
        }
        eat(rest, '>')?;
        return Some(known(Nested::Struct(fields)));
    }
    let end = flat_end(rest);
    let (name, after) = rest.split_at(end);
    *rest = after;
    DataType::parse(name).ok()
}

/// Where a flat type ends: at the first comma or bracket that is not within parentheses.
fn flat_end(text: &str) -> usize {
    let mut inside = false;
    for (at, character) in text.char_indices() {
        match character {
            '(' => inside = true,
            ')' => inside = false,
            ',' | '>' if !inside => return at,
            _ => {}
        }
    }
    text.len()
}

fn eat(rest: &mut &str, wanted: char) -> Option<()> {
    *rest = rest.strip_prefix(wanted)?;
    Some(())
}

fn quoted(rest: &mut &str) -> Option<String> {
    eat(rest, '`')?;
    let mut name = String::new();
    loop {
        let end = rest.find('`')?;
        name.push_str(&rest[..end]);
        *rest = &rest[end + 1..];
        if eat(rest, '`').is_none() {
            return Some(name);
        }
        name.push('`');
    }
}

/// The type of the elements; an error for what is not an array.
pub fn element_type(data_type: DataType) -> Result<DataType> {
    match data_type {
        DataType::Nested(Nested::Array(element)) => Ok(*element),
        _ => Err(KernelError::plan("CROWN-PLAN-MALFORMED", format!("{data_type:?} is not an array"))),
    }
}
