//! Intervals as Spark has them: a number of months, or of microseconds, and the fields in which it
//! is written.

use crate::types::DataType;

/// A field of an interval, from the longest to the shortest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// Twelve months.
    Year,
    /// The unit of intervals of years and months.
    Month,
    /// 24 hours.
    Day,
    /// 60 minutes.
    Hour,
    /// 60 seconds.
    Minute,
    /// With a fraction of six digits: the unit is the microsecond.
    Second,
}

const NAMES: [(Field, &str); 6] = [
    (Field::Year, "year"),
    (Field::Month, "month"),
    (Field::Day, "day"),
    (Field::Hour, "hour"),
    (Field::Minute, "minute"),
    (Field::Second, "second"),
];
const MICROS_PER_SECOND: i64 = 1_000_000;

impl Field {
    fn name(self) -> &'static str {
        NAMES[self as usize].1
    }

    fn parse(name: &str) -> Option<Field> {
        NAMES.iter().find(|(_, other)| *other == name).map(|(field, _)| *field)
    }

    /// One of it, in months or microseconds.
    pub fn unit(self) -> i64 {
        match self {
            Field::Year => 12,
            Field::Month => 1,
            Field::Day => 86_400 * MICROS_PER_SECOND,
            Field::Hour => 3_600 * MICROS_PER_SECOND,
            Field::Minute => 60 * MICROS_PER_SECOND,
            Field::Second => MICROS_PER_SECOND,
        }
    }

    fn previous(self) -> Field {
        NAMES[self as usize - 1].0
    }

    fn next(self) -> Field {
        NAMES[self as usize + 1].0
    }

    /// The digits that Spark reads of it where it comes first.
    fn most_digits(self) -> usize {
        match self {
            Field::Year | Field::Month => 10,
            Field::Day => 9,
            Field::Hour => 10,
            Field::Minute => 12,
            Field::Second => 13,
        }
    }
}

/// The fields of an interval type, `DAY TO SECOND` for example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    first: Field,
    last: Field,
}

impl Span {
    /// Reads a type's name in a plan: `interval_day`, `interval_day_to_second`.
    pub fn parse(name: &str) -> Option<Span> {
        let fields = name.strip_prefix("interval_")?;
        let (first, last) = fields.split_once("_to_").unwrap_or((fields, fields));
        let span = Span { first: Field::parse(first)?, last: Field::parse(last)? };
        let one_family = (span.first <= Field::Month) == (span.last <= Field::Month);
        let as_written = (span.first == span.last) != name.contains("_to_");
        (one_family && span.first <= span.last && as_written).then_some(span)
    }

    /// Whether it counts months; otherwise it counts microseconds.
    pub fn is_months(self) -> bool {
        self.last <= Field::Month
    }

    /// The last of its fields.
    pub fn last(self) -> Field {
        self.last
    }

    /// The type as SQL writes it.
    pub fn sql_name(self) -> String {
        format!("INTERVAL {}", self.fields())
    }

    fn fields(self) -> String {
        let [first, last] = [self.first, self.last].map(|field| field.name().to_uppercase());
        if first == last {
            first
        } else {
            format!("{first} TO {last}")
        }
    }

    /// The value without what its last field can't represent.
    pub fn truncate(self, value: i64) -> i64 {
        if self.last == Field::Second {
            value
        } else {
            value - value % self.last.unit()
        }
    }

    /// The least and the greatest value.
    pub fn range(self) -> (i64, i64) {
        if self.is_months() {
            (i32::MIN.into(), i32::MAX.into())
        } else {
            (i64::MIN, i64::MAX)
        }
    }

    /// `INTERVAL '5 10:11:12.5' DAY TO SECOND`
    pub fn format(self, value: i64) -> String {
        let mut rest = value.unsigned_abs();
        let mut text = String::from(if value < 0 { "-" } else { "" });
        let mut field = self.first;
        loop {
            let unit = field.unit() as u64;
            let count = rest / unit;
            rest %= unit;
            text.push_str(&match field {
                Field::Year | Field::Month | Field::Day => count.to_string(),
                Field::Hour | Field::Minute | Field::Second => format!("{count:02}"),
            });
            if field == self.last {
                break;
            }
            field = field.next();
            text.push(separator(field));
        }
        if self.last == Field::Second && rest != 0 {
            text.push_str(format!(".{rest:06}").trim_end_matches('0'));
        }
        format!("INTERVAL '{text}' {}", self.fields())
    }

    /// Reads what `format` writes, also without the words around it; `None` for anything else and
    /// for what is out of range.
    pub fn read(self, text: &str) -> Option<i64> {
        let upper = text.to_ascii_uppercase();
        let Some(rest) = upper.strip_prefix("INTERVAL").filter(|rest| rest.starts_with(char::is_whitespace)) else {
            return self.read_signed(text, 1);
        };
        let (sign, rest) = signed(rest.trim_start());
        let (body, fields) = rest.strip_prefix('\'')?.split_once('\'')?;
        let words: Vec<&str> = fields.split_ascii_whitespace().collect();
        let fits = fields.starts_with(|c: char| c.is_ascii_whitespace()) && words.join(" ") == self.fields();
        if fits {
            self.read_signed(body, sign)
        } else {
            None
        }
    }

    /// The fields with a sign before them, times another sign.
    fn read_signed(self, text: &str, outer: i128) -> Option<i64> {
        let (sign, mut text) = signed(text);
        let mut total: i128 = 0;
        let mut field = self.first;
        loop {
            let length = text.bytes().take_while(u8::is_ascii_digit).count();
            let (digits, rest) = text.split_at(length);
            let most = if field == self.first || field == Field::Month { field.most_digits() } else { 2 };
            let number: i128 = digits.parse().ok().filter(|_| length <= most)?;
            if field != self.first && number * i128::from(field.unit()) >= i128::from(field.previous().unit()) {
                return None;
            }
            total += number * i128::from(field.unit());
            text = rest;
            if field == self.last {
                break;
            }
            field = field.next();
            text = text.strip_prefix(separator(field))?;
        }
        if let Some(fraction) = text.strip_prefix('.').filter(|_| self.last == Field::Second) {
            let digits = (1..=9).contains(&fraction.len()) && fraction.bytes().all(|byte| byte.is_ascii_digit());
            total += format!("{fraction:0<6.6}").parse::<i128>().ok().filter(|_| digits)?;
            text = "";
        }
        let (least, greatest) = self.range();
        i64::try_from(total * sign * outer).ok().filter(|value| text.is_empty() && (least..=greatest).contains(value))
    }
}

/// What is written between a field and the one before it.
fn separator(field: Field) -> char {
    match field {
        Field::Year | Field::Month => '-',
        Field::Day | Field::Hour => ' ',
        Field::Minute | Field::Second => ':',
    }
}

fn signed(text: &str) -> (i128, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    }
}

/// The interval as a column of this type holds it, or why it can't.
pub fn fitted(value: i64, span: Span) -> Result<u64, String> {
    let (least, greatest) = span.range();
    if !(least..=greatest).contains(&value) {
        return Err(format!("{value} months are out of range for {}", span.sql_name()));
    }
    if span.truncate(value) != value {
        let unit = if span.is_months() { "months" } else { "microseconds" };
        return Err(format!("{value} {unit} are not a whole number of {}s", span.last.name()));
    }
    Ok(value as u64)
}

/// An interval that consists of months, days and nanoseconds, as Arrow has it, as a value of this
/// type.
pub fn of_parts(months: i64, days: i64, nanoseconds: i64, span: Span) -> Result<u64, String> {
    let refused = |what: &str| Err(format!("an interval with {what} is not {}", span.sql_name()));
    if span.is_months() {
        return if days != 0 || nanoseconds != 0 { refused("days or hours") } else { fitted(months, span) };
    }
    if months != 0 {
        return refused("months");
    }
    let micros = i128::from(days) * i128::from(Field::Day.unit()) + i128::from(nanoseconds.div_euclid(1000));
    match i64::try_from(micros) {
        Ok(micros) => fitted(micros, span),
        Err(_) => Err(format!("{days} days are out of range for {}", DataType::Interval(span).sql_name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_as_they_are_written() {
        for (name, text) in [
            ("interval_day_to_second", "INTERVAL '-106751991 04:00:54.775808' DAY TO SECOND"),
            ("interval_hour_to_minute", "INTERVAL '-00:30' HOUR TO MINUTE"),
            ("interval_second", "INTERVAL '01.5' SECOND"),
            ("interval_day", "INTERVAL '5' DAY"),
            ("interval_year_to_month", "INTERVAL '-178956970-8' YEAR TO MONTH"),
            ("interval_month", "INTERVAL '-14' MONTH"),
        ] {
            let span = Span::parse(name).unwrap();
            assert_eq!(span.format(span.read(text).unwrap()), text);
        }
    }

    #[test]
    fn what_spark_refuses_is_refused() {
        for (name, text) in [
            ("interval_day_to_second", "5"),
            ("interval_day_to_second", "5  10:11:12"),
            ("interval_day_to_second", "5 24:00:00"),
            ("interval_day_to_second", "5 10:11:12."),
            ("interval_day", "- 5"),
            ("interval_day", "106751992"),
            ("interval_day", "INTERVAL '5' DAYS"),
            ("interval_second", "1.1234567890"),
            ("interval_year_to_month", "1-12"),
            ("interval_month", "2147483648"),
        ] {
            assert_eq!(Span::parse(name).unwrap().read(text), None, "{text}");
        }
        for name in
            ["interval", "interval_week", "interval_day_to_day", "interval_month_to_day", "interval_hour_to_day"]
        {
            assert_eq!(Span::parse(name), None, "{name}");
        }
    }
}
