"""Messages of entries about statements."""

from __future__ import annotations

import pytest

from pgdyno.capture.logs.message import Logged, read_message


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("statement: SELECT 1", Logged("SELECT 1", None, is_execution=True, is_simple=True)),
        ("execute <unnamed>: BEGIN", Logged("BEGIN", None, is_execution=True, is_simple=False)),
        ("execute S_1: SELECT a: b", Logged("SELECT a: b", None, is_execution=True, is_simple=False)),
        ("execute s/c: SELECT 1", Logged("SELECT 1", None, is_execution=True, is_simple=False)),
        ("duration: 0.062 ms", Logged(None, 0.062, is_execution=False, is_simple=False)),
        (
            "duration: 12.500 ms  statement: SELECT\n 1",
            Logged("SELECT\n 1", 12.5, is_execution=True, is_simple=True),
        ),
        ("duration: 0.1 ms  bind s: SELECT 1", Logged("SELECT 1", 0.1, is_execution=False, is_simple=False)),
        ("duration: 0.1 ms  parse s: SELECT 1", Logged("SELECT 1", 0.1, is_execution=False, is_simple=False)),
        ("execute fetch from s/c: SELECT 1", Logged("SELECT 1", None, is_execution=False, is_simple=False)),
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
    found = read_message("statement: EXECUTE s(1)", "prepare: PREPARE s AS SELECT $1")
    assert found is not None
    assert found.values == {}
