//! Functions of one value and literals that are compiled in advance: LIKE, regular expressions,
//! time patterns.

use super::like::Pattern;
use super::regex::{Piece, Regex};
use super::time_pattern::TimePattern;
use super::utf8;
use super::value::Value;
use crate::error::{KernelError, Result};
use std::borrow::Cow;

#[derive(Clone, Debug)]
pub(super) enum Matcher {
    Like(Pattern),
    Regex(Regex),
    Extract(Regex, usize),
    Replace(Regex, Vec<Piece>),
    WriteTime(TimePattern),
    ReadTime(TimePattern),
}

impl Matcher {
    /// The function `name` with its literals; `None` if there is no such function.
    pub fn new(name: &str, literals: &[Value]) -> Result<Option<Matcher>> {
        let text = |at: usize| match literals.get(at) {
            Some(Value::Bytes(bytes)) => utf8(bytes),
            _ => Err(KernelError::plan("CROWN-PLAN-MALFORMED", format!("'{name}' takes a literal pattern"))),
        };
        let takes = |count: usize| match literals.len() == count {
            true => Ok(()),
            false => Err(KernelError::plan("CROWN-PLAN-MALFORMED", format!("'{name}' takes {count} literals"))),
        };
        takes(if matches!(name, "regexp_extract" | "regexp_replace") { 2 } else { 1 })?;
        Ok(Some(match name {
            "like" => Matcher::Like(Pattern::new(text(0)?)?),
            "rlike" => Matcher::Regex(Regex::new(text(0)?)?),
            "regexp_extract" => {
                let regex = Regex::new(text(0)?)?;
                let Some(Value::Integer(group)) = literals.get(1) else { return Ok(None) };
                let group = regex.check_group(*group)?;
                Matcher::Extract(regex, group)
            }
            "regexp_replace" => {
                let regex = Regex::new(text(0)?)?;
                let by = regex.replacement(text(1)?)?;
                Matcher::Replace(regex, by)
            }
            "date_format" => Matcher::WriteTime(TimePattern::for_writing(text(0)?)?),
            "to_timestamp" => Matcher::ReadTime(TimePattern::for_reading(text(0)?)?),
            _ => return Ok(None),
        }))
    }

    pub fn apply<'a>(&self, value: Value<'a>) -> Result<Value<'a>> {
        if let Matcher::WriteTime(pattern) = self {
            return Ok(string(pattern.write(value.integer())));
        }
        let text = utf8(value.bytes())?;
        Ok(match self {
            Matcher::Like(pattern) => Value::Boolean(pattern.matches(text)),
            Matcher::Regex(regex) => Value::Boolean(regex.matches(text)),
            Matcher::Extract(regex, group) => string(regex.extract(text, *group)),
            Matcher::Replace(regex, by) => string(regex.replace(text, by)),
            Matcher::ReadTime(pattern) => Value::Integer(pattern.read(text)?),
            Matcher::WriteTime(_) => unreachable!("handled above, since it takes no text"),
        })
    }
}

fn string<'a>(text: impl Into<String>) -> Value<'a> {
    Value::Bytes(Cow::Owned(text.into().into_bytes()))
}
