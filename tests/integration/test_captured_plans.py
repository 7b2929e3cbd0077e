"""Statements of a captured workload are planned on its copy, as the role of its load."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.fix_progress import Remembered

from pgdyno.accelerate.planning import plan_captured
from pgdyno.base.facts import Fact, Unknown
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.model.experiments.workload import CapturedLoad, Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.process.registry import embedded
from pgdyno.postgres.statements import WorkloadStatements
from pgdyno.workload.workload_choice import captured_workload

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home")]


def planned(workload: Workload) -> Fact[WorkloadStatements]:
    variant = Variant("default")
    with open_scratch_arena(embedded(), [variant], Remembered(), is_isolated=False) as arena:
        arena.load(variant, workload.data_set)
        arena.restore([variant], [0], workload.data_set)
        with arena.arms([variant], [0], workload.data_set) as (arm,):
            connect = partial(arena.loads.connect, arm, workload)
            return plan_captured(connect, require_no_superuser, workload, arena.loads.find_driver())


def require_no_superuser(connection: Connection) -> None:
    assert connection.execute("SELECT pg_catalog.current_setting('is_superuser')").fetchone() == ("off",)


def with_times(workload: Workload, **times_ms: float) -> Workload:
    """Return a workload with other times of some statements."""
    assert workload.captured is not None
    statements = tuple(
        replace(one, seen=replace(one.seen, time_ms=times_ms.get(one.name, one.seen.time_ms)))
        for one in workload.captured.statements
    )
    return replace(workload, kind=CapturedLoad(replace(workload.captured, statements=statements)))


def test_reads_are_run_and_writes_planned(workload_file: Path) -> None:
    found = planned(with_times(captured_workload(workload_file), wrong=0.01)).or_none()
    assert found is not None
    by_name = {one.name: one for one in found.statements}
    assert by_name.keys() == {"moment", "number", "any", "clock", "write"}
    assert {name for name, one in by_name.items() if one.execution_ms is None} == {"write"}
    assert by_name["moment"].shown == "moment"
    assert by_name["moment"].calls == pytest.approx(1 / 5.1)


def test_what_cannot_be_planned_is_named_where_it_is_too_much(workload_file: Path) -> None:
    found = planned(captured_workload(workload_file))
    assert isinstance(found.value, Unknown)
    assert found.value.reason == "too many statements of w cannot be planned: wrong"


def test_where_no_time_is_known_calls_decide(workload_file: Path) -> None:
    no_times = dict.fromkeys(("moment", "number", "any", "clock", "wrong", "write"), 0.0)
    found = planned(with_times(captured_workload(workload_file), **no_times))
    assert isinstance(found.value, Unknown)
