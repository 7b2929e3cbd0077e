"""How far a fleet is, and what it will still take: by hand, with round numbers."""

from __future__ import annotations

import pytest

from pgdyno.experiments.fleets.progress import fleet_progress
from pgdyno.model.fleets.fleet_order import FleetOrder, OrderedMachine
from pgdyno.model.fleets.fleet_trial import FleetTrial, FleetTrialState
from pgdyno.report.plain.fleet_progress_text import progress_line, progress_notes, progress_table

ORDER = FleetOrder(
    "big", ("compare", "a", "b"), (OrderedMachine("db1", 4, 2.0), OrderedMachine("db2", 2)), 3600.0
)
TRIALS = [
    FleetTrial("db1", 1, FleetTrialState.DONE, 1, experiment="e1"),
    FleetTrial("db1", 2, FleetTrialState.DONE, 1, experiment="e2"),
    FleetTrial("db1", 3, FleetTrialState.LEASED, 1),
    FleetTrial("db1", 4),
    FleetTrial("db2", 1, FleetTrialState.FAILED, 3, 3, reason="no space"),
    FleetTrial("db2", 2),
]
SPACE = "\N{NO-BREAK SPACE}"


def test_before_anything_ran_times_are_those_of_the_budget() -> None:
    found = fleet_progress(ORDER, (), (), {}, 1800.0)
    assert [(one.trials, one.waiting, one.left_s, one.cost) for one in found.machines] == [
        (4, 4, 7200.0, 4.0),
        (2, 2, 3600.0, None),
    ]
    assert (found.left_s, found.cost, found.is_measured) == (7200.0, 4.0, False)
    assert progress_line(found) == f"0 of 6 trials are done, about 2{SPACE}h left"


def test_without_a_budget_nothing_is_known_and_that_is_told() -> None:
    found = fleet_progress(ORDER, (), (), {}, None)
    assert (found.left_s, found.cost) == (None, None)
    (note,) = progress_notes(found, [])
    assert note == (
        "How long a trial takes is not known before the first has ended: its command has no --budget."
    )


def test_trials_that_were_made_tell_the_time_of_the_others() -> None:
    took = [("db1", 900.0), ("db1", 1100.0)]
    found = fleet_progress(ORDER, TRIALS, took, {"lost": 2, "dropped": 1}, 1800.0)
    one, other = found.machines
    assert (one.done, one.measuring, one.waiting, one.failed) == (2, 1, 1, 0)
    assert (one.trial_s, one.left_s) == (1000.0, 2000.0)
    assert one.cost == pytest.approx(4 * 1000 / 3600 * 2.0)
    assert (other.waiting, other.failed, other.left_s, other.reason) == (1, 1, 1000.0, "no space")
    assert found.is_measured
    assert progress_line(found) == f"2 of 6 trials are done, 1 failed, about 33{SPACE}min 20{SPACE}s left"
    assert [*progress_notes(found, ["db9"])] == [
        "Times are those of trials that were made. Machines work beside each other.",
        "Leases whose worker was lost: 2; answers that came too late: 1.",
        "db9 has no worker. On it: dask worker SCHEDULER --name db9 --nthreads 1 --resources measuring=1",
        "db2, last failure: no space",
    ]


def test_the_table_has_a_row_for_each_machine_and_one_for_all() -> None:
    table = progress_table(fleet_progress(ORDER, TRIALS, [("db1", 1000.0)], {}, None))
    assert table.rows == (
        ("db1", "4", "2", "1", "1", "0", f"16{SPACE}min 40{SPACE}s", f"33{SPACE}min 20{SPACE}s", "2.22"),
        ("db2", "2", "0", "0", "1", "1", f"16{SPACE}min 40{SPACE}s", f"16{SPACE}min 40{SPACE}s", "–"),
        ("all", "6", "2", "1", "2", "1", "", f"33{SPACE}min 20{SPACE}s", "2.22"),
    )


def test_an_order_for_fewer_trials_than_were_made_keeps_them() -> None:
    small = FleetOrder("big", ("compare",), (OrderedMachine("db1", 1),), 3600.0)
    assert fleet_progress(small, TRIALS[:4], (), {}, None).machines[0].trials == 4
