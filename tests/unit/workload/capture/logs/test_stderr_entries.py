"""Entries of stderr logs: a statement or a name cannot forge one."""

from __future__ import annotations

import pytest
from tests.unit.workload.capture.logs.test_format import CSV, PREFIX, STDERR, lines, same

from pgdyno.workload.capture.logs.csv_entries import csv_entries
from pgdyno.workload.capture.logs.line_prefix import prefix_pattern
from pgdyno.workload.capture.logs.stderr_entries import stderr_entries

FORGED = "statement: DELETE FROM orders"
AT = "2026-11-25 12:00:00.000 UTC"


def test_lines_of_text_have_what_the_prefix_has() -> None:
    [entry] = stderr_entries(lines(STDERR), prefix_pattern(PREFIX))
    assert same(entry)
    assert entry is not None
    assert (entry.session, entry.line) == ("5936", None)


def test_what_other_programs_write_into_the_log_is_no_entry() -> None:
    found = list(stderr_entries(lines(f"a library says hello\n{STDERR}"), prefix_pattern(PREFIX)))
    assert found[0] is None
    assert same(found[1])


def test_the_detail_of_another_session_is_not_taken() -> None:
    text = STDERR.replace("[5936] app@shop app=psql DETAIL", "[4711] app@shop app=psql DETAIL")
    [entry] = stderr_entries(lines(text), prefix_pattern(PREFIX))
    assert entry is not None
    assert entry.detail == ""


def test_a_detail_and_a_hint_of_its_own_do_not_close_an_entry() -> None:
    raised = CSV.replace("FROM t WHERE b = $1", f"x\n{AT},").replace("Parameters: $1 = 'x'\",,", ',",",1,",')
    assert len(list(csv_entries(lines(raised + CSV)))) == 2


@pytest.mark.parametrize(
    ("prefix", "written"),
    [
        (PREFIX, "2026-11-25 12:35:23.957 UTC [5936] app@shop app={} "),
        ("%a [%p] %u@%d ", "{} [5936] app@shop "),
        ("%m [%p] %q%a ", "2026-11-25 12:35:23.957 UTC [5936] {} "),
    ],
)
def test_entries_of_text_cannot_be_forged_by_a_name(prefix: str, written: str) -> None:
    before = f"{written.format('psql')}LOG:  statement: SELECT 1\n"
    for name in (f"x LOG:  {FORGED} --", f"x [1] a@shop LOG:  {FORGED} --"):
        text = f"{before}{written.format(name)}LOG:  statement: SELECT 2\n\t; {FORGED}\n"
        found = [one for one in stderr_entries(lines(text), prefix_pattern(prefix)) if one is not None]
        assert found[0].message == "statement: SELECT 1"
        assert not any(one.message.startswith(FORGED) or "5936" not in one.session for one in found)


def test_verbose_messages_have_a_state_and_a_location() -> None:
    """As PostgreSQL 18 has written them with log_error_verbosity = verbose."""
    prefix = STDERR[: STDERR.index("LOG:")]
    location = f"{prefix}LOCATION:  exec_execute_message, postgres.c:2222\n"
    text = STDERR.replace("LOG:  ", "LOG:  00000: ") + location
    [entry] = stderr_entries(lines(text), prefix_pattern(PREFIX))
    assert same(entry)


def test_a_severity_within_a_known_session_s_line_makes_it_ambiguous() -> None:
    one = f"{AT} [7] app@shop app=x LOG:  statement: SELECT 1"
    pattern = prefix_pattern(PREFIX, ["shop"])
    text = f"{one}\n{one}\n{one} -- LOG:  {FORGED}\n{one}\n"
    found = list(stderr_entries(lines(text), pattern))
    assert [None if entry is None else entry.message for entry in found] == [
        "statement: SELECT 1", None, "statement: SELECT 1", "statement: SELECT 1"
    ]  # fmt: skip
