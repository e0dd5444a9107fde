//! Values within JSON text. A path is its steps, `.name` or `[position]`, with a NUL character
//! between them.

use super::super::value::Value;
use super::{string, utf8_of};
use crate::error::Result;
use crate::types::DataType;
use serde_json::Value as Json;

/// Spark's `get_json_object`: a string without its quotes, anything else as JSON; NULL where there
/// is nothing, or `null`.
pub fn text<'a>(arguments: &[Value<'a>], _: DataType) -> Result<Option<Value<'a>>> {
    match found(arguments)? {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => string(text),
        Some(other) => string(other.to_string()),
    }
}

/// The value as JSON.
pub fn value<'a>(arguments: &[Value<'a>], _: DataType) -> Result<Option<Value<'a>>> {
    match found(arguments)? {
        None => Ok(None),
        Some(found) => string(found.to_string()),
    }
}

fn found(arguments: &[Value]) -> Result<Option<Json>> {
    let (text, path) = (utf8_of(&arguments[0])?, utf8_of(&arguments[1])?);
    let Ok(mut json) = serde_json::from_str::<Json>(text) else { return Ok(None) };
    for step in path.split('\0').filter(|step| !step.is_empty()) {
        let next = match step.strip_prefix('.') {
            Some(name) => json.get_mut(name),
            None => {
                let position = step.trim_matches(['[', ']']).parse::<usize>().ok();
                position.and_then(|position| json.get_mut(position))
            }
        };
        match next {
            Some(next) => json = next.take(),
            None => return Ok(None),
        }
    }
    Ok(Some(json))
}
