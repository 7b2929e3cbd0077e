"""A captured workload as a terminal shows it: its sessions' pauses, and its invariants."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedTransaction,
    CapturedWorkload,
    RangeEnd,
)
from pgdyno.model.experiments.invariant import Invariant, Is, NoRows, Unchanged
from pgdyno.workload.view.workload_text import workload_text

TRANSACTION = CapturedTransaction(600.0, (CapturedCall("s", 1.0),))
WORKLOAD = CapturedWorkload("w", "18", 1, "d", 60.0, 2, (), (TRANSACTION,))


def shown(pauses_s: tuple[float, ...]) -> str:
    workload = replace(WORKLOAD, pauses_s=pauses_s, sessions=9 if pauses_s else None)
    return workload_text(workload).replace("\N{NO-BREAK SPACE}", " ")


def test_pauses_are_shown_with_what_replays_them() -> None:
    assert (
        "  9 sessions pausing between two transactions for 20 ms (median; 1.01 s on average); "
        "replay --pauses reproduces the pauses\n"
    ) in shown((0.01, 0.02, 3.0))


def test_sessions_that_do_not_pause_are_said_not_to() -> None:
    assert "sessions begin the next transaction without a pause" in shown((0.0, 0.0))
    assert "pause" not in shown(())


def test_the_ends_of_ranges_are_shown_with_each_other() -> None:
    ends = RangeEnd(1, "s.t.c", (5,)), RangeEnd(2, "s.t.c", is_lower=True)
    calls = CapturedTransaction(1.0, (CapturedCall("s", 1.0, ends),))
    shown = workload_text(replace(WORKLOAD, transactions=(calls,)))
    assert "  s (end of the range from $1, beginning of the range to $2)\n" in shown


def test_invariants_are_shown_with_what_their_queries_return() -> None:
    invariants = (
        Invariant("none owes", "SELECT count(*)\n  FROM t", Is(0)),
        Invariant("open", "SELECT true", Is(value=True)),
        Invariant("sums stay", "SELECT sum(a) FROM t", Unchanged()),
        Invariant("none is lost", "SELECT 1 FROM t", NoRows()),
    )
    assert workload_text(replace(WORKLOAD, invariants=invariants)).endswith("""
Invariants, checked on each server before and after a load:
  none owes: SELECT count(*) FROM t returns 0
  open: SELECT true returns t
  sums stay: SELECT sum(a) FROM t returns the same after the load
  none is lost: SELECT 1 FROM t returns no row
""")
    assert "Invariants" not in workload_text(WORKLOAD)
