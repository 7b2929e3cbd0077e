"""A log_line_prefix as a pattern: what its fields may contain, and which lines are ambiguous."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.workload.capture.logs.test_format import PREFIX, lines
from tests.unit.workload.capture.logs.test_stderr_entries import AT, FORGED

from pgdyno.base.errors import UsageError
from pgdyno.workload.capture.logs.line_prefix import beginning, foreign_severity, prefix_pattern
from pgdyno.workload.capture.logs.stderr_entries import stderr_entries


@pytest.mark.parametrize(
    "prefix", ["%t:%r:%u@%d:[%p]: ", "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ", "%n %c "]
)
def test_prefixes_of_others_are_read(prefix: str) -> None:
    values = {
        "%t": "2026-11-25 12:35:23 CET", "%r": "10.0.0.1(54321)", "%u": "app", "%d": "shop", "%p": "77",
        "%l": "3", "%a": "my app, 2", "%h": "db.example.org", "%n": "1795610123.957", "%c": "6b06d60b.1730",
    }  # fmt: skip
    written = prefix
    for escape, value in values.items():
        written = written.replace(escape, value)
    [entry] = stderr_entries([f"{written}LOG:  statement: SELECT 1\n"], prefix_pattern(prefix))
    assert entry is not None
    assert (entry.message, entry.session in {"77", "6b06d60b.1730"}) == ("statement: SELECT 1", True)
    assert entry.database == ("shop" if "%d" in prefix else None)


def test_a_prefix_that_does_not_tell_sessions_apart_is_refused() -> None:
    with pytest.raises(UsageError) as found:
        prefix_pattern("%m %u@%d ")
    assert found.value.message == "log_line_prefix = '%m %u@%d ' does not identify sessions"
    assert found.value.detail == "it contains neither %p (process ID) nor %c (session ID)"


def test_processes_that_are_no_sessions_end_the_prefix_early() -> None:
    text = "2026-11-25 12:35:23.957 UTC [12] LOG:  checkpoint starting: time\n"
    [entry] = stderr_entries([text], prefix_pattern(PREFIX))
    assert entry is not None
    assert (entry.message, entry.database) == ("checkpoint starting: time", None)


RECOMMENDED_ONCE = "%m [%p] %q%u@%d %a "


@pytest.mark.parametrize(
    ("names", "database", "application"),
    [
        ("app@odd PostgreSQL JDBC Driver", "odd", "PostgreSQL JDBC Driver"),
        ("me@corp.com@shop PostgreSQL JDBC Driver", "shop", "PostgreSQL JDBC Driver"),
        ("the app@our shop psql", "our shop", "psql"),
        ("[unknown]@[unknown] [unknown]", "[unknown]", "[unknown]"),
        ("app@dropped a b", "dropped", "a b"),
    ],
)
def test_names_may_have_blanks(names: str, database: str, application: str) -> None:
    message = "duration: 1.316 ms  statement: select n from kv where k='plain'"
    text = f"{AT} [7] {names} LOG:  {message}\n"
    pattern = prefix_pattern(RECOMMENDED_ONCE, ["odd", "our shop", "postgres", "shop"])
    for found in (list(stderr_entries([text], pattern)), list(stderr_entries([text], pattern))):
        [entry] = found
        assert entry is not None
        assert (entry.session, entry.database, entry.application) == ("7", database, application)
        assert entry.message == message


def test_a_line_that_fits_two_databases_is_of_neither() -> None:
    pattern = prefix_pattern(RECOMMENDED_ONCE, ["shop", "shop two"])
    text = f"{AT} [7] app@shop two psql LOG:  statement: SELECT 1\n"
    assert list(stderr_entries([text], pattern)) == [None]
    forged = f"{AT} [7] app@bank app=x@shop app=y LOG:  {FORGED}\n"
    assert list(stderr_entries([forged], prefix_pattern(PREFIX, ["bank", "shop"]))) == [None]


def test_a_line_is_shown_up_to_its_severity() -> None:
    assert beginning(f"{AT} [7] a@shop b LOG:  statement: SELECT 'secret'\n") == f"{AT} [7] a@shop b LOG:"
    assert beginning("a secret of a program\n") is None
    assert beginning("x" * 400 + " LOG:  a\n") is None


@pytest.mark.parametrize(
    ("severity", "message"),
    [("СООБЩЕНИЕ", "продолжительность: 0.1 мс"), ("FEHLER", "Syntaxfehler"), ("ОШИБКА", "…")],
)
def test_severities_of_other_languages_are_found(severity: str, message: str) -> None:
    head = lines(f"no entry\n{AT} [7] app@shop app=x {severity}:  {message}\n")
    assert foreign_severity(head, PREFIX) == severity
    ambiguous = [
        f"{AT} [7] app@shop app=x LOG:  statement: SELECT 1 -- {word}:  y\n" for word in ("LOG", "FOO")
    ]
    assert foreign_severity(["no entry\n", *ambiguous], PREFIX) is None


@given(st.text(max_size=60), st.text(alphabet="mnptucladrhLbisvxeQqP%-0123456789 []@", max_size=40))
def test_no_prefix_breaks_the_pattern(line: str, prefix: str) -> None:
    try:
        pattern = prefix_pattern(prefix)
    except UsageError:
        return
    assert list(stderr_entries([line], pattern)) is not None
