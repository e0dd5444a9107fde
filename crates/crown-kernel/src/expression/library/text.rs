//! Functions of strings. Positions and lengths are in characters (Unicode code points), from 1.

use super::super::characters::substring;
use super::super::value::Value;
use super::super::{overflow, utf8};
use super::{boolean, integer, string, LONGEST_TEXT};
use crate::error::{KernelError, Result};
use crate::types::DataType;

type Evaluated<'a> = Result<Option<Value<'a>>>;

fn text<'v>(value: &'v Value) -> Result<&'v str> {
    utf8(value.bytes())
}

fn limited(bytes: Option<usize>) -> Result<usize> {
    bytes.filter(|bytes| *bytes <= LONGEST_TEXT).ok_or_else(|| overflow("a string (256 MB)"))
}

pub fn replace<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    if arguments[1].bytes().is_empty() {
        return Ok(Some(arguments[0].clone()));
    }
    let (subject, wanted, by) = (text(&arguments[0])?, text(&arguments[1])?, text(&arguments[2])?);
    if by.len() > wanted.len() {
        limited(subject.matches(wanted).count().checked_mul(by.len()))?;
    }
    string(subject.replace(wanted, by))
}

pub fn starts_with<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    boolean(arguments[0].bytes().starts_with(arguments[1].bytes()))
}

pub fn ends_with<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    boolean(arguments[0].bytes().ends_with(arguments[1].bytes()))
}

pub fn contains<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    boolean(text(&arguments[0])?.contains(text(&arguments[1])?))
}

fn trimmed<'a>(arguments: &[Value<'a>], start: bool, end: bool) -> Evaluated<'a> {
    let (mut subject, set) = (text(&arguments[0])?, text(&arguments[1])?);
    if start {
        subject = subject.trim_start_matches(|character| set.contains(character));
    }
    if end {
        subject = subject.trim_end_matches(|character| set.contains(character));
    }
    string(subject)
}

pub fn trim<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    trimmed(arguments, true, true)
}

pub fn ltrim<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    trimmed(arguments, true, false)
}

pub fn rtrim<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    trimmed(arguments, false, true)
}

/// The text cut to `length`, and what fills it up to that.
fn padded<'v>(arguments: &'v [Value]) -> Result<(&'v str, String)> {
    let (subject, length, pad) = (text(&arguments[0])?, arguments[1].integer(), text(&arguments[2])?);
    let missing = length - subject.chars().count() as i64;
    if missing <= 0 || pad.is_empty() {
        return Ok((substring(subject, 1, length), String::new()));
    }
    limited(usize::try_from(missing).ok().and_then(|missing| missing.checked_mul(4)))?;
    Ok((subject, pad.chars().cycle().take(missing as usize).collect()))
}

pub fn lpad<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let (subject, padding) = padded(arguments)?;
    string(padding + subject)
}

pub fn rpad<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let (subject, padding) = padded(arguments)?;
    string(subject.to_owned() + &padding)
}

pub fn repeat<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let (subject, times) = (arguments[0].bytes(), usize::try_from(arguments[1].integer()).unwrap_or(0));
    limited(subject.len().checked_mul(times))?;
    string(subject.repeat(times))
}

pub fn reverse<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    string(text(&arguments[0])?.chars().rev().collect::<String>())
}

/// The first place of a character in the second text counts; without a partner in the third it is
/// dropped.
pub fn translate<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let (subject, from, to) = (text(&arguments[0])?, text(&arguments[1])?, text(&arguments[2])?);
    let translated = subject.chars().filter_map(|character| match from.chars().position(|other| other == character) {
        None => Some(character),
        // In Spark's dictionary a NUL means that the character goes.
        Some(place) => to.chars().nth(place).filter(|by| *by != '\0'),
    });
    string(translated.collect::<String>())
}

pub fn overlay<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let (subject, by) = (text(&arguments[0])?, text(&arguments[1])?);
    let (start, length) = (arguments[2].integer() as i32, arguments[3].integer() as i32);
    let length = if length >= 0 { length } else { by.chars().count() as i32 };
    let (before, after) = (i64::from(start.saturating_sub(1)), i64::from(start.saturating_add(length)));
    string([substring(subject, 1, before), by, substring(subject, after, i64::MAX)].concat())
}

pub fn split_part<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let (subject, delimiter, part) = (text(&arguments[0])?, text(&arguments[1])?, arguments[2].integer());
    if part == 0 {
        return Err(KernelError::invalid("CROWN-FUNCTION", "the part number of split_part must not be 0"));
    }
    let parts: Vec<&str> = if delimiter.is_empty() { vec![subject] } else { subject.split(delimiter).collect() };
    let index = if part > 0 { part - 1 } else { parts.len() as i64 + part };
    string(usize::try_from(index).ok().and_then(|index| parts.get(index)).copied().unwrap_or(""))
}

/// Delimiters are counted even where they overlap, as in Spark.
pub fn substring_index<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let (subject, delimiter, count) = (arguments[0].bytes(), arguments[1].bytes(), arguments[2].integer());
    if delimiter.is_empty() || count == 0 {
        return string("");
    }
    let found = |start: &usize| subject[*start..].starts_with(delimiter);
    let nth = usize::try_from(count.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let mut starts = 0..(subject.len() + 1).saturating_sub(delimiter.len());
    let part = if count > 0 {
        starts.filter(found).nth(nth).map(|start| &subject[..start])
    } else {
        starts.by_ref().rev().filter(found).nth(nth).map(|start| &subject[start + delimiter.len()..])
    };
    string(part.unwrap_or(subject))
}

pub fn soundex<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    const CODES: &[u8; 26] = b"01230127022455012623017202";
    let bytes = arguments[0].bytes();
    let code = |byte: u8| byte.is_ascii_alphabetic().then(|| CODES[usize::from(byte.to_ascii_uppercase() - b'A')]);
    let Some(mut last) = bytes.first().copied().and_then(code) else { return string(bytes) };
    let mut result = vec![bytes[0].to_ascii_uppercase()];
    for byte in &bytes[1..] {
        match code(*byte) {
            None => last = b'0',
            Some(b'7') => {}
            Some(code) => {
                if code != b'0' && code != last {
                    result.push(code);
                    if result.len() == 4 {
                        break;
                    }
                }
                last = code;
            }
        }
    }
    result.resize(4, b'0');
    string(result)
}

pub fn chr<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let code = arguments[0].integer();
    string(if code < 0 { String::new() } else { char::from(code as u8).to_string() })
}

pub fn ascii<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    integer(text(&arguments[0])?.chars().next().map_or(0, |first| i64::from(u32::from(first))))
}

pub fn octet_length<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    integer(arguments[0].bytes().len() as i64)
}

pub fn bit_length<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    integer(arguments[0].bytes().len() as i64 * 8)
}

/// Where the first text is in the second, from a position on; 0 if it isn't.
pub fn locate<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let (wanted, subject, from) = (text(&arguments[0])?, text(&arguments[1])?, arguments[2].integer());
    if from < 1 {
        return integer(0);
    }
    if wanted.is_empty() {
        return integer(1);
    }
    let Some((start, _)) = subject.char_indices().nth((from - 1) as usize) else { return integer(0) };
    let found = subject[start..].find(wanted);
    integer(found.map_or(0, |offset| subject[..start + offset].chars().count() as i64 + 1))
}

pub fn find_in_set<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let (wanted, set) = (text(&arguments[0])?, text(&arguments[1])?);
    if wanted.contains(',') {
        return integer(0);
    }
    integer(set.split(',').position(|item| item == wanted).map_or(0, |place| place as i64 + 1))
}

pub fn levenshtein<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let one: Vec<char> = text(&arguments[0])?.chars().collect();
    let other: Vec<char> = text(&arguments[1])?.chars().collect();
    let mut distances: Vec<usize> = (0..=other.len()).collect();
    for (row, left) in one.iter().enumerate() {
        let mut diagonal = row;
        distances[0] = row + 1;
        for (column, right) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = distances[column + 1];
            distances[column + 1] = replaced.min(diagonal + 1).min(distances[column] + 1);
        }
    }
    integer(distances[other.len()] as i64)
}

pub fn hex_of_integer<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    string(format!("{:X}", arguments[0].integer()))
}

pub fn hex_of_bytes<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    string(arguments[0].bytes().iter().flat_map(|byte| [hex(byte >> 4), hex(byte & 15)]).collect::<Vec<u8>>())
}

fn hex(digit: u8) -> u8 {
    b"0123456789ABCDEF"[usize::from(digit)]
}

/// Decodes hexadecimal digits; NULL if there are other characters.
pub fn unhex<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let digits = arguments[0].bytes();
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let Some(digits) = digits.iter().map(digit).collect::<Option<Vec<u8>>>() else { return Ok(None) };
    // The first of an odd number of digits stands alone.
    let (first, rest) = digits.split_at(digits.len() % 2);
    string(first.iter().copied().chain(rest.chunks(2).map(|pair| pair[0] << 4 | pair[1])).collect::<Vec<u8>>())
}

pub fn base64<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = Vec::new();
    for three in arguments[0].bytes().chunks(3) {
        let bits = three.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= three.len() { letter } else { b'=' });
        }
    }
    string(out)
}

pub fn binary_digits<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    string(format!("{:b}", arguments[0].integer()))
}
