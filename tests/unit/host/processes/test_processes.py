"""Processes: a line of /proc/PID/stat captured from a running PostgreSQL, and trees made by hand."""

from __future__ import annotations

from contextlib import nullcontext as does_not_raise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.facts import Unknown
from pgdyno.host.processes.processes import Process, innermost_pid, parse_stat, scheduling_policy

STAT = (
    "5215 (postgres) S 1946 5215 5215 0 -1 4194624 1340 0 2 0 1 3 0 0 20 0 1 0 160042 226660352 4831 "
    "18446744073709551615 1 1 0 0 0 0 0 16781314 2138 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
)


def test_a_process_has_a_parent_a_name_and_a_start() -> None:
    assert parse_stat(STAT) == Process(pid=5215, parent_pid=1946, name="postgres", start_ticks=160042)


@given(st.text(st.characters(blacklist_characters="\n", blacklist_categories=["Cs"]), max_size=15))
def test_a_name_may_contain_anything(name: str) -> None:
    found = parse_stat(STAT.replace("postgres", name))
    assert found == Process(pid=5215, parent_pid=1946, name=name, start_ticks=160042)


@given(st.text())
def test_no_text_makes_the_parser_fail(text: str) -> None:
    with does_not_raise():
        parse_stat(text)


def test_what_is_no_status_line_is_unknown() -> None:
    assert parse_stat("12 (x) S 1") == Unknown("not a process status")
    assert parse_stat("12 x S 1") == Unknown("no name in parentheses")


@pytest.mark.parametrize(
    ("number", "policy"),
    [("0", "SCHED_OTHER"), ("3", "SCHED_BATCH"), ("99", Unknown("unknown scheduling policy: 99"))],
)
def test_the_scheduling_policy_is_the_41st_field(number: str, policy: str | Unknown) -> None:
    fields = STAT.replace("(postgres)", "(a)").split()
    assert scheduling_policy(" ".join([*fields[:40], number, *fields[41:]])) == policy


@given(st.text())
def test_no_text_makes_the_policys_parser_fail(text: str) -> None:
    with does_not_raise():
        scheduling_policy(text)


def test_a_line_that_ends_early_has_no_policy() -> None:
    assert scheduling_policy("12 (x) S 1") == Unknown("no scheduling policy found")


@pytest.mark.parametrize(
    ("status", "pid"),
    [
        ({"Pid": "812", "NSpid": "812"}, 812),
        ({"Pid": "48290", "NSpid": "48290\t61"}, 61),
        ({"Pid": "812"}, 812),  # Linux before 4.1
        ({}, Unknown("no process id")),
    ],
)
def test_a_process_in_a_container_has_another_number_for_itself(
    status: dict[str, str], pid: int | Unknown
) -> None:
    assert innermost_pid(status) == pid
