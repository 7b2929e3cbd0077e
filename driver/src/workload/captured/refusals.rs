//! Tests of invalid options.

use serde_json::{Value, json};

use super::CapturedOptions;
use super::tests::with_parameters;

fn refused(value: Value) -> String {
    let options: CapturedOptions = serde_json::from_value(value).unwrap();
    let error = options.check().unwrap_err();
    assert_eq!(error.message, "cannot run workload \"captured\"");
    error.detail.unwrap()
}

#[test]
fn what_cannot_be_drawn_is_refused_with_its_place() {
    for (draw, why) in [
        (json!({"draw": "integer", "low": 2, "high": 1}), "cannot draw an integer from 2 to 1"),
        (json!({"draw": "one-of", "sample": 0}), "sample 0 of 0 does not exist"),
        (
            json!({"draw": "array", "of": {"draw": "one-of", "sample": 2}, "length": 1}),
            "sample 2 of 0 does not exist",
        ),
        (json!({"draw": "histogram", "bounds": [1]}), "a histogram needs at least two bounds"),
        (
            json!({"draw": "histogram", "bounds": [2, 1]}),
            "the bounds of a histogram are not in ascending order",
        ),
        (json!({"draw": "histogram", "bounds": [1, 2], "scale": 19}), "19 decimals are too many"),
        (json!({"draw": "text", "least": 2, "most": 1}), "a text cannot have 2 to 1 letters"),
        (json!({"draw": "sequence", "start": 1, "part": 1}), "part 1 of 1 does not exist"),
        (
            json!({"draw": "same-as", "call": 0, "parameter": 0}),
            "parameter 0 of call 0 is not an earlier parameter",
        ),
        (
            json!({"draw": "range-end", "call": 0, "parameter": 0, "widths": [1]}),
            "parameter 0 of call 0 is not an earlier parameter",
        ),
        (
            json!({"draw": "range-end", "call": 0, "parameter": 0, "widths": []}),
            "the widths of a range are not numbers",
        ),
        (json!({"draw": "returned", "call": 0, "column": 0}), "column 0 of call 0 is not an earlier result"),
        (json!({"draw": "mixture", "parts": []}), "a mixture has no parts"),
        (
            json!({"draw": "mixture", "parts": [[1, {"draw": "mixture", "parts": []}]]}),
            "a mixture or array contains a mixture, an array, an ordinal or a returned value",
        ),
    ] {
        let detail = refused(with_parameters(&json!([draw])));
        assert_eq!(detail, format!("transaction 0: call 0, of statement 0: {why} (s)"));
    }
}

#[test]
fn samples_without_values_or_with_wrong_weights_are_refused() {
    for (sample, why) in [
        (json!({"values": []}), "the list of values is empty"),
        (json!({"values": ["a"], "weights": [1, 2]}), "1 values have 2 weights"),
        (json!({"values": ["a"], "weights": [0]}), "weights must be non-negative numbers, not all of them 0"),
    ] {
        let mut value = with_parameters(&json!([{"draw": "one-of", "sample": 0}]));
        value["samples"] = json!([{"values": ["a"]}, sample]);
        assert_eq!(refused(value), format!("sample 1: {why}"));
    }
}

#[test]
fn a_workload_without_calls_or_statements_is_refused() {
    assert_eq!(refused(json!({})), "it has no transaction");
    let no_call = json!({"transactions": [{"weight": 1, "calls": []}]});
    assert_eq!(refused(no_call), "transaction 0: its calls total 0 executions");
    let no_statement = json!({"transactions": [{"weight": 1, "calls": [{"statement": 0}]}]});
    let mut value = with_parameters(&json!([{"draw": "null"}]));
    value["statements"][0]["prepared"] = json!(false);
    assert_eq!(
        refused(value),
        "transaction 0: call 0, of statement 0: it has parameters but is not prepared (s)"
    );
    assert_eq!(refused(no_statement), "transaction 0: call 0, of statement 0: there are 0 statements");
    let mut value = with_parameters(&json!([]));
    value["transactions"][0]["weight"] = json!(0);
    assert_eq!(refused(value), "transaction 0: its weight cannot be 0");
    let mut value = with_parameters(&json!([]));
    value["transactions"][0]["calls"][0]["times"] = json!(0);
    assert_eq!(refused(value), "transaction 0: its calls total 0 executions");
    let calls = json!([{"statement": 0}, {"statement": 0, "times": 0.00001}]);
    let value =
        json!({"statements": [{"name": "s", "sql": ""}], "transactions": [{"weight": 1, "calls": calls}]});
    assert_eq!(refused(value), "transaction 0: call 1, of statement 0: it cannot be executed 0.00001 times");
}
