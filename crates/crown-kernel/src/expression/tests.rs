//! Tables of (expression, expected) over one row that has a value and a NULL of each type.

use super::*;
use serde_json::{json, Value as Json};

const COLUMNS: [(&str, &str); 14] = [
    ("i", "int64"),
    ("j", "int32"),
    ("f", "float64"),
    ("nan", "float64"),
    ("s", "string"),
    ("t", "boolean"),
    ("d", "date"),
    ("ts", "timestamp"),
    ("m", "decimal(10,2)"),
    ("w", "decimal(38,2)"),
    ("ni", "int64"),
    ("ns", "string"),
    ("nt", "boolean"),
    ("nm", "decimal(10,2)"),
];

fn column(name: &str) -> Json {
    let (_, data_type) = COLUMNS.iter().find(|(other, _)| *other == name).expect("the column exists");
    json!({"kind": "column", "name": name, "type": data_type})
}

fn literal(value: Json, data_type: &str) -> Json {
    json!({"kind": "literal", "value": value, "type": data_type})
}

fn call(function: &str, arguments: &[Json], data_type: &str) -> Json {
    json!({"kind": "call", "function": function, "arguments": arguments, "type": data_type})
}

fn int(value: i64) -> Json {
    literal(json!(value), "int64")
}

fn text(value: &str) -> Json {
    literal(json!(value), "string")
}

fn float(value: f64) -> Json {
    literal(json!(value), "float64")
}

fn truth(value: Option<bool>) -> Json {
    literal(json!(value), "boolean")
}

fn null(data_type: &str) -> Json {
    literal(Json::Null, data_type)
}

fn compiled(expression: &Json) -> Result<Compiled> {
    let columns: Vec<_> =
        COLUMNS.iter().map(|(name, kind)| (name.to_string(), DataType::parse(kind).unwrap())).collect();
    Compiled::new(&serde_json::from_value(expression.clone()).unwrap(), &columns)
}

/// The value as text: what a cast to string shows, or NULL, or the error's code.
fn shown(expression: &Json) -> String {
    let mut interner = Interner::default();
    let hello = interner.intern("Héllo".as_bytes());
    let wide = interner.intern(&123_456i128.to_le_bytes());
    let words =
        [7, -3i64 as Word, 2.5f64.to_bits(), f64::NAN.to_bits(), hello, 1, 19_000, 1_600_000_000_123_400, 1250, wide];
    let words: Vec<Word> = words.into_iter().chain([0; 4]).collect();
    let nulls = 0b1111 << 10;
    let mut evaluate = || -> Result<String> {
        let direct = compiled(expression)?;
        let data_type = direct.data_type();
        let Some(word) = direct.evaluate(&words, nulls, &mut interner)? else { return Ok("NULL".into()) };
        if data_type == DataType::Boolean {
            assert_eq!(direct.is_true(&words, nulls, &interner)?, word == 1);
        }
        let value = value::Value::from_word(data_type, word, &interner);
        let shown = cast::cast(value, data_type, DataType::String)?.expect("no string cast gives NULL");
        Ok(String::from_utf8_lossy(shown.bytes()).into_owned())
    };
    evaluate().unwrap_or_else(|error| error.code.to_string())
}

fn check(cases: &[(Json, &str)]) {
    for (expression, expected) in cases {
        assert_eq!(&shown(expression), expected, "{expression}");
    }
}

#[test]
fn arithmetic() {
    let (i, j, f) = (column("i"), column("j"), column("f"));
    let small = |value: i64| literal(json!(value), "int8");
    let narrow = |value: f64| literal(json!(value), "float32");
    check(&[
        (call("add", &[i.clone(), int(1)], "int64"), "8"),
        (call("subtract", &[i.clone(), int(10)], "int64"), "-3"),
        (call("multiply", &[j.clone(), j.clone()], "int32"), "9"),
        (call("modulo", &[int(-7), int(3)], "int64"), "-1"),
        (call("modulo", &[int(i64::MIN), int(-1)], "int64"), "0"),
        (call("modulo", &[i.clone(), int(0)], "int64"), "CROWN-DIVIDE-BY-ZERO"),
        (call("modulo", &[column("ni"), int(0)], "int64"), "NULL"),
        (call("add", &[int(i64::MAX), int(1)], "int64"), "CROWN-OVERFLOW"),
        (call("multiply", &[int(i64::MAX), int(i64::MAX)], "int64"), "CROWN-OVERFLOW"),
        (call("add", &[small(127), small(1)], "int8"), "CROWN-OVERFLOW"),
        (call("negate", &[int(i64::MIN)], "int64"), "CROWN-OVERFLOW"),
        (call("abs", &[int(i64::MIN)], "int64"), "CROWN-OVERFLOW"),
        (call("abs", std::slice::from_ref(&j), "int32"), "3"),
        (call("negate", &[j], "int32"), "3"),
        (call("negate", &[column("ni")], "int64"), "NULL"),
        (call("add", &[i.clone(), column("ni")], "int64"), "NULL"),
        (call("divide", &[f.clone(), float(2.0)], "float64"), "1.25"),
        (call("divide", &[f.clone(), float(0.0)], "float64"), "CROWN-DIVIDE-BY-ZERO"),
        (call("multiply", &[f.clone(), float(0.0)], "float64"), "0.0"),
        (call("abs", &[float(-1.5)], "float64"), "1.5"),
        (call("add", &[f, column("nan")], "float64"), "NaN"),
        (call("add", &[narrow(0.1), narrow(0.2)], "float32"), "0.3"),
        (call("add", &[i, text("x")], "int64"), "CROWN-PLAN-MALFORMED"),
    ]);
}

#[test]
fn decimals() {
    let (m, w) = (column("m"), column("w"));
    let dec = |value: &str, data_type: &str| literal(json!(value), data_type);
    let nines = "9".repeat(38);
    check(&[
        (call("add", &[m.clone(), dec("0.75", "decimal(10,2)")], "decimal(11,2)"), "13.25"),
        (call("subtract", &[m.clone(), dec("20", "decimal(10,2)")], "decimal(11,2)"), "-7.50"),
        (call("multiply", &[m.clone(), dec("0.1", "decimal(2,1)")], "decimal(13,3)"), "1.250"),
        (call("multiply", &[w.clone(), w.clone()], "decimal(38,4)"), "1524138.3936"),
        (call("multiply", &[w.clone(), w.clone()], "decimal(38,2)"), "1524138.39"),
        (call("divide", &[dec("1", "decimal(10,0)"), dec("3", "decimal(10,0)")], "decimal(21,11)"), "0.33333333333"),
        (call("divide", &[dec("2", "decimal(10,0)"), dec("-3", "decimal(10,0)")], "decimal(21,6)"), "-0.666667"),
        (call("divide", &[m.clone(), dec("0", "decimal(10,2)")], "decimal(21,11)"), "CROWN-DIVIDE-BY-ZERO"),
        (call("modulo", &[m.clone(), dec("5", "decimal(10,2)")], "decimal(10,2)"), "2.50"),
        (call("add", &[dec(&nines, "decimal(38,0)"), dec("1", "decimal(38,0)")], "decimal(38,0)"), "CROWN-OVERFLOW"),
        (
            call("multiply", &[dec(&nines, "decimal(38,0)"), dec("10", "decimal(38,0)")], "decimal(38,0)"),
            "CROWN-OVERFLOW",
        ),
        (call("negate", std::slice::from_ref(&w), "decimal(38,2)"), "-1234.56"),
        (call("add", &[m.clone(), column("nm")], "decimal(11,2)"), "NULL"),
        (call("gt", &[m.clone(), dec("12.49", "decimal(10,2)")], "boolean"), "true"),
        (call("eq", &[w, dec("1234.56", "decimal(38,2)")], "boolean"), "true"),
        (call("eq", &[m, dec("12.5", "decimal(10,1)")], "boolean"), "CROWN-PLAN-MALFORMED"),
    ]);
}

#[test]
fn comparisons_are_three_valued_and_nan_is_the_greatest() {
    let (i, ni, nan) = (column("i"), column("ni"), column("nan"));
    let infinity = literal(json!("Infinity"), "float64");
    for (function, less, equal, greater) in [
        ("eq", "false", "true", "false"),
        ("ne", "true", "false", "true"),
        ("lt", "true", "false", "false"),
        ("le", "true", "true", "false"),
        ("gt", "false", "false", "true"),
        ("ge", "false", "true", "true"),
    ] {
        check(&[
            (call(function, &[i.clone(), int(8)], "boolean"), less),
            (call(function, &[i.clone(), int(7)], "boolean"), equal),
            (call(function, &[i.clone(), int(6)], "boolean"), greater),
            (call(function, &[i.clone(), ni.clone()], "boolean"), "NULL"),
            (call(function, &[ni.clone(), i.clone()], "boolean"), "NULL"),
            (call(function, &[ni.clone(), ni.clone()], "boolean"), "NULL"),
            (call(function, &[nan.clone(), nan.clone()], "boolean"), equal),
            (call(function, &[infinity.clone(), nan.clone()], "boolean"), less),
            (call(function, &[text("Z"), text("a")], "boolean"), less),
            (call(function, &[text("é"), text("z")], "boolean"), greater),
        ]);
    }
    check(&[
        (call("is_not_distinct", &[i.clone(), int(7)], "boolean"), "true"),
        (call("is_not_distinct", &[i.clone(), ni.clone()], "boolean"), "false"),
        (call("is_not_distinct", &[ni.clone(), ni.clone()], "boolean"), "true"),
        (call("is_null", std::slice::from_ref(&ni), "boolean"), "true"),
        (call("is_null", std::slice::from_ref(&i), "boolean"), "false"),
        (call("in", &[i.clone(), int(1), int(7)], "boolean"), "true"),
        (call("in", &[i.clone(), int(1), int(2)], "boolean"), "false"),
        (call("in", &[i.clone(), int(1), ni.clone()], "boolean"), "NULL"),
        (call("in", &[i.clone(), ni.clone(), int(7)], "boolean"), "true"),
        (call("in", &[ni, int(1)], "boolean"), "NULL"),
        (call("in", std::slice::from_ref(&i), "boolean"), "false"),
        (call("eq", &[i, text("7")], "boolean"), "CROWN-PLAN-MALFORMED"),
    ]);
}

#[test]
fn logic_is_kleenes() {
    let values = [Some(true), Some(false), None];
    let name = |value: Option<bool>| value.map_or("NULL".to_string(), |value| value.to_string());
    for left in values {
        assert_eq!(shown(&call("not", &[truth(left)], "boolean")), name(left.map(|value| !value)));
        for right in values {
            let and = match (left, right) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            let or = match (left, right) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            };
            assert_eq!(shown(&call("and", &[truth(left), truth(right)], "boolean")), name(and), "{left:?} {right:?}");
            assert_eq!(shown(&call("or", &[truth(left), truth(right)], "boolean")), name(or), "{left:?} {right:?}");
        }
    }
    let failing = call("eq", &[call("modulo", &[int(1), int(0)], "int64"), int(0)], "boolean");
    check(&[
        (call("and", &[truth(Some(true)), truth(None), truth(Some(false))], "boolean"), "false"),
        (call("or", &[truth(Some(false)), column("nt"), column("t")], "boolean"), "true"),
        (call("and", &[truth(Some(false)), failing.clone()], "boolean"), "false"),
        (call("and", &[truth(Some(true)), failing], "boolean"), "CROWN-DIVIDE-BY-ZERO"),
    ]);
}

#[test]
fn conditionals() {
    let (i, ni, t, nt) = (column("i"), column("ni"), column("t"), column("nt"));
    check(&[
        (call("case", &[t.clone(), int(1), int(2)], "int64"), "1"),
        (call("case", &[nt.clone(), int(1), int(2)], "int64"), "2"),
        (call("case", &[nt.clone(), int(1)], "int64"), "NULL"),
        (call("case", &[nt, int(1), t, ni.clone(), int(3)], "int64"), "NULL"),
        (call("coalesce", &[ni.clone(), i.clone(), int(9)], "int64"), "7"),
        (call("coalesce", &[ni.clone(), ni.clone()], "int64"), "NULL"),
        (call("coalesce", &[column("ns"), text("none")], "string"), "none"),
        (call("greatest", &[i.clone(), ni.clone(), int(9)], "int64"), "9"),
        (call("least", &[i.clone(), ni.clone(), int(9)], "int64"), "7"),
        (call("least", &[ni.clone(), ni], "int64"), "NULL"),
        (call("greatest", &[column("f"), column("nan")], "float64"), "NaN"),
        (call("case", &[i.clone(), int(1), int(2)], "int64"), "CROWN-PLAN-MALFORMED"),
        (call("nothing", &[i], "int64"), "CROWN-PLAN-MALFORMED"),
    ]);
}

#[test]
fn strings() {
    let (s, ns) = (column("s"), column("ns"));
    let like = |value: &str, pattern: &str| call("like", &[text(value), text(pattern)], "boolean");
    let substring = |start: i64, length: i64| call("substring", &[column("s"), int(start), int(length)], "string");
    check(&[
        (like("abc", "abc"), "true"),
        (like("abc", "a%"), "true"),
        (like("abc", "%b%"), "true"),
        (like("abc", "_b_"), "true"),
        (like("é", "_"), "true"),
        (like("", "%"), "true"),
        (like("", ""), "true"),
        (like("", "_"), "false"),
        (like("abc", "ab"), "false"),
        (like("abcbd", "a%bd"), "true"),
        (like("aab", "%a_%b%"), "true"),
        (like("mississippi", "%iss%ip%i"), "true"),
        (like("mississippi", "%iss%ipx%"), "false"),
        (like("a%c", "a\\%c"), "true"),
        (like("abc", "a\\%c"), "false"),
        (like("a\nb", "a_b"), "true"),
        (like("a", "\\a"), "CROWN-FUNCTION"),
        (call("like", &[ns.clone(), text("%")], "boolean"), "NULL"),
        (call("like", &[s.clone(), null("string")], "boolean"), "NULL"),
        (call("like", &[s.clone(), ns.clone()], "boolean"), "NULL"),
        (call("upper", std::slice::from_ref(&s), "string"), "HÉLLO"),
        (call("lower", std::slice::from_ref(&s), "string"), "héllo"),
        (call("length", std::slice::from_ref(&s), "int32"), "5"),
        (call("length", &[literal(json!("00ff10"), "binary")], "int32"), "3"),
        (call("length", std::slice::from_ref(&ns), "int32"), "NULL"),
        (call("concat", &[s.clone(), text("-"), text("x")], "string"), "Héllo-x"),
        (call("concat", &[s.clone(), ns.clone()], "string"), "NULL"),
        (call("trim", &[text("  a b\t ")], "string"), "a b\t"),
        (substring(2, 3), "éll"),
        (substring(0, 2), "Hé"),
        (substring(-2, 5), "lo"),
        (substring(-7, 4), "Hé"),
        (substring(3, 0), ""),
        (substring(3, -1), ""),
        (substring(9, 2), ""),
        (call("substring", &[s.clone(), int(4)], "string"), "lo"),
        (call("substring", &[s.clone(), column("ni"), int(1)], "string"), "NULL"),
        (call("substring", &[ns, int(1), int(1)], "string"), "NULL"),
        (s, "Héllo"),
    ]);
}

#[test]
fn dates() {
    let (d, ts) = (column("d"), column("ts"));
    let days = |value: i64| literal(json!(value), "date");
    check(&[
        (call("year", std::slice::from_ref(&d), "int32"), "2022"),
        (call("month", std::slice::from_ref(&d), "int32"), "1"),
        (call("day", &[d], "int32"), "8"),
        (call("year", std::slice::from_ref(&ts), "int32"), "2020"),
        (call("day", &[ts], "int32"), "13"),
        (call("year", &[days(-1)], "int32"), "1969"),
        (call("day", &[literal(json!(-1), "timestamp")], "int32"), "31"),
        (call("day", &[days(11_016)], "int32"), "29"),
        (call("month", &[null("date")], "int32"), "NULL"),
        (call("year", &[column("i")], "int32"), "CROWN-PLAN-MALFORMED"),
    ]);
    for day in (-800_000..800_000).step_by(37) {
        let (year, month, date) = calendar::civil(day);
        assert_eq!(calendar::days(year, month, date), Some(day));
    }
    assert_eq!(calendar::days(2023, 2, 29), None);
}

#[test]
fn rounding() {
    let round = |argument: &Json, digits: i64, to: &str| call("round", &[argument.clone(), int(digits)], to);
    let money = |value: &str| literal(json!(value), "decimal(10,2)");
    check(&[
        (round(&money("2.35"), 1, "decimal(10,1)"), "2.4"),
        (round(&money("-2.35"), 1, "decimal(10,1)"), "-2.4"),
        (round(&money("2.34"), 5, "decimal(11,2)"), "2.34"),
        (round(&money("9.99"), 0, "decimal(9,0)"), "10"),
        (round(&money("155.00"), -1, "decimal(9,0)"), "160"),
        (round(&money("49.99"), -2, "decimal(9,0)"), "0"),
        (round(&money("50.00"), -2, "decimal(9,0)"), "100"),
        (round(&column("nm"), 1, "decimal(10,1)"), "NULL"),
        (
            round(&literal(json!("99999999999999999999999999999999999999"), "decimal(38,0)"), -1, "decimal(38,0)"),
            "CROWN-OVERFLOW",
        ),
        (round(&money("2.35"), 2, "decimal(10,1)"), "CROWN-PLAN-MALFORMED"),
        (round(&money("2.35"), 39, "decimal(10,2)"), "CROWN-PLAN-MALFORMED"),
        (call("round", &[column("f"), column("i")], "float64"), "CROWN-PLAN-MALFORMED"),
        (round(&int(25), -1, "int64"), "30"),
        (round(&int(-25), -1, "int64"), "-30"),
        (round(&int(25), 3, "int64"), "25"),
        (round(&literal(json!(127), "int8"), -1, "int8"), "CROWN-OVERFLOW"),
        // The digits that a float shows are rounded, not its binary value: 2.675 lies below the
        // tie.
        (round(&float(2.675), 2, "float64"), "2.68"),
        (round(&float(-0.5), 0, "float64"), "-1.0"),
        (round(&float(2.5), 0, "float64"), "3.0"),
        (round(&float(1234.5), -2, "float64"), "1200.0"),
        (round(&float(0.1), 30, "float64"), "0.1"),
        (round(&float(123_456_789.125), 38, "float64"), "1.23456789125E8"),
        (round(&float(1e300), 2, "float64"), "1.0E300"),
        (round(&column("nan"), 2, "float64"), "NaN"),
        (round(&literal(json!("-Infinity"), "float64"), 2, "float64"), "-Infinity"),
        (call("floor", &[money("-2.01")], "decimal(9,0)"), "-3"),
        (call("floor", &[money("2.99")], "decimal(9,0)"), "2"),
        (call("ceil", &[money("2.01")], "decimal(9,0)"), "3"),
        (call("ceil", &[money("-2.99")], "decimal(9,0)"), "-2"),
        (call("ceil", &[money("3.00")], "decimal(9,0)"), "3"),
        (call("floor", &[float(-2.5)], "int64"), "-3"),
        (call("ceil", &[float(-2.5)], "int64"), "-2"),
        (call("ceil", &[float(1e300)], "int64"), "CROWN-OVERFLOW"),
        (call("floor", &[column("nan")], "int64"), "0"),
        (call("floor", &[float(2.5)], "float64"), "CROWN-PLAN-MALFORMED"),
        (call("floor", &[column("s")], "int64"), "CROWN-PLAN-MALFORMED"),
    ]);
}

#[test]
fn functions_of_floats() {
    check(&[
        (call("sqrt", &[float(6.25)], "float64"), "2.5"),
        (call("sqrt", &[float(-1.0)], "float64"), "NaN"),
        (call("exp", &[float(0.0)], "float64"), "1.0"),
        (call("ln", &[float(1.0)], "float64"), "0.0"),
        (call("ln", &[float(0.0)], "float64"), "NULL"),
        (call("ln", &[float(-3.0)], "float64"), "NULL"),
        (call("power", &[float(2.0), float(-2.0)], "float64"), "0.25"),
        (call("power", &[float(2.0), null("float64")], "float64"), "NULL"),
        (call("sign", &[float(-7.5)], "float64"), "-1.0"),
        (call("sign", &[float(0.0)], "float64"), "0.0"),
        (call("sign", &[column("nan")], "float64"), "NaN"),
        (call("sqrt", &[int(4)], "float64"), "CROWN-PLAN-MALFORMED"),
        (call("power", &[float(2.0)], "float64"), "CROWN-PLAN-MALFORMED"),
    ]);
}

#[test]
fn strings_in_strings() {
    check(&[
        (call("replace", &[text("banana"), text("an"), text("é")], "string"), "bééa"),
        (call("replace", &[text("banana"), text(""), text("x")], "string"), "banana"),
        (call("replace", &[column("ns"), text("a"), text("x")], "string"), "NULL"),
        (call("starts_with", &[column("s"), text("Hé")], "boolean"), "true"),
        (call("starts_with", &[column("s"), text("hé")], "boolean"), "false"),
        (call("ends_with", &[column("s"), text("lo")], "boolean"), "true"),
        (call("contains", &[column("s"), text("éll")], "boolean"), "true"),
        (call("contains", &[column("s"), text("")], "boolean"), "true"),
        (call("contains", &[column("s"), column("ns")], "boolean"), "NULL"),
        (call("contains", &[column("s"), column("i")], "boolean"), "CROWN-PLAN-MALFORMED"),
        (call("ltrim", &[text("  a b ")], "string"), "a b "),
        (call("rtrim", &[text("  a b ")], "string"), "  a b"),
        (call("substring", &[text("a"), int(-2), int(2)], "string"), "a"),
    ]);
}

#[test]
fn days_and_truncated_times() {
    let day = |value: &str| call("cast", &[text(value)], "date");
    let moment = |value: &str| call("cast", &[text(value)], "timestamp");
    let truncated = |unit: &str, value: &str| call("date_trunc", &[text(unit), moment(value)], "timestamp");
    let days = |count: i64| literal(json!(count), "int32");
    check(&[
        (call("date_add", &[day("2024-02-28"), days(2)], "date"), "2024-03-01"),
        (call("date_add", &[day("1970-01-01"), days(-1)], "date"), "1969-12-31"),
        (call("date_add", &[days(1), days(1)], "date"), "CROWN-PLAN-MALFORMED"),
        (call("date_add", &[day("2024-02-28"), days(i64::from(i32::MAX))], "date"), "CROWN-OVERFLOW"),
        (call("date_diff", &[day("2024-03-01"), day("2024-02-28")], "int32"), "2"),
        (call("date_diff", &[day("1969-12-31"), day("1970-01-02")], "int32"), "-2"),
        (truncated("year", "2024-08-15 13:14:15.5"), "2024-01-01 00:00:00"),
        (truncated("quarter", "2024-08-15 13:14:15.5"), "2024-07-01 00:00:00"),
        (truncated("month", "1969-08-15 13:14:15.5"), "1969-08-01 00:00:00"),
        (truncated("week", "2024-08-15 13:14:15.5"), "2024-08-12 00:00:00"),
        (truncated("week", "1969-12-28 23:00:00"), "1969-12-22 00:00:00"),
        (truncated("day", "1969-12-31 13:14:15"), "1969-12-31 00:00:00"),
        (truncated("hour", "1969-12-31 13:14:15"), "1969-12-31 13:00:00"),
        (truncated("minute", "2024-08-15 13:14:15.5"), "2024-08-15 13:14:00"),
        (truncated("second", "2024-08-15 13:14:15.5"), "2024-08-15 13:14:15"),
        (truncated("decade", "2024-08-15 13:14:15.5"), "CROWN-PLAN-MALFORMED"),
        (call("date_trunc", &[text("month"), day("2024-08-15")], "date"), "2024-08-01"),
        (call("date_trunc", &[text("week"), day("1970-01-01")], "date"), "1969-12-29"),
        (call("date_trunc", &[text("month"), day("2024-08-15")], "timestamp"), "CROWN-PLAN-MALFORMED"),
        (call("quarter", &[day("2024-03-31")], "int32"), "1"),
        (call("quarter", &[day("2024-10-01")], "int32"), "4"),
        (call("dayofweek", &[day("2009-07-30")], "int32"), "5"),
        (call("dayofweek", &[day("1969-12-28")], "int32"), "1"),
        (call("hour", &[moment("1969-12-31 13:14:15.9")], "int32"), "13"),
        (call("minute", &[moment("1969-12-31 13:14:15.9")], "int32"), "14"),
        (call("second", &[moment("1969-12-31 13:14:15.9")], "int32"), "15"),
        (call("hour", &[day("2024-03-31")], "int32"), "0"),
    ]);
}

#[test]
fn casts() {
    let cast = |argument: &Json, to: &str| call("cast", std::slice::from_ref(argument), to);
    let read = |value: &str, to: &str| cast(&text(value), to);
    let double = |value: f64| shown(&cast(&float(value), "string"));
    for (value, expected) in [
        (1.0, "1.0"),
        (0.0, "0.0"),
        (-0.25, "-0.25"),
        (1e7, "1.0E7"),
        (9_999_999.0, "9999999.0"),
        (0.001, "0.001"),
        (1.25e-4, "1.25E-4"),
        (123456.789, "123456.789"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ] {
        assert_eq!(double(value), expected);
    }
    check(&[
        (cast(&column("i"), "string"), "7"),
        (cast(&column("t"), "string"), "true"),
        (cast(&column("d"), "string"), "2022-01-08"),
        (cast(&column("ts"), "string"), "2020-09-13 12:26:40.1234"),
        (cast(&column("m"), "string"), "12.50"),
        (cast(&column("nan"), "string"), "NaN"),
        (cast(&literal(json!("-Infinity"), "float64"), "string"), "-Infinity"),
        (cast(&column("ns"), "int64"), "NULL"),
        (read(" 42\n", "int64"), "42"),
        (read("+7", "int32"), "7"),
        (read("1.5", "int64"), "CROWN-CAST"),
        (read("128", "int8"), "CROWN-CAST"),
        (read("", "int64"), "CROWN-CAST"),
        (read("1e3", "float64"), "1000.0"),
        (read("nan", "float64"), "NaN"),
        (read("-1.5d", "float64"), "-1.5"),
        (read("d", "float64"), "CROWN-CAST"),
        (read("inf", "float64"), "Infinity"),
        (read("x", "float64"), "CROWN-CAST"),
        (read("12.345", "decimal(10,2)"), "12.35"),
        (read("-12.345", "decimal(10,2)"), "-12.35"),
        (read("1.2e3", "decimal(10,2)"), "1200.00"),
        (read("5e-3", "decimal(10,2)"), "0.01"),
        (read("123456789", "decimal(10,2)"), "CROWN-OVERFLOW"),
        (read("12a", "decimal(10,2)"), "CROWN-CAST"),
        (read("inf", "decimal(10,2)"), "CROWN-CAST"),
        (read("TRUE", "boolean"), "true"),
        (read("no", "boolean"), "false"),
        (read("maybe", "boolean"), "CROWN-CAST"),
        (read("2024-02-29", "date"), "2024-02-29"),
        (read("2024-2-9", "date"), "2024-02-09"),
        (read("2024", "date"), "2024-01-01"),
        (read("2024-05", "date"), "2024-05-01"),
        (read("2024-02-29T12:00", "date"), "2024-02-29"),
        (read("2023-02-29", "date"), "CROWN-CAST"),
        (read("24-02-29", "date"), "CROWN-CAST"),
        (read("2024-02-29x", "date"), "CROWN-CAST"),
        (read("2024-02-29 01:02:03.5", "timestamp"), "2024-02-29 01:02:03.5"),
        (read("2024-02-29T01:02:03.1234567Z", "timestamp"), "2024-02-29 01:02:03.123456"),
        (read("2024-02-29 01:02:03+02:30", "timestamp"), "2024-02-28 22:32:03"),
        (read("2024-02-29 01:02", "timestamp"), "2024-02-29 01:02:00"),
        (read("2024-02-29 01:02 UTC", "timestamp"), "CROWN-CAST"),
        (read("2024-02-29 01:02:03 GMT+3", "timestamp"), "2024-02-28 22:02:03"),
        (read("2024-02-29 25:02:03", "timestamp"), "CROWN-CAST"),
        (read("2024-02-29", "timestamp_ntz"), "2024-02-29 00:00:00"),
        (cast(&float(2.9), "int64"), "2"),
        (cast(&float(-2.9), "int32"), "-2"),
        (cast(&float(1e10), "int32"), "CROWN-OVERFLOW"),
        (cast(&float(1e300), "int64"), "CROWN-OVERFLOW"),
        (cast(&column("nan"), "int64"), "CROWN-OVERFLOW"),
        (cast(&int(300), "int8"), "CROWN-OVERFLOW"),
        (cast(&int(-3), "float32"), "-3.0"),
        (cast(&float(0.1), "float32"), "0.1"),
        (cast(&int(0), "boolean"), "false"),
        (cast(&column("t"), "int32"), "1"),
        (cast(&column("m"), "int64"), "12"),
        (cast(&column("m"), "float64"), "12.5"),
        (cast(&column("m"), "decimal(5,1)"), "12.5"),
        (cast(&column("m"), "decimal(2,1)"), "CROWN-OVERFLOW"),
        (cast(&column("m"), "decimal(38,6)"), "12.500000"),
        (cast(&column("w"), "decimal(10,1)"), "1234.6"),
        (cast(&int(5), "decimal(20,2)"), "5.00"),
        (cast(&float(0.125), "decimal(10,2)"), "0.13"),
        (cast(&float(1.1), "decimal(20,18)"), "1.100000000000000000"),
        (cast(&column("nan"), "decimal(10,2)"), "NULL"),
        (cast(&column("d"), "timestamp"), "2022-01-08 00:00:00"),
        (cast(&column("ts"), "date"), "2020-09-13"),
        (cast(&literal(json!(-1), "timestamp"), "date"), "1969-12-31"),
        (cast(&column("ts"), "int64"), "1600000000"),
        (cast(&literal(json!(-1), "timestamp"), "int64"), "-1"),
        (cast(&column("ts"), "float64"), "1.6000000001234E9"),
        (cast(&int(60), "timestamp"), "1970-01-01 00:01:00"),
        (cast(&int(i64::MAX), "timestamp"), "+294247-01-10 04:00:54.775807"),
        (cast(&float(1e300), "timestamp"), "CROWN-OVERFLOW"),
        (cast(&float(1.5), "timestamp"), "1970-01-01 00:00:01.5"),
        (cast(&text("abc"), "binary"), "abc"),
        (cast(&column("d"), "int64"), "CROWN-PLAN-MALFORMED"),
        (cast(&column("i"), "binary"), "CROWN-PLAN-MALFORMED"),
    ]);
}

#[test]
fn malformed_expressions_are_plan_errors() {
    check(&[
        (json!({"kind": "column", "name": "nope", "type": "int64"}), "CROWN-PLAN-MALFORMED"),
        (literal(json!("x"), "int64"), "CROWN-PLAN-MALFORMED"),
        (literal(json!(200), "int8"), "CROWN-PLAN-MALFORMED"),
        (literal(json!("abc"), "binary"), "CROWN-PLAN-MALFORMED"),
        (literal(json!(1), "int"), "CROWN-PLAN-MALFORMED"),
        (call("add", &[int(1)], "int64"), "CROWN-PLAN-MALFORMED"),
        (call("not", &[truth(None), truth(None)], "boolean"), "CROWN-PLAN-MALFORMED"),
        (call("coalesce", &[], "int64"), "CROWN-PLAN-MALFORMED"),
        (call("substring", &[text("a")], "string"), "CROWN-PLAN-MALFORMED"),
    ]);
}

#[test]
fn a_bare_column_is_known_as_such() {
    assert_eq!(compiled(&column("s")).unwrap().is_column(), Some(4));
    assert_eq!(compiled(&int(1)).unwrap().is_column(), None);
}

#[test]
fn what_can_fail_on_some_row_is_known() {
    let above = call("gt", &[column("i"), int(3)], "boolean");
    let sum = call("add", &[column("i"), int(3)], "int64");
    for (expression, can_fail) in [
        (above.clone(), false),
        (call("and", &[above.clone(), call("is_null", &[column("s")], "boolean")], "boolean"), false),
        (sum.clone(), true),
        (call("and", &[above.clone(), call("gt", &[sum.clone(), int(3)], "boolean")], "boolean"), true),
        (call("case", &[above.clone(), sum, int(1)], "int64"), true),
        (call("case", &[above, int(2), int(1)], "int64"), false),
    ] {
        assert_eq!(compiled(&expression).unwrap().can_fail(), can_fail, "{expression}");
    }
}
