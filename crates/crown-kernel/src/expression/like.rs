//! LIKE. Characters are Unicode code points, as in Spark.

use crate::error::{KernelError, Result};

/// A LIKE pattern: literal runs, `_` and `%`.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    tokens: Vec<Token>,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Character(char),
    AnyOne,
    AnyMany,
}

impl Pattern {
    /// `\` takes the special meaning from `%`, `_` and itself; before anything else it is an error,
    /// as in Spark.
    pub fn new(text: &str) -> Result<Pattern> {
        let mut tokens = Vec::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            tokens.push(match character {
                '_' => Token::AnyOne,
                '%' if tokens.last() == Some(&Token::AnyMany) => continue,
                '%' => Token::AnyMany,
                '\\' => match characters.next() {
                    Some(escaped @ ('%' | '_' | '\\')) => Token::Character(escaped),
                    _ => {
                        let message = format!("in the LIKE pattern '{text}' a backslash must precede %, _ or \\");
                        return Err(KernelError::invalid("CROWN-FUNCTION", message));
                    }
                },
                character => Token::Character(character),
            });
        }
        Ok(Pattern { tokens })
    }

    /// Greedy with one point to return to: the last `%`. Earlier ones need no retry, since the
    /// shortest match of what lies between two `%` leaves the most for the rest.
    pub fn matches(&self, text: &str) -> bool {
        let mut rest = text.chars();
        let mut token = 0;
        let mut retry: Option<(usize, std::str::Chars)> = None;
        loop {
            if let Some(Token::AnyMany) = self.tokens.get(token) {
                token += 1;
                if token == self.tokens.len() {
                    return true;
                }
                retry = Some((token, rest.clone()));
                continue;
            }
            let next = rest.next();
            let fits = match (self.tokens.get(token), next) {
                (None, None) => return true,
                (Some(Token::Character(wanted)), Some(character)) => *wanted == character,
                (Some(Token::AnyOne), Some(_)) => true,
                _ => false,
            };
            if fits {
                token += 1;
            } else {
                let Some((after, start)) = &mut retry else { return false };
                if start.next().is_none() {
                    return false;
                }
                token = *after;
                rest = start.clone();
            }
        }
    }
}
