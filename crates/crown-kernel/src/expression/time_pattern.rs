//! Spark's date-time patterns (`yyyy-MM-dd HH:mm:ss`), for writing and for reading.
//!
//! Only letters whose meaning is the same on every Java version and locale are known; a pattern
//! with any other is refused when the plan is compiled.

use super::calendar::{civil, days, MICROS_PER_DAY, MICROS_PER_SECOND};
use crate::error::{KernelError, Result};

#[derive(Clone, Debug)]
pub(super) struct TimePattern {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Plain(char),
    /// A letter and how often it is repeated.
    Field(char, usize),
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

impl TimePattern {
    pub fn for_writing(text: &str) -> Result<TimePattern> {
        TimePattern::new(text, |letter, count| match letter {
            'y' => (1..=6).contains(&count),
            'M' | 'E' => (1..=4).contains(&count),
            'd' | 'H' | 'h' | 'm' | 's' => (1..=2).contains(&count),
            'D' => count == 1 || count == 3,
            'S' => (1..=6).contains(&count),
            'a' => count == 1,
            _ => false,
        })
    }

    /// For reading, each field once, and none directly after one of variable width.
    pub fn for_reading(text: &str) -> Result<TimePattern> {
        let pattern = TimePattern::new(text, |letter, count| match letter {
            'y' => count == 1 || count == 4,
            'M' | 'd' | 'H' | 'm' | 's' => (1..=2).contains(&count),
            'S' => (1..=6).contains(&count),
            _ => false,
        })?;
        let letters = pattern.pieces.iter().filter_map(|piece| match piece {
            Piece::Field(letter, _) => Some(*letter),
            Piece::Plain(_) => None,
        });
        let letters: Vec<char> = letters.collect();
        let twice = letters.iter().enumerate().any(|(at, letter)| letters[..at].contains(letter));
        let variable = |pair: &[Piece]| matches!(pair, [Piece::Field(_, 1) | Piece::Field('S', _), Piece::Field(..)]);
        if letters.is_empty() || twice || pattern.pieces.windows(2).any(variable) {
            return Err(unsupported(text));
        }
        Ok(pattern)
    }

    fn new(text: &str, known: impl Fn(char, usize) -> bool) -> Result<TimePattern> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut rest = text.chars().peekable();
        while let Some(character) = rest.next() {
            match character {
                '\'' if rest.next_if_eq(&'\'').is_some() => pieces.push(Piece::Plain('\'')),
                '\'' => loop {
                    match rest.next().ok_or_else(|| unsupported(text))? {
                        '\'' if rest.next_if_eq(&'\'').is_none() => break,
                        quoted => pieces.push(Piece::Plain(quoted)),
                    }
                },
                letter if letter.is_ascii_alphabetic() => {
                    let mut count = 1;
                    while rest.next_if_eq(&letter).is_some() {
                        count += 1;
                    }
                    if !known(letter, count) {
                        return Err(unsupported(text));
                    }
                    pieces.push(Piece::Field(letter, count));
                }
                '[' | ']' | '{' | '}' | '#' => return Err(unsupported(text)),
                other => pieces.push(Piece::Plain(other)),
            }
        }
        Ok(TimePattern { text: text.into(), pieces })
    }

    pub fn write(&self, micros: i64) -> String {
        let (date, time) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
        let (year, month, day) = civil(date);
        let seconds = time / MICROS_PER_SECOND;
        let weekday = WEEKDAYS[(date + 3).rem_euclid(7) as usize];
        let name = MONTHS[(month - 1) as usize];
        let mut written = String::new();
        for piece in &self.pieces {
            let number = match *piece {
                Piece::Plain(character) => {
                    written.push(character);
                    continue;
                }
                Piece::Field('y', count) => {
                    written.push_str(&written_year(year, count));
                    continue;
                }
                Piece::Field('M', 3) => {
                    written.push_str(&name[..3]);
                    continue;
                }
                Piece::Field('M', 4) => {
                    written.push_str(name);
                    continue;
                }
                Piece::Field('E', count) => {
                    written.push_str(if count == 4 { weekday } else { &weekday[..3] });
                    continue;
                }
                Piece::Field('a', _) => {
                    written.push_str(if seconds < 43_200 { "AM" } else { "PM" });
                    continue;
                }
                Piece::Field('S', count) => {
                    written.push_str(&format!("{:06}", time % MICROS_PER_SECOND)[..count]);
                    continue;
                }
                Piece::Field('M', _) => month,
                Piece::Field('d', _) => day,
                Piece::Field('D', _) => date - days(year, 1, 1).unwrap_or(date) + 1,
                Piece::Field('H', _) => seconds / 3600,
                Piece::Field('h', _) => (seconds / 3600 + 11) % 12 + 1,
                Piece::Field('m', _) => seconds / 60 % 60,
                Piece::Field(..) => seconds % 60,
            };
            let Piece::Field(_, width) = *piece else { unreachable!("plain text is written above") };
            written.push_str(&format!("{number:0width$}"));
        }
        written
    }

    pub fn read(&self, text: &str) -> Result<i64> {
        self.moment(text).ok_or_else(|| {
            let message = format!("'{text}' does not match the pattern '{}'", self.text);
            KernelError::invalid("CROWN-CAST", message)
        })
    }

    fn moment(&self, text: &str) -> Option<i64> {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        let (mut hour, mut minute, mut second, mut micros) = (0, 0, 0, 0);
        let mut rest = text;
        for piece in &self.pieces {
            match *piece {
                Piece::Plain(character) => rest = without(rest, character)?,
                Piece::Field('y', count) => (year, rest) = read_year(rest, count)?,
                Piece::Field('S', most) => {
                    let (digits, after) = leading_digits(rest, 1, most)?;
                    micros = format!("{digits:0<6}").parse().ok()?;
                    rest = after;
                }
                Piece::Field(letter, count) => {
                    let (digits, after) =
                        if count == 1 { leading_digits(rest, 1, 18)? } else { rest.split_at_checked(2)? };
                    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
                        return None;
                    }
                    let field = match letter {
                        'M' => &mut month,
                        'd' => &mut day,
                        'H' => &mut hour,
                        'm' => &mut minute,
                        _ => &mut second,
                    };
                    *field = digits.parse().ok()?;
                    rest = after;
                }
            }
        }
        if !rest.is_empty() || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let midnight = days(year, month, day)?.checked_mul(MICROS_PER_DAY)?;
        midnight.checked_add(((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + micros)
    }
}

fn unsupported(text: &str) -> KernelError {
    KernelError::plan("CROWN-PLAN-TIME-PATTERN", format!("the date-time pattern '{text}' is not supported"))
}

/// From four letters on, a year with more digits gets a sign.
fn written_year(year: i64, count: usize) -> String {
    let digits = format!("{:0count$}", year.abs());
    match count {
        2 => format!("{:02}", year.rem_euclid(100)),
        _ if year < 0 => format!("-{digits}"),
        4.. if digits.len() > count => format!("+{digits}"),
        _ => digits,
    }
}

/// Java compares plain text without regard to case.
fn without(text: &str, character: char) -> Option<&str> {
    let mut characters = text.chars();
    let found = characters.next()?;
    let same = found == character || found.to_lowercase().eq(character.to_lowercase());
    same.then_some(characters.as_str())
}

fn leading_digits(text: &str, least: usize, most: usize) -> Option<(&str, &str)> {
    let length = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    (length >= least).then(|| text.split_at(length))
}

fn read_year(text: &str, count: usize) -> Option<(i64, &str)> {
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' if count == 4 => (1, &text[1..]),
        _ => (1, text),
    };
    let signed = unsigned.len() < text.len();
    let (digits, after) = match (count, signed) {
        (4, false) => leading_digits(unsigned, 4, 4)?,
        (4, true) => leading_digits(unsigned, if sign > 0 { 5 } else { 4 }, 9)?,
        _ => leading_digits(unsigned, 1, 9)?,
    };
    Some((sign * digits.parse::<i64>().ok()?, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_as_java_writes() {
        let write = |text: &str, micros| TimePattern::for_writing(text).unwrap().write(micros);
        let afternoon = 1_577_883_845_123_456;
        assert_eq!(write("yyyy-MM-dd'T'HH:mm''ss.SSS", afternoon), "2020-01-01T13:04'05.123");
        assert_eq!(write("E EEEE MMM MMMM h a D DDD yy y", afternoon), "Wed Wednesday Jan January 1 PM 1 001 20 2020");
        for bad in ["YYYY", "w", "u", "'open", "[yyyy]", "MMMMM", "ddd"] {
            assert_eq!(TimePattern::for_writing(bad).unwrap_err().code, "CROWN-PLAN-TIME-PATTERN", "{bad}");
        }
    }

    #[test]
    fn read_as_java_reads() {
        let read = |pattern: &str, text| TimePattern::for_reading(pattern).unwrap().moment(text);
        assert_eq!(read("yyyyMMdd", "19700102"), Some(MICROS_PER_DAY));
        assert_eq!(read("d/M/yyyy", "2/1/1970"), Some(MICROS_PER_DAY));
        assert_eq!(read("HH:mm:ss.SSS", "00:00:01.5"), Some(1_500_000));
        for (pattern, text) in
            [("yyyy-MM-dd", "1970-01-1"), ("yyyy-MM-dd", "1970-02-30"), ("yyyy", "01970"), ("HH", "24")]
        {
            assert_eq!(read(pattern, text), None, "{pattern} {text}");
        }
        for bad in ["yMMdd", "yyyy-yyyy", "hh", "abc", "", "dMM"] {
            assert_eq!(TimePattern::for_reading(bad).unwrap_err().code, "CROWN-PLAN-TIME-PATTERN", "{bad}");
        }
    }
}
