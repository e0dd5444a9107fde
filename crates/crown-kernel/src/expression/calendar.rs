//! Dates as days and timestamps as microseconds since 1970, proleptic Gregorian, UTC.

use super::overflow;
use crate::error::Result;

pub(super) const MICROS_PER_SECOND: i64 = 1_000_000;
pub(super) const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Year,
    Quarter,
    Month,
    Day,
    /// From 1 for Sunday to 7.
    DayOfWeek,
    Hour,
    Minute,
    Second,
    DayOfYear,
    /// From 0 for Monday to 6.
    Weekday,
    /// ISO weeks begin on Monday; the first has the year's first Thursday.
    Week,
    /// The year that the ISO week belongs to.
    YearOfWeek,
}

/// The part of a timestamp, or of a date (which has no time).
pub(super) fn part(value: i64, timestamp: bool, part: Part) -> i64 {
    let (date, seconds) = match timestamp {
        true => (value.div_euclid(MICROS_PER_DAY), value.rem_euclid(MICROS_PER_DAY) / MICROS_PER_SECOND),
        false => (value, 0),
    };
    let (year, month, day) = civil(date);
    match part {
        Part::Year => year,
        Part::Quarter => (month + 2) / 3,
        Part::Month => month,
        Part::Day => day,
        // The first of January 1970 was a Thursday.
        Part::DayOfWeek => (date + 4).rem_euclid(7) + 1,
        Part::Hour => seconds / 3600,
        Part::Minute => seconds / 60 % 60,
        Part::Second => seconds % 60,
        Part::DayOfYear => date - first_of(year) + 1,
        Part::Weekday => (date + 3).rem_euclid(7),
        Part::Week => {
            let thursday = date - (date + 3).rem_euclid(7) + 3;
            (thursday - first_of(civil(thursday).0)) / 7 + 1
        }
        Part::YearOfWeek => civil(date - (date + 3).rem_euclid(7) + 3).0,
    }
}

fn first_of(year: i64) -> i64 {
    days(year, 1, 1).expect("every year has a first day")
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Unit {
    Year,
    Quarter,
    Month,
    /// Weeks begin on Monday.
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
}

/// The beginning of the unit that a timestamp or a date lies in.
pub(super) fn truncate(value: i64, unit: Unit, timestamp: bool) -> Result<i64> {
    let within = |micros: i64| value.checked_sub(value.rem_euclid(micros)).ok_or_else(|| overflow("a timestamp"));
    let date = if timestamp { value.div_euclid(MICROS_PER_DAY) } else { value };
    let (year, month, day) = civil(date);
    let start_of = |month| days(year, month, 1).expect("every month has a first day");
    let first = match unit {
        Unit::Microsecond => return Ok(value),
        Unit::Millisecond => return within(1000),
        Unit::Second => return within(MICROS_PER_SECOND),
        Unit::Minute => return within(60 * MICROS_PER_SECOND),
        Unit::Hour => return within(3600 * MICROS_PER_SECOND),
        Unit::Day => date,
        Unit::Week => date - (date + 3).rem_euclid(7),
        Unit::Month => date - (day - 1),
        Unit::Quarter => start_of((month - 1) / 3 * 3 + 1),
        Unit::Year => start_of(1),
    };
    if !timestamp {
        return Ok(first);
    }
    first.checked_mul(MICROS_PER_DAY).ok_or_else(|| overflow("a timestamp"))
}

/// Year, month and day. Works in 400-year eras that begin on 1 March, so that leap days come last.
pub(super) fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The day number of a date, or `None` when there is no such day.
pub(super) fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let march_year = year - i64::from(month <= 2);
    let (era, year_of_era) = (march_year.div_euclid(400), march_year.rem_euclid(400));
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let number = era * 146_097 + day_of_era - 719_468;
    (civil(number) == (year, month, day)).then_some(number)
}

pub(super) fn format_date(days: i64) -> String {
    let (year, month, day) = civil(days);
    match year {
        10_000.. => format!("+{year}-{month:02}-{day:02}"),
        0.. => format!("{year:04}-{month:02}-{day:02}"),
        _ => format!("-{:04}-{month:02}-{day:02}", -year),
    }
}

pub(super) fn format_timestamp(micros: i64) -> String {
    let (date, time) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
    let (seconds, fraction) = (time / MICROS_PER_SECOND, time % MICROS_PER_SECOND);
    let mut text = format!("{} {:02}:{:02}:{:02}", format_date(date), seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction != 0 {
        text.push_str(format!(".{fraction:06}").trim_end_matches('0'));
    }
    text
}

/// `[+-]yyyy[y..]`, `-[m]m`, `-[d]d`; after a full date anything may follow a space or a `T`.
pub(super) fn parse_date(text: &str) -> Option<i64> {
    let (date, rest) = split_date(text)?;
    if rest.is_empty() || rest.starts_with([' ', 'T']) {
        Some(date)
    } else {
        None
    }
}

/// What a text says of a moment.
pub(super) enum Moment {
    /// Microseconds by the clock, and how far that clock is ahead of UTC.
    At { local: i64, zone: i64 },
    /// By the clock of a region, whose zones are not known here.
    InRegion,
    /// A time without a date.
    Today,
}

/// A date as `parse_date`, then optionally `[h]h[:[m]m[:[s]s[.fraction]]]` and, after seconds, a
/// zone: `Z`, `UTC`, `GMT`, `+hh[:mm]`.
pub(super) fn parse_timestamp(text: &str) -> Option<Moment> {
    let Some((date, rest)) = split_date(text) else {
        let (clock, _) = split_clock(text.strip_prefix('T').unwrap_or(text));
        return (clock.contains(':') && parse_clock(clock).is_some()).then_some(Moment::Today);
    };
    let midnight = date.checked_mul(MICROS_PER_DAY)?;
    if rest.is_empty() {
        return Some(Moment::At { local: midnight, zone: 0 });
    }
    let time = rest.strip_prefix([' ', 'T'])?;
    let (clock, zone) = split_clock(time);
    if !zone.is_empty() && clock.matches(':').count() < 2 {
        return None;
    }
    let local = midnight.checked_add(parse_clock(clock)?)?;
    parse_zone(zone.trim_start()).map(|zone| match zone {
        Some(zone) => Moment::At { local, zone },
        None => Moment::InRegion,
    })
}

fn split_clock(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !(c.is_ascii_digit() || c == ':' || c == '.')).unwrap_or(text.len()))
}

/// The date at the start of `text`, and what follows it. A year or a month alone must be all of the
/// text.
fn split_date(text: &str) -> Option<(i64, &str)> {
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let (year, rest) = number(unsigned, 4, 7)?;
    let Some(rest) = rest.strip_prefix('-') else {
        return rest.is_empty().then(|| days(sign * year, 1, 1)).flatten().map(|days| (days, rest));
    };
    let (month, rest) = number(rest, 1, 2)?;
    let Some(rest) = rest.strip_prefix('-') else {
        return rest.is_empty().then(|| days(sign * year, month, 1)).flatten().map(|days| (days, rest));
    };
    let (day, rest) = number(rest, 1, 2)?;
    Some((days(sign * year, month, day)?, rest))
}

fn number(text: &str, least: usize, most: usize) -> Option<(i64, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    if !(least..=most).contains(&length) {
        return None;
    }
    Some((text[..length].parse().ok()?, &text[length..]))
}

fn parse_clock(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = [0; 3];
    let mut count = 0;
    for part in clock.split(':') {
        let (value, rest) = number(part, 1, 2)?;
        if count == 3 || !rest.is_empty() {
            return None;
        }
        parts[count] = value;
        count += 1;
    }
    let [hour, minute, second] = parts;
    if hour > 23 || minute > 59 || second > 59 || (!fraction.is_empty() && count < 3) {
        return None;
    }
    if !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let micros: i64 = format!("{:0<6.6}", fraction).parse().ok()?;
    Some((hour * 3600 + minute * 60 + second) * MICROS_PER_SECOND + micros)
}

/// The offset of a zone from UTC in microseconds; `Some(None)` for what may be the name of a
/// region.
fn parse_zone(text: &str) -> Option<Option<i64>> {
    if matches!(text, "" | "Z" | "UTC" | "GMT" | "UT" | "GMT0") {
        return Some(Some(0));
    }
    let offset = ["UTC", "GMT", "UT"].iter().find_map(|name| text.strip_prefix(name)).unwrap_or(text);
    match offset.as_bytes()[0] {
        b'-' => parse_offset(&offset[1..]).map(|offset| Some(-offset)),
        b'+' => parse_offset(&offset[1..]).map(Some),
        // Of the names with a plus, all but those of `Etc/GMT+1` and its like are offsets.
        _ if text.contains('+') && !text.starts_with("Etc/") => None,
        _ => text.starts_with(|c: char| c.is_ascii_uppercase()).then_some(None),
    }
}

/// `[h]h`, `[h]h:[m]m`, `[h]h:mm:ss`, `hhmm` or `hhmmss`, up to 18 hours.
fn parse_offset(text: &str) -> Option<i64> {
    let parts: Vec<&str> = if text.contains(':') {
        text.split(':').collect()
    } else {
        match text.len() {
            1 | 2 => vec![text],
            4 if text.is_ascii() => vec![&text[..2], &text[2..]],
            6 if text.is_ascii() => vec![&text[..2], &text[2..4], &text[4..]],
            _ => return None,
        }
    };
    let mut seconds = 0;
    for (at, part) in parts.iter().enumerate() {
        // One digit is enough for hours, and for minutes at the end.
        let least = if at == 0 || (at == 1 && parts.len() == 2) { 1 } else { 2 };
        let (value, rest) = number(part, least, 2)?;
        if !rest.is_empty() || at > 2 || (at > 0 && value > 59) {
            return None;
        }
        seconds += value * [3600, 60, 1][at];
    }
    (seconds <= 18 * 3600).then_some(seconds * MICROS_PER_SECOND)
}
