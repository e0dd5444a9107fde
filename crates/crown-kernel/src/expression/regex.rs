//! Regular expressions that mean in the crate `regex` exactly what they mean in Java, and so in
//! Spark.
//!
//! A pattern is translated piece by piece. Anything that can't be translated (look-around, back
//! references, flags, possessive quantifiers, Unicode classes, a loop over a part that may be
//! empty) is rejected when the plan is compiled. Both engines take the leftmost match and prefer
//! the earlier alternative, so the supported patterns can't differ.

use crate::error::{KernelError, Result};
use std::sync::Arc;

/// Java's line terminators: `.` matches none of them, and `$` also matches before a last one.
const TERMINATORS: &str = r"\n\r\x{85}\x{2028}\x{2029}";

#[derive(Clone, Debug)]
pub(super) struct Regex {
    compiled: Arc<regex::Regex>,
    groups: usize,
    /// Whether there is a `$`, which may have taken a line terminator at the end into the match as
    /// a whole.
    ends: bool,
}

impl Regex {
    pub fn new(pattern: &str) -> Result<Regex> {
        let mut translation = Translation { rest: pattern, text: String::new(), groups: 0, ends: false };
        let translated = match (translation.alternatives(0), translation.rest) {
            (Ok(_), "") => Ok(()),
            (Ok(_), _) => Err("a closing parenthesis without an opening one"),
            (Err(reason), _) => Err(reason),
        };
        let fail = |reason: &str| {
            let message = format!("the regular expression '{pattern}' has {reason}");
            KernelError::plan("CROWN-PLAN-REGEX", message)
        };
        translated.map_err(fail)?;
        let compiled = regex::Regex::new(&translation.text).map_err(|_| fail("a form that is not supported"))?;
        Ok(Regex { compiled: Arc::new(compiled), groups: translation.groups, ends: translation.ends })
    }

    pub fn matches(&self, text: &str) -> bool {
        self.compiled.is_match(text)
    }

    /// Checks that a group can be taken from a match.
    pub fn check_group(&self, group: i64) -> Result<usize> {
        match usize::try_from(group) {
            Ok(0) if self.ends => Err(self.unsupported()),
            Ok(group) if group <= self.groups => Ok(group),
            _ => Err(KernelError::plan(
                "CROWN-PLAN-REGEX",
                format!("the regular expression has {} groups, not {group}", self.groups),
            )),
        }
    }

    fn unsupported(&self) -> KernelError {
        let message = "$ is not supported in a regular expression whose whole match is extracted";
        KernelError::plan("CROWN-PLAN-REGEX", message)
    }

    /// The group of the first match; empty if there is no match or the group has no part in it.
    pub fn extract<'t>(&self, text: &'t str, group: usize) -> &'t str {
        let found = self.compiled.captures(text);
        found.and_then(|found| found.get(group)).map_or("", |group| group.as_str())
    }

    pub fn replace(&self, text: &str, by: &[Piece]) -> String {
        let mut replaced = String::new();
        let mut after = 0;
        for found in self.compiled.captures_iter(text) {
            let whole = found.get(0).expect("a match has a whole");
            replaced.push_str(&text[after..whole.start()]);
            for piece in by {
                match piece {
                    Piece::Text(text) => replaced.push_str(text),
                    Piece::Group(group) => replaced.push_str(found.get(*group).map_or("", |group| group.as_str())),
                }
            }
            after = whole.end();
        }
        replaced.push_str(&text[after..]);
        replaced
    }

    /// Java's replacement: `$n` is a group (with as many digits as there are groups for), `\` takes
    /// the next character as it is.
    pub fn replacement(&self, text: &str) -> Result<Vec<Piece>> {
        if self.ends {
            return Err(self.unsupported());
        }
        let fail = || KernelError::plan("CROWN-PLAN-REGEX", format!("'{text}' is not a replacement"));
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text.chars().peekable());
        while let Some(character) = rest.next() {
            match character {
                '\\' => plain.push(rest.next().ok_or_else(fail)?),
                '$' => {
                    let mut group = rest.next().and_then(|digit| digit.to_digit(10)).ok_or_else(fail)? as usize;
                    while let Some(digit) = rest.peek().and_then(|digit| digit.to_digit(10)) {
                        if group * 10 + digit as usize > self.groups {
                            break;
                        }
                        group = group * 10 + digit as usize;
                        rest.next();
                    }
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    pieces.push(Piece::Group(self.check_group(group as i64)?));
                }
                other => plain.push(other),
            }
        }
        pieces.push(Piece::Text(plain));
        Ok(pieces)
    }
}

#[derive(Clone, Debug)]
pub(super) enum Piece {
    Text(String),
    Group(usize),
}

type Translated<T> = std::result::Result<T, &'static str>;

struct Translation<'p> {
    rest: &'p str,
    text: String,
    groups: usize,
    ends: bool,
}

const DEPTH: usize = 50;

impl Translation<'_> {
    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next()?;
        self.rest = characters.as_str();
        Some(character)
    }

    fn take(&mut self, prefix: &str) -> bool {
        let found = self.rest.strip_prefix(prefix);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    /// Alternatives up to a closing parenthesis or the end; returns whether they can match the
    /// empty text.
    fn alternatives(&mut self, depth: usize) -> Translated<bool> {
        if depth > DEPTH {
            return Err("too many nested groups");
        }
        let mut empty = self.sequence(depth)?;
        while self.take("|") {
            self.text.push('|');
            empty |= self.sequence(depth)?;
        }
        Ok(empty)
    }

    fn sequence(&mut self, depth: usize) -> Translated<bool> {
        let mut empty = true;
        while !self.rest.is_empty() && !self.rest.starts_with(['|', ')']) {
            let start = self.text.len();
            let piece = self.piece(depth)?;
            empty &= self.quantified(start, piece)?;
        }
        Ok(empty)
    }

    /// One piece: whether it can match the empty text, and whether it may be repeated.
    fn piece(&mut self, depth: usize) -> Translated<(bool, bool)> {
        match self.next().expect("a sequence is not at its end") {
            '(' => self.group(depth).map(|empty| (empty, true)),
            '[' => self.class().map(|()| (false, true)),
            '.' => {
                self.text.push_str(&format!("[^{TERMINATORS}]"));
                Ok((false, true))
            }
            '^' => {
                self.text.push_str(r"\A");
                Ok((true, false))
            }
            '$' if self.rest.is_empty() && depth == 0 => {
                self.text.push_str(&format!(r"(?:\r\n|[{TERMINATORS}])?\z"));
                self.ends = true;
                Ok((true, false))
            }
            '$' => Err("a $ that is not at the end"),
            '\\' => {
                let class = self.escape()?;
                self.text.push_str(&class);
                Ok((false, true))
            }
            '*' | '+' | '?' | '{' => Err("a quantifier without an operand"),
            // These two are plain characters outside of a class.
            character => {
                self.text.push_str(&regex::escape(character.encode_utf8(&mut [0; 4])));
                Ok((false, true))
            }
        }
    }

    fn group(&mut self, depth: usize) -> Translated<bool> {
        if self.take("?:") {
            self.text.push_str("(?:");
        } else if self.rest.starts_with('?') {
            return Err("a group with flags, a name or a look-around");
        } else {
            self.groups += 1;
            self.text.push('(');
        }
        let empty = self.alternatives(depth + 1)?;
        self.text.push(')');
        if self.take(")") {
            Ok(empty)
        } else {
            Err("a group that is not closed")
        }
    }

    fn quantified(&mut self, start: usize, (empty, repeatable): (bool, bool)) -> Translated<bool> {
        let (least, quantifier) = if self.take("*") {
            (0, "*".to_owned())
        } else if self.take("+") {
            (1, "+".to_owned())
        } else if self.take("?") {
            (0, "?".to_owned())
        } else if self.rest.starts_with('{') {
            self.counted()?
        } else {
            return Ok(empty);
        };
        if !repeatable || empty {
            return Err("a quantifier after a group that may be empty");
        }
        debug_assert!(start < self.text.len());
        self.text.push_str(&quantifier);
        if self.take("?") {
            self.text.push('?');
        }
        if self.rest.starts_with(['*', '+', '?', '{']) {
            return Err("a possessive or doubled quantifier");
        }
        Ok(least == 0)
    }

    /// `{n}`, `{n,}` or `{n,m}`.
    fn counted(&mut self) -> Translated<(u32, String)> {
        let inside = self.rest[1..].split_once('}').ok_or("an open brace without a closing one")?.0;
        let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
        let number = |text: &str| {
            let digits = !text.is_empty() && text.len() <= 3 && text.bytes().all(|digit| digit.is_ascii_digit());
            digits.then(|| text.parse::<u32>().ok()).flatten().ok_or("braces without a count of at most 999")
        };
        let least = number(least)?;
        if !most.is_empty() && number(most)? < least {
            return Err("a count whose maximum is below its minimum");
        }
        let text = format!("{{{inside}}}");
        self.rest = &self.rest[text.len()..];
        Ok((least, text))
    }

    /// What follows a backslash, as a class or an escaped character.
    fn escape(&mut self) -> Translated<String> {
        Ok(match self.next().ok_or("a backslash at the end")? {
            'd' => "[0-9]".into(),
            'D' => "[^0-9]".into(),
            'w' => "[a-zA-Z_0-9]".into(),
            'W' => "[^a-zA-Z_0-9]".into(),
            's' => r"[ \t\n\x0B\f\r]".into(),
            'S' => r"[^ \t\n\x0B\f\r]".into(),
            't' => r"\t".into(),
            'n' => r"\n".into(),
            'r' => r"\r".into(),
            'f' => r"\f".into(),
            'A' => r"\A".into(),
            character if character.is_alphanumeric() => return Err("an escape that is not supported"),
            character => regex::escape(character.encode_utf8(&mut [0; 4])),
        })
    }

    /// A class of plain characters, ranges and escapes.
    fn class(&mut self) -> Translated<()> {
        const OPEN: &str = "a class that is not closed";
        self.text.push('[');
        if self.take("^") {
            self.text.push('^');
        }
        let mut first = true;
        loop {
            match self.next().ok_or(OPEN)? {
                ']' if !first => break,
                '[' | ']' => return Err("a bracket inside a class"),
                '&' if self.rest.starts_with('&') => return Err("an intersection of classes"),
                '\\' => {
                    let escaped = self.escape()?;
                    if escaped == r"\A" {
                        return Err("an escape that is not supported");
                    }
                    let is_class = escaped.starts_with('[');
                    self.text.push_str(&escaped);
                    if is_class && self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                        return Err("a range that starts with a class");
                    }
                }
                '-' if first || self.rest.starts_with(']') => self.text.push_str(r"\-"),
                '-' if self.rest.starts_with('\\') => return Err("a range that ends with an escape"),
                '-' => self.text.push('-'),
                character => self.text.push_str(&escaped_in_class(character)),
            }
            first = false;
        }
        self.text.push(']');
        Ok(())
    }
}

fn escaped_in_class(character: char) -> String {
    if character.is_alphanumeric() || character == ' ' {
        character.to_string()
    } else {
        format!(r"\x{{{:x}}}", u32::from(character))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_java_reads_otherwise_is_refused() {
        for pattern in [
            r"a++", r"(?i)a", r"(?=a)", r"(a)\1", r"\bx", r"(a*)*", r"a$b", r"[a&&b]", r"[[a]]", r"\p{L}", "(", ")",
            "a{2,1}", "*", r"\", "[a", "x{a}", r"[\d-z]", "a**",
        ] {
            assert_eq!(Regex::new(pattern).unwrap_err().code, "CROWN-PLAN-REGEX", "{pattern}");
        }
    }

    #[test]
    fn classes_are_java_s() {
        assert!(!Regex::new(r"^\d$").unwrap().matches("٣"));
        assert!(!Regex::new("^.$").unwrap().matches("\u{2028}"));
        assert!(Regex::new("^a$").unwrap().matches("a\n"));
        assert!(!Regex::new("^a$").unwrap().matches("a\n\n"));
        assert!(Regex::new(r"^[\w.\-]+@x$").unwrap().matches("a.b-c@x"));
        let pairs = Regex::new(r"(\d+)-(\d+)").unwrap();
        assert_eq!((pairs.extract("x100-200", 1), pairs.extract("", 1)), ("100", ""));
        let by = pairs.replacement(r"$2\$$10").unwrap();
        assert_eq!(pairs.replace("1-2,3-4", &by), "2$10,4$30");
    }
}
