use std::collections::HashMap;

use serde_json::{Value, json};

use super::{CapturedOptions, roles};
use crate::protocol::request::{Mode, write_call};
use crate::workload::{Call, Next, Pace, Role, Transaction};

/// A call as the server receives it: the statement's name and its parameters.
type Sent = (&'static str, Vec<Option<String>>);

fn options(value: Value) -> CapturedOptions {
    let options: CapturedOptions = serde_json::from_value(value).unwrap();
    options.check().unwrap();
    options
}

/// A workload of one statement with these parameters.
pub(super) fn with_parameters(parameters: &Value) -> Value {
    json!({
        "statements": [{"name": "s", "sql": "SELECT $1"}],
        "transactions": [{"weight": 1, "calls": [{"statement": 0, "parameters": parameters}]}],
    })
}

fn next(role: &mut Role, client: usize) -> Vec<Sent> {
    let mut transaction = Transaction::default();
    assert_eq!(role.clients[client].next(&mut transaction), Next::Ready);
    let text = |bytes: Option<&[u8]>| bytes.map(|text| String::from_utf8(text.to_vec()).unwrap());
    let sent =
        |call: &Call| (role.statements[call.statement].name, transaction.arguments(call).map(text).collect());
    transaction.calls().iter().map(sent).collect()
}

/// The values of one parameter in many transactions of the first client.
fn drawn(draw: &Value) -> Vec<Option<String>> {
    let mut role = roles(&options(with_parameters(&json!([draw]))), 1, 7, Pace::Closed).remove(0);
    (0..2000).map(|_| next(&mut role, 0).remove(0).1.remove(0)).collect()
}

fn numbers(draw: &Value) -> Vec<f64> {
    drawn(draw).into_iter().map(|text| text.unwrap().parse().unwrap()).collect()
}

fn shares(texts: Vec<Option<String>>) -> HashMap<Option<String>, f64> {
    let mut shares = HashMap::new();
    let all = texts.len() as f64;
    for text in texts {
        *shares.entry(text).or_default() += 1.0 / all;
    }
    shares
}

#[test]
fn transactions_are_chosen_by_weight_and_their_calls_repeated() {
    let options = options(json!({
        "statements": [{"name": "often", "sql": "SELECT 1"}, {"name": "rarely", "sql": "SELECT 2"}],
        "transactions": [
            {"weight": 3, "calls": [{"statement": 0, "times": 2.5}]},
            {"weight": 1, "calls": [{"statement": 1}, {"statement": 0, "times": 0.25}]},
        ],
    }));
    let mut role = roles(&options, 1, 1, Pace::Closed).remove(0);
    let mut counts: HashMap<Vec<&str>, f64> = HashMap::new();
    for _ in 0..4000 {
        let names = next(&mut role, 0).into_iter().map(|(name, _)| name).collect();
        *counts.entry(names).or_default() += 1.0 / 4000.0;
    }
    let expected = [
        (vec!["often", "often"], 0.375),
        (vec!["often", "often", "often"], 0.375),
        (vec!["rarely"], 0.1875),
        (vec!["rarely", "often"], 0.0625),
    ];
    assert_eq!(counts.len(), expected.len());
    for (names, share) in expected {
        assert!((counts[&names] - share).abs() < 0.04, "{names:?}: {}", counts[&names]); // 5 sigma
    }
}

#[test]
fn a_transaction_without_calls_is_chosen_again() {
    let options = options(json!({
        "statements": [{"name": "s", "sql": "SELECT 1"}],
        "transactions": [{"weight": 1, "calls": [{"statement": 0, "times": 0.1}]}],
    }));
    let mut role = roles(&options, 1, 1, Pace::Closed).remove(0);
    assert!((0..100).all(|_| next(&mut role, 0).len() == 1));
}

#[test]
fn equal_seeds_give_equal_streams_and_clients_differ() {
    let options = options(with_parameters(&json!([{"draw": "integer", "low": 1, "high": 1_000_000_000}])));
    let stream = |client| {
        let mut role = roles(&options, 2, 1, Pace::Closed).remove(0);
        (0..10).map(|_| next(&mut role, client)).collect::<Vec<_>>()
    };
    assert_eq!(stream(0), stream(0));
    assert_ne!(stream(0), stream(1));
}

#[test]
fn integers_constants_and_null_are_drawn_as_specified() {
    assert!(numbers(&json!({"draw": "integer", "low": -1, "high": 1})).iter().all(|n| n.abs() <= 1.0));
    let constants = drawn(&json!({"draw": "constant", "value": "it's"}));
    assert!(constants.iter().all(|text| text.as_deref() == Some("it's")));
    assert!(drawn(&json!({"draw": "null"})).iter().all(Option::is_none));
}

#[test]
fn values_are_drawn_by_weight() {
    let mut value =
        with_parameters(&json!([{"draw": "one-of", "sample": 1}, {"draw": "one-of", "sample": 0}]));
    value["samples"] = json!([{"values": ["x"]}, {"values": ["a", "b", "c"], "weights": [1, 0, 3]}]);
    let mut role = roles(&options(value), 1, 7, Pace::Closed).remove(0);
    let pairs: Vec<_> = (0..2000).map(|_| next(&mut role, 0).remove(0).1).collect();
    assert!(pairs.iter().all(|pair| pair[1].as_deref() == Some("x")));
    let shares = shares(pairs.into_iter().map(|mut pair| pair.remove(0)).collect());
    assert_eq!(shares.len(), 2);
    assert!((shares[&Some("c".into())] - 0.75).abs() < 0.05, "{shares:?}"); // 5 sigma
}

#[test]
fn a_histogram_has_as_many_numbers_in_every_bucket() {
    let drawn = numbers(&json!({"draw": "histogram", "bounds": [-50, 0, 1000], "scale": 2}));
    let below = drawn.iter().filter(|number| **number < 0.0).count() as f64 / 2000.0;
    assert!((below - 0.49).abs() < 0.06, "{below}");
    assert!(drawn.iter().all(|number| (-0.5..=10.0).contains(number)));
    assert!(drawn.iter().any(|number| *number > 5.0));
}

#[test]
fn decimals_are_written_with_all_their_digits() {
    let drawn = drawn(&json!({"draw": "histogram", "bounds": [-5, -5], "scale": 3}));
    assert_eq!(drawn[0].as_deref(), Some("-0.005"));
}

#[test]
fn texts_have_lengths_between_two_others() {
    let lengths: Vec<usize> = drawn(&json!({"draw": "text", "least": 2, "most": 4}))
        .into_iter()
        .map(|text| text.unwrap().len())
        .collect();
    assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&2), Some(&4)));
}

#[test]
fn no_two_clients_have_a_number_of_a_sequence_in_common() {
    let options = options(with_parameters(&json!([{"draw": "sequence", "start": 100}])));
    let mut role = roles(&options, 3, 1, Pace::Closed).remove(0);
    let mut drawn: Vec<_> = (0..3)
        .flat_map(|client| (0..4).map(move |_| client))
        .map(|client| next(&mut role, client).remove(0).1.remove(0).unwrap())
        .collect();
    drawn.sort_unstable_by_key(|text| text.parse::<i64>().unwrap());
    assert_eq!(drawn, (100..112).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn no_two_parts_of_a_sequence_have_a_number_in_common() {
    let part = |part| json!({"draw": "sequence", "start": 1, "part": part, "parts": 2});
    let options = options(with_parameters(&json!([part(0), part(1)])));
    let mut role = roles(&options, 2, 1, Pace::Closed).remove(0);
    let mut drawn: Vec<i64> = [0, 1, 0, 1]
        .into_iter()
        .flat_map(|client| next(&mut role, client).remove(0).1)
        .map(|text| text.unwrap().parse().unwrap())
        .collect();
    drawn.sort_unstable();
    assert_eq!(drawn, (1..=8).collect::<Vec<_>>());
}

#[test]
fn uuids_are_random_and_of_version_4() {
    let drawn = drawn(&json!({"draw": "uuid"}));
    let first = drawn[0].as_deref().unwrap();
    assert_eq!((first.len(), &first[14..15]), (36, "4"));
    assert!(["8", "9", "a", "b"].contains(&&first[19..20]), "{first}");
    assert_eq!(shares(drawn).len(), 2000);
}

#[test]
fn a_parameter_can_be_the_same_as_an_earlier_one_of_its_transaction() {
    let options = options(json!({
        "statements": [{"name": "update", "sql": "…"}, {"name": "range", "sql": "…"}],
        "transactions": [{"weight": 1, "calls": [
            {"statement": 0, "times": 2, "parameters": [{"draw": "integer", "low": 1, "high": 1_000_000}]},
            {"statement": 1, "parameters": [
                {"draw": "same-as", "call": 0, "parameter": 0},
                {"draw": "same-as", "call": 1, "parameter": 0, "plus": 99},
            ]},
        ]}],
    }));
    let mut role = roles(&options, 1, 1, Pace::Closed).remove(0);
    for _ in 0..100 {
        let sent = next(&mut role, 0);
        let number =
            |call: usize, parameter: usize| sent[call].1[parameter].as_ref().unwrap().parse::<i64>().unwrap();
        assert_ne!(number(0, 0), number(1, 0));
        assert_eq!((number(2, 0), number(2, 1)), (number(1, 0), number(1, 0) + 99));
    }
}

#[test]
fn the_end_of_a_range_is_as_far_from_its_beginning_as_one_of_the_widths() {
    let mut value = with_parameters(&json!([
        {"draw": "one-of", "sample": 0},
        {"draw": "range-end", "call": 0, "parameter": 0, "widths": [0, 604_800]},
        {"draw": "null"},
        {"draw": "range-end", "call": 0, "parameter": 2, "widths": [1]},
    ]));
    value["samples"] = json!([{"values": ["2026-01-01", "2026-02-01"]}]);
    let options = options(value);
    let mut role = roles(&options, 1, 1, Pace::Closed).remove(0);
    let mut counts: HashMap<(String, String), u32> = HashMap::new();
    for _ in 0..1000 {
        let mut values = next(&mut role, 0).remove(0).1;
        assert_eq!(values.split_off(2), [None, None]);
        let (end, beginning) = (values.pop().unwrap().unwrap(), values.pop().unwrap().unwrap());
        *counts.entry((beginning, end)).or_default() += 1;
    }
    for pair in [
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01", "2026-01-08"),
        ("2026-02-01", "2026-02-01"),
        ("2026-02-01", "2026-02-08"),
    ] {
        let count = counts.remove(&(pair.0.to_owned(), pair.1.to_owned())).unwrap();
        assert!(count.abs_diff(250) < 100, "{pair:?}: {count}"); // 7 sigma
    }
    assert!(counts.is_empty());
}

#[test]
fn a_parameter_can_be_what_an_earlier_call_returned() {
    let options = options(json!({
        "statements": [{"name": "insert", "sql": "…"}, {"name": "line", "sql": "…"}],
        "transactions": [{"weight": 1, "calls": [
            {"statement": 0, "times": 2},
            {"statement": 1, "parameters": [
                {"draw": "returned", "call": 0, "column": 1},
                {"draw": "constant", "value": "x"},
                {"draw": "returned", "call": 0, "column": 1, "plus": -1},
            ]},
        ]}],
    }));
    let mut role = roles(&options, 1, 1, Pace::Closed).remove(0);
    let mut transaction = Transaction::default();
    role.clients[0].next(&mut transaction);
    let line = |transaction: &Transaction| -> Vec<Option<String>> {
        let text = |bytes: Option<&[u8]>| bytes.map(|text| String::from_utf8(text.to_vec()).unwrap());
        transaction.arguments(&transaction.calls()[2]).map(text).collect()
    };
    assert_eq!(line(&transaction), [None, Some("x".into()), None]);
    let row = |value: &[u8]| [&b"\0\x02\xff\xff\xff\xff\0\0\0\x02"[..], value].concat();
    transaction.receive(0, &row(b"41"));
    assert_eq!(line(&transaction)[0], None); // the last execution counts
    transaction.receive(1, &row(b"42"));
    assert_eq!(line(&transaction), [Some("42".into()), Some("x".into()), Some("41".into())]);
    transaction.receive(1, &row(b"43")); // tried again
    assert_eq!(line(&transaction)[0], Some("43".into()));
    transaction.receive(1, &[]);
    assert_eq!(line(&transaction), [None, Some("x".into()), None]);
}

#[test]
fn an_ordinal_counts_the_calls_of_a_statement_in_each_transaction() {
    let options = options(json!({
        "statements": [{"name": "line", "sql": "…"}, {"name": "stock", "sql": "…"}],
        "transactions": [{"weight": 1, "calls": [
            {"statement": 0, "times": 3, "parameters": [{"draw": "ordinal"}]},
            {"statement": 1, "parameters": [{"draw": "ordinal"}]},
            {"statement": 0, "parameters": [{"draw": "ordinal"}]},
        ]}],
    }));
    let mut role = roles(&options, 1, 1, Pace::Closed).remove(0);
    for _ in 0..2 {
        let lines = next(&mut role, 0).into_iter().map(|(_, mut values)| values.remove(0).unwrap());
        assert_eq!(lines.collect::<Vec<_>>(), ["1", "2", "3", "1", "4"]);
    }
}

#[test]
fn an_array_has_values_that_are_drawn_one_by_one() {
    let array = |of: Value| json!({"draw": "array", "of": of, "length": 2});
    let quoted = drawn(&array(json!({"draw": "constant", "value": "a\"b\\c,d"})));
    assert_eq!(quoted[0].as_deref(), Some(r#"{"a\"b\\c,d","a\"b\\c,d"}"#));
    assert_eq!(drawn(&array(json!({"draw": "null"})))[0].as_deref(), Some("{NULL,NULL}"));
    let differ = shares(drawn(&array(json!({"draw": "integer", "low": 0, "high": 1}))));
    assert_eq!(differ.len(), 4);
}

#[test]
fn a_mixture_draws_from_its_parts_by_weight() {
    let shares = shares(drawn(&json!({"draw": "mixture", "parts": [
        [0.25, {"draw": "null"}],
        [0.75, {"draw": "constant", "value": "x"}],
    ]})));
    assert_eq!(shares.len(), 2);
    assert!((shares[&None] - 0.25).abs() < 0.05, "{shares:?}"); // 5 sigma
}

#[test]
fn null_travels_as_null_in_every_mode() {
    let options = options(with_parameters(&json!([{"draw": "null"}])));
    let mut role = roles(&options, 1, 1, Pace::Closed).remove(0);
    let mut transaction = Transaction::default();
    role.clients[0].next(&mut transaction);
    let sent = |mode| {
        let mut out = Vec::new();
        write_call(&mut out, mode, &role.statements, &transaction, &transaction.calls()[0]);
        out
    };
    assert_eq!(&sent(Mode::Simple)[5..], b"SELECT NULL\0");
    // One parameter, of -1 bytes.
    assert!(sent(Mode::Prepared).windows(6).any(|bytes| bytes == [0, 1, 0xff, 0xff, 0xff, 0xff]));
}

#[test]
fn a_statement_that_is_not_prepared_travels_as_text() {
    let options = options(json!({
        "statements": [{"name": "begin", "sql": "BEGIN", "prepared": false}],
        "transactions": [{"weight": 1, "calls": [{"statement": 0}]}],
    }));
    let mut role = roles(&options, 1, 1, Pace::Closed).remove(0);
    let mut transaction = Transaction::default();
    role.clients[0].next(&mut transaction);
    let mut out = Vec::new();
    write_call(&mut out, Mode::Prepared, &role.statements, &transaction, &transaction.calls()[0]);
    assert_eq!(out, b"Q\0\0\0\x0aBEGIN\0");
}
