"""Messages of entries about statements."""

from __future__ import annotations

import pytest

from pgdyno.workload.capture.logs.entry import Logged, read_message


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("statement: SELECT 1", Logged("SELECT 1", None, "simple", is_execution=True)),
        ("statement: execute s: SELECT 1", Logged("execute s: SELECT 1", None, "simple", is_execution=True)),
        ("execute <unnamed>: BEGIN", Logged("BEGIN", None, "extended", is_execution=True)),
        ("execute <unnamed>/c: SELECT 1", Logged("SELECT 1", None, "extended", is_execution=True)),
        ("execute S_1: SELECT a: b", Logged("SELECT a: b", None, "prepared", is_execution=True)),
        ("execute s/c: SELECT 1", Logged("SELECT 1", None, "prepared", is_execution=True)),
        ("duration: 0.062 ms", Logged(None, 0.062)),
        (
            "duration: 12.500 ms  statement: SELECT\n 1",
            Logged("SELECT\n 1", 12.5, "simple", is_execution=True),
        ),
        ("duration: 0.1 ms  execute P_0: SELECT", Logged("SELECT", 0.1, "prepared", is_execution=True)),
        ("duration: 0.1 ms  bind s: SELECT 1", Logged("SELECT 1", 0.1, "prepared")),
        ("duration: 0.1 ms  bind <unnamed>: SELECT 1", Logged("SELECT 1", 0.1, "extended")),
        ("duration: 0.1 ms  parse s: SELECT 1", Logged("SELECT 1", 0.1, "prepared", is_parse=True)),
        ("duration: 0.1 ms  parse <unnamed>: SELECT", Logged("SELECT", 0.1, "extended", is_parse=True)),
        ("execute fetch from s/c: SELECT 1", Logged("SELECT 1", None, "prepared")),
    ],
)  # fmt: skip
def test_messages_about_statements(message: str, expected: Logged) -> None:
    assert read_message(message, "") == expected


@pytest.mark.parametrize(
    "message",
    [
        "duration: 3.1 ms  plan:\nQuery Text: SELECT 1",
        "checkpoint starting: time",
        "AUDIT: SESSION,1,1,READ,SELECT,,,SELECT 1,<none>",
        "connection received: host=[local]",
        "",
    ],
)
def test_other_messages(message: str) -> None:
    assert read_message(message, "") is None


@pytest.mark.parametrize("word", ["parameters", "Parameters"])
def test_parameters_by_number(word: str) -> None:
    found = read_message("execute s: SELECT 1", f"{word}: $1 = '42', $2 = NULL, $3 = 'it''s, $4 = '''")
    assert found is not None
    assert found.values == {1: "42", 2: None, 3: "it's, $4 = '"}


def test_a_value_that_was_cut_is_not_known() -> None:
    found = read_message("execute s: SELECT 1", "Parameters: $1 = 'abc...', $2 = '7'")
    assert found is not None
    assert found.values == {2: "7"}


def test_another_detail_has_no_parameters() -> None:
    found = read_message("execute s: SELECT 1", "portal: s")
    assert found is not None
    assert found.values == {}


def test_execute_runs_the_statement_of_prepare_in_its_detail() -> None:
    found = read_message(
        "duration: 1.500 ms  statement: EXECUTE s(1, 'it''s', now())",
        "prepare: PREPARE s (int) AS SELECT a FROM t WHERE b = $1 AND c IN ($2, $3)",
    )
    assert found is not None
    assert (found.sql, found.ms, found.protocol, found.is_execution) == (
        "SELECT a FROM t WHERE b = $1::int AND c IN ($2, $3)", 1.5, "prepared", True,
    )  # fmt: skip
    assert found.values == {1: "1", 2: "it's"}
    assert found.sent == "EXECUTE s(1, 'it''s', now())"


@pytest.mark.parametrize("sql", ["EXECUTE s(1); SELECT f(2)", "PREPARE s AS SELECT 1; UPDATE t SET a = 1"])
def test_several_statements_stay_with_execute_and_prepare_among_them(sql: str) -> None:
    found = read_message(f"statement: {sql}", "prepare: PREPARE s (int) AS SELECT $1")
    assert found == Logged(sql, None, "simple", is_execution=True)


def test_prepare_runs_nothing_and_execute_without_detail_is_not_known() -> None:
    prepare = read_message("statement: PREPARE s AS SELECT 1", "")
    execute = read_message("statement: EXECUTE s", "")
    assert prepare is not None
    assert execute is not None
    assert (prepare.is_execution, execute.is_execution, execute.sql) == (False, True, "EXECUTE s")
