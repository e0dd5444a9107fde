//! Times of day: microseconds since midnight.

/// `12:30:00`, with the digits of a fraction that it has.
pub fn format_time(micros: i64) -> String {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let whole = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    match fraction {
        0 => whole,
        fraction => format!("{whole}.{}", format!("{fraction:06}").trim_end_matches('0')),
    }
}

/// Reads `h:m`, `h:m:s` and `h:m:s.fraction`; `None` for anything else.
pub(super) fn parse_time(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once('.').map_or((text, ""), |(clock, fraction)| (clock, fraction));
    let number = |part: &str, below: i64| {
        let digits = (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<i64>().ok().filter(|value| digits && *value < below)
    };
    let parts: Vec<&str> = clock.split(':').collect();
    let (hour, minute, second) = match parts[..] {
        [hour, minute] if fraction.is_empty() && !text.contains('.') => (hour, minute, "0"),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    if fraction.len() > 6 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let micros: i64 = format!("{fraction:0<6}").parse().ok()?;
    Some(((number(hour, 24)? * 60 + number(minute, 60)?) * 60 + number(second, 60)?) * 1_000_000 + micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        for text in ["00:00:00", "23:59:59.999999", "12:30:00.5"] {
            assert_eq!(format_time(parse_time(text).unwrap()), text);
        }
        assert_eq!(parse_time("7:05"), Some((7 * 60 + 5) * 60_000_000));
        for bad in ["24:00:00", "12:60", "12", "1:2:3.1234567", "a:b", "-1:00", "12:00.5"] {
            assert_eq!(parse_time(bad), None, "{bad}");
        }
    }
}
