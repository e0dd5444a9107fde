//! Parts of strings by the positions of their characters, and title case. Characters are Unicode
//! code points, as in Spark.

/// SQL's SUBSTRING: 1-based, 0 counts as 1, negative starts count from the end and may lie before
/// the beginning.
pub(super) fn substring(text: &str, start: i64, length: i64) -> &str {
    let from = match start {
        1.. => start - 1,
        0 => 0,
        _ => text.chars().count() as i64 + start,
    };
    let until = from.saturating_add(length);
    let offset = |characters: i64| {
        let characters = usize::try_from(characters).unwrap_or(0);
        text.char_indices().nth(characters).map_or(text.len(), |(offset, _)| offset)
    };
    if until <= from {
        return "";
    }
    &text[offset(from)..offset(until)]
}

/// As `substring`, by bytes.
pub(super) fn substring_bytes(bytes: &[u8], start: i64, length: i64) -> &[u8] {
    let size = bytes.len() as i64;
    let from = match start {
        1.. => start - 1,
        0 => 0,
        _ => size + start,
    };
    let until = from.saturating_add(length).clamp(0, size);
    let from = from.clamp(0, size);
    if until <= from {
        return &[];
    }
    &bytes[from as usize..until as usize]
}

/// Spark's INITCAP: lower case, but for the first character and those after a space.
pub(super) fn initial_capitals(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut first = true;
    for character in text.to_lowercase().chars() {
        if first {
            push_title(&mut result, character);
        } else {
            result.push(character);
        }
        first = character == ' ';
    }
    result
}

/// Title case: of what has several capitals only the first; some letters have a form of their own.
fn push_title(result: &mut String, character: char) {
    match character {
        '\u{1C6}' => result.push('\u{1C5}'),
        '\u{1C9}' => result.push('\u{1C8}'),
        '\u{1CC}' => result.push('\u{1CB}'),
        '\u{1F3}' => result.push('\u{1F2}'),
        '\u{10D0}'..='\u{10FF}' => result.push(character),
        '\u{1F80}'..='\u{1F87}' | '\u{1F90}'..='\u{1F97}' | '\u{1FA0}'..='\u{1FA7}' => {
            result.extend(char::from_u32(u32::from(character) + 8));
        }
        '\u{1FB3}' | '\u{1FC3}' | '\u{1FF3}' => result.extend(char::from_u32(u32::from(character) + 9)),
        // An iota below a Greek letter stays below it.
        '\u{1F00}'..='\u{1FFF}' => {
            result.extend(character.to_uppercase().map(|upper| if upper == '\u{399}' { '\u{345}' } else { upper }));
        }
        '\u{149}' => result.extend(character.to_uppercase()),
        _ => {
            let mut capitals = character.to_uppercase();
            result.extend(capitals.next());
            result.extend(capitals.flat_map(char::to_lowercase));
        }
    }
}
