"""Entries of logs in the three formats, as servers of PostgreSQL 15 and 18 have written them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.workload.capture.logs.csv_entries import csv_entries
from pgdyno.workload.capture.logs.entry import LogEntry
from pgdyno.workload.capture.logs.format import recognise
from pgdyno.workload.capture.logs.json_entries import json_entries
from pgdyno.workload.capture.logs.line_prefix import prefix_pattern
from pgdyno.workload.capture.logs.stderr_entries import stderr_entries

AT_S = 1795610123.957  # 2026-11-25 12:35:23.957
PREFIX = "%m [%p] %q%u@%d app=%a "
CSV = (
    '2026-11-25 12:35:23.957 UTC,"app","shop",5936,"[local]",6b06d60b.1730,2865,"SELECT",2026-11-25 12:35:23 '
    'UTC,4/434,0,LOG,00000,"execute s: SELECT ""a""\n  FROM t WHERE b = $1","Parameters: $1 = \'x\'",'
    ',,,,,,,"psql","client backend",,7868147486446810665\n'
)
JSON = (
    '{"timestamp":"2026-11-25 12:35:23.957 UTC","user":"app","dbname":"shop","pid":5936,'
    '"session_id":"6b06d60b.1730","line_num":2865,"ps":"SELECT","session_start":"2026-11-25 12:35:23 UTC",'
    '"vxid":"4/434","txid":0,"error_severity":"LOG",'
    '"message":"execute s: SELECT \\"a\\"\\n  FROM t WHERE b = $1",'
    '"detail":"Parameters: $1 = \'x\'","application_name":"psql","backend_type":"client backend"}\n'
)
STDERR = (
    '2026-11-25 12:35:23.957 UTC [5936] app@shop app=psql LOG:  execute s: SELECT "a"\n'
    "\t  FROM t WHERE b = $1\n"
    "2026-11-25 12:35:23.957 UTC [5936] app@shop app=psql DETAIL:  Parameters: $1 = 'x'\n"
)
EXPECTED = LogEntry(
    at_s=AT_S,
    session="6b06d60b.1730",
    database="shop",
    application="psql",
    severity="LOG",
    message='execute s: SELECT "a"\n  FROM t WHERE b = $1',
    detail="Parameters: $1 = 'x'",
    line=2865,
)


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def same(one: LogEntry | None) -> bool:
    """Whether an entry is the expected one, as far as stderr tells."""
    assert one is not None
    assert one.at_s == pytest.approx(AT_S)
    told = (one.database, one.application, one.message, one.detail)
    return told == (EXPECTED.database, EXPECTED.application, EXPECTED.message, EXPECTED.detail)


def test_a_cut_beginning_and_a_cut_end_lose_their_entries_alone() -> None:
    cut = 'FROM t","Parameters: $1 = \'x\'",,,,,,,,"psql","client backend",,7\n' + CSV + CSV[:150]
    found = list(csv_entries(lines(cut)))
    assert same(found[0])
    assert found[1:] == [None]
    [whole, end] = json_entries(lines(JSON + JSON[:200]))
    assert same(whole)
    assert end is None


def test_an_entry_that_was_never_finished_does_not_take_others_with_it() -> None:
    found = list(csv_entries(lines(CSV[:200] + "\n" + CSV + CSV)))
    assert found[0] is None
    assert all(same(one) for one in found[1:])
    assert len(found) == 3


def test_an_entry_that_is_too_long_is_left_out() -> None:
    long = "x" * 200_000
    texts = (CSV.replace("FROM t", long), JSON.replace("FROM t", long), STDERR.replace("FROM t", long))
    csv, json, stderr = map(lines, texts)
    found = csv_entries(csv), json_entries(json), stderr_entries(stderr, prefix_pattern(PREFIX))
    assert [list(entries) for entries in found] == [[None]] * 3


@pytest.mark.parametrize(("text", "name"), [(CSV, "csvlog"), (JSON, "jsonlog"), (STDERR, "stderr")])
def test_a_format_is_told_by_the_first_lines(text: str, name: str) -> None:
    found = recognise(lines(f"the end of an entry\n{text}"), PREFIX)
    assert found is not None
    assert found.name == name
    assert found.first_s(lines(text)) == pytest.approx(AT_S)


@pytest.mark.parametrize("text", ["", "SELECT 1;\n", "{}\n", "[1]\n", "a,b,c\n", '"\n', "{" * 100_000])
def test_other_files_are_no_logs(text: str) -> None:
    assert recognise(lines(text), PREFIX) is None


@given(st.text())
def test_no_text_breaks_a_reader(text: str) -> None:
    for read in (csv_entries, json_entries, lambda its: stderr_entries(its, prefix_pattern(PREFIX))):
        assert all(one is None or isinstance(one, LogEntry) for one in read(lines(text)))
