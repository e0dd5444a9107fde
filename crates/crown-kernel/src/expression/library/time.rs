//! Functions of dates and timestamps.

use super::super::calendar::{self, civil, days, MICROS_PER_DAY, MICROS_PER_SECOND};
use super::super::cast::in_range;
use super::super::value::Value;
use super::super::{overflow, utf8};
use super::integer;
use crate::error::{KernelError, Result};
use crate::types::DataType;

type Evaluated<'a> = Result<Option<Value<'a>>>;

fn date<'a>(days: Option<i64>) -> Evaluated<'a> {
    let days = days.and_then(|days| i32::try_from(days).ok());
    integer(i64::from(days.ok_or_else(|| overflow("a date"))?))
}

pub fn add_days<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    date(arguments[0].integer().checked_add(arguments[1].integer()))
}

pub fn days_between<'a>(arguments: &[Value<'a>], to: DataType) -> Evaluated<'a> {
    integer(in_range(i128::from(arguments[0].integer()) - i128::from(arguments[1].integer()), to)?)
}

/// The same day some months on, or the last of that month if it has no such day.
pub fn months_on(date: i64, months: i64) -> Option<i64> {
    let (year, month, day) = civil(date);
    let month = year.checked_mul(12)?.checked_add(month - 1)?.checked_add(months)?;
    let (year, month) = (month.div_euclid(12), month.rem_euclid(12) + 1);
    (day - 3..=day).rev().find_map(|day| days(year, month, day))
}

/// The months or microseconds of an interval as an integer, and the other way round.
pub fn length_of_interval<'a>(arguments: &[Value<'a>], to: DataType) -> Evaluated<'a> {
    integer(in_range(arguments[0].integer().into(), to)?)
}

pub fn make_date<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let [year, month, day] = [0, 1, 2].map(|at: usize| arguments[at].integer());
    let invalid = || KernelError::invalid("CROWN-CAST", format!("there is no date {year}-{month}-{day}"));
    date(Some(days(year, month, day).ok_or_else(invalid)?))
}

/// Year, month, day, hour, minute and the microseconds of the seconds; 60 whole seconds are a
/// minute.
pub fn make_timestamp<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let invalid = || {
        let [year, month, day, hour, minute, micros] = [0, 1, 2, 3, 4, 5].map(|at: usize| arguments[at].integer());
        let seconds = format!("{}.{:06}", micros / MICROS_PER_SECOND, micros % MICROS_PER_SECOND);
        KernelError::invalid("CROWN-CAST", format!("there is no time {year}-{month}-{day} {hour}:{minute}:{seconds}"))
    };
    integer(timestamp_of(arguments).ok_or_else(invalid)?)
}

/// As `make_timestamp`, but NULL if there is no such time.
pub fn try_make_timestamp<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    Ok(timestamp_of(arguments).map(Value::Integer))
}

fn timestamp_of(arguments: &[Value]) -> Option<i64> {
    let [year, month, day, hour, minute, micros] = [0, 1, 2, 3, 4, 5].map(|at: usize| arguments[at].integer());
    let valid = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60 * MICROS_PER_SECOND).contains(&micros);
    let clock = (hour * 60 + minute) * 60 * MICROS_PER_SECOND + micros;
    days(year, month, day).filter(|_| valid)?.checked_mul(MICROS_PER_DAY)?.checked_add(clock)
}

pub fn add_months<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    date(months_on(arguments[0].integer(), arguments[1].integer()))
}

pub fn add_months_to_timestamp<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let (date, time) = split(arguments[0].integer());
    let moment = months_on(date, arguments[1].integer())
        .and_then(|date| date.checked_mul(MICROS_PER_DAY))
        .and_then(|midnight| midnight.checked_add(time));
    integer(moment.ok_or_else(|| overflow("a timestamp"))?)
}

pub fn add_microseconds<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let moment = arguments[0].integer().checked_add(arguments[1].integer());
    integer(moment.ok_or_else(|| overflow("a timestamp"))?)
}

fn split(micros: i64) -> (i64, i64) {
    (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY))
}

fn is_last_of_month(date: i64) -> bool {
    civil(date + 1).2 == 1
}

/// Whole months where both are the same day of a month, or both its last; else a fraction in 31
/// days, by whole seconds.
pub fn months_between<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let ((date1, time1), (date2, time2)) = (split(arguments[0].integer()), split(arguments[1].integer()));
    let ((year1, month1, day1), (year2, month2, day2)) = (civil(date1), civil(date2));
    let months = ((year1 - year2) * 12 + month1 - month2) as f64;
    if day1 == day2 || is_last_of_month(date1) && is_last_of_month(date2) {
        return Ok(Some(Value::Float(months)));
    }
    let seconds = (day1 - day2) * 86_400 + time1 / MICROS_PER_SECOND - time2 / MICROS_PER_SECOND;
    let difference = months + seconds as f64 / (31 * 86_400) as f64;
    let rounded = (difference * 1e8 + 0.5).floor() / 1e8;
    Ok(Some(Value::Float(if arguments[2].boolean() { rounded } else { difference })))
}

/// How many whole months lie between two moments.
pub fn complete_months<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let ((date1, time1), (date2, time2)) = (split(arguments[0].integer()), split(arguments[1].integer()));
    let ((year1, month1, day1), (year2, month2, day2)) = (civil(date1), civil(date2));
    let months = (year2 - year1) * 12 + month2 - month1;
    let (early, late) = ((day1, time1), (day2, time2));
    integer(match months {
        1.. if late < early => months - 1,
        ..=-1 if late > early => months + 1,
        _ => months,
    })
}

pub fn last_day<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let (year, month, _) = civil(arguments[0].integer());
    date((28..=31).rev().find_map(|day| days(year, month, day)))
}

/// The first day after a date that is the named day of the week.
pub fn next_day<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let (start, name) = (arguments[0].integer(), utf8(arguments[1].bytes())?);
    // The first of January 1970 was a Thursday.
    let place = match name.to_uppercase().as_str() {
        "TH" | "THU" | "THURSDAY" => 0,
        "FR" | "FRI" | "FRIDAY" => 1,
        "SA" | "SAT" | "SATURDAY" => 2,
        "SU" | "SUN" | "SUNDAY" => 3,
        "MO" | "MON" | "MONDAY" => 4,
        "TU" | "TUE" | "TUESDAY" => 5,
        "WE" | "WED" | "WEDNESDAY" => 6,
        _ => return Err(KernelError::invalid("CROWN-FUNCTION", format!("'{name}' is not a day of the week"))),
    };
    date(Some(start + 1 + (place - 1 - start).rem_euclid(7)))
}

pub fn unix_date<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    integer(arguments[0].integer())
}

pub fn date_from_unix_date<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    date(Some(arguments[0].integer()))
}

pub fn unix_micros<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    integer(arguments[0].integer())
}

pub fn unix_millis<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    integer(arguments[0].integer().div_euclid(1000))
}

pub fn unix_seconds<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    integer(arguments[0].integer().div_euclid(MICROS_PER_SECOND))
}

/// The seconds of a minute with their fraction, as a decimal(8,6).
pub fn extract_second<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let minute = 60 * calendar::MICROS_PER_SECOND;
    Ok(Some(Value::Decimal(i128::from(arguments[0].integer().rem_euclid(minute)))))
}
