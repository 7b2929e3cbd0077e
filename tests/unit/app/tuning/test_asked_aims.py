"""Aims that a search cannot have, and memory, which is reckoned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.app.measuring.conditions import Conditions
from pgdyno.app.measuring.workload_choice import find_workloads
from pgdyno.app.tuning.asked_aims import require_aims
from pgdyno.app.tuning.tune_request import TuneRequest
from pgdyno.model.errors import UsageError
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.workload import Statement
from pgdyno.model.tuning.aims import Aim
from pgdyno.model.tuning.space import Space
from pgdyno.model.tuning.tuning import Tuning
from pgdyno.model.variants.variant import Variant

EARLIER = Tuning(
    "20261125-000000-tune", "guided", 1, ("pgbench-tpcb",), "s", Space(()), aims=(Aim.WAL, Aim.TAIL)
)


def request(aims: tuple[Aim, ...] | None, *workloads: str, is_attributed: bool = False) -> TuneRequest:
    found = find_workloads(workloads or ("pgbench-tpcb",), (), 1)
    conditions = Conditions(None, found, Design())
    return TuneRequest(conditions, Variant("default"), 600.0, is_attributed=is_attributed, aims=aims)


def refusal(asked: TuneRequest, earlier: Tuning | None = None) -> UsageError:
    with pytest.raises(UsageError) as caught:
        require_aims(asked, earlier)
    return caught.value


def test_a_workload_that_only_reads_writes_no_wal() -> None:
    error = refusal(request((Aim.THROUGHPUT, Aim.WAL), "pgbench-tpcb", "pgbench-select"))
    assert error.message == (
        'the workload "pgbench-select" cannot give the aim "wal": it only reads, and writes no WAL'
    )
    assert error.hint == "leave out --aim wal, or name other workloads"


def test_an_execution_in_a_loop_has_no_latency_of_its_own() -> None:
    (workload,) = find_workloads(("pgbench-select",), (), 1).values()
    looped = replace(workload, kind=Statement("SELECT 1", executions=1000))
    asked = request((Aim.TAIL,))
    error = refusal(replace(asked, conditions=replace(asked.conditions, workloads={"loop": looped})))
    assert 'cannot give the aim "tail": its transactions loop inside the server' in error.message


def test_there_is_no_single_answer_to_take_apart() -> None:
    error = refusal(request((Aim.TAIL, Aim.WAL), is_attributed=True))
    assert error.message == "--attribute takes one answer apart, and several aims have several"
    assert error.hint == "leave out --attribute or --aim"


def test_a_search_is_gone_on_with_for_its_own_aims() -> None:
    error = refusal(request((Aim.WAL, Aim.THROUGHPUT)), EARLIER)
    assert error.message == '"20261125-000000-tune" was a search for other aims'
    assert error.detail == "it was for wal and tail; this is for wal and throughput"
    assert error.hint == "leave --aim out to go on with it, or begin a new one, without --resume"
    assert refusal(request(()), EARLIER).detail == "it was for wal and tail; this is for throughput"


def test_the_aims_of_a_resumed_search_are_checked_as_well() -> None:
    assert "writes no WAL" in refusal(request(None, "pgbench-select"), EARLIER).message


@pytest.mark.parametrize("aims", [None, (), (Aim.THROUGHPUT, Aim.WAL, Aim.TAIL, Aim.MEMORY)])
def test_others_are_taken(aims: tuple[Aim, ...] | None) -> None:
    require_aims(request(aims), None)
    require_aims(request(None), EARLIER)
    require_aims(request((Aim.TAIL, Aim.WAL)), EARLIER)  # in another order
    assert request(aims).aims == aims
