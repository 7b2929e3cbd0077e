"""Latencies at a fixed rate on real servers: PostgreSQL 18 of the embedded wheel, pgbench at scale 1."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_rounds import WHATEVER_ELSE_RUNS
from tests.golden.synthetic import experiment as of_a_plan

from pgdyno.accelerate import latencies_at_load as accelerate_at_load
from pgdyno.accelerate.latencies_at_load import Measured, time_at_load_s, with_latencies_at_load
from pgdyno.base.errors import (
    HugePagesError,
    InterruptedByUserError,
    MeasurementError,
    PgdynoError,
    StillChangedError,
)
from pgdyno.cli.output import Lines
from pgdyno.host.cpu_idling import AS_BOOTED_GIVEN
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.decisions.stopping import time_needed
from pgdyno.measure.design.schedule import alternating
from pgdyno.measure.measure import measure
from pgdyno.model.experiments.experiment import Design, Experiment, Phase
from pgdyno.model.experiments.study import Study
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.registry import embedded
from pgdyno.results.stored import load_stored
from pgdyno.store.experiments import ExperimentStore, open_store
from pgdyno.workload.workload_choice import find_workloads

NAME = "pgbench-select"


@pytest.mark.server
@pytest.mark.usefixtures("pg18_bin")
def test_both_servers_get_the_same_transactions_as_often_as_asked(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accelerate_at_load, "SHARE", 0.05)  # which a busy machine can do as well
    monkeypatch.setattr(accelerate_at_load, "_ROUNDS", 1)
    # A disturbed block would be repeated.
    design = Design(rounds=1, blocks_per_round=1, block_s=3.0, warmup_s=0.5, thresholds=WHATEVER_ELSE_RUNS)
    conditions = Conditions(embedded(), find_workloads((NAME,), (), 1), design, as_booted=AS_BOOTED_GIVEN)
    variants = (Variant("default"), Variant("plan", {"shared_buffers": "64MB"}), Variant("without-jit"))
    progress = Lines()
    experiment = measure(Study("small", "Which?", variants, (NAME,), design), conditions, progress)
    found = with_latencies_at_load(experiment, conditions, progress, measure)

    (at_load,) = found.at_load
    (before,) = experiment.blocks
    assert at_load.rate_tps == pytest.approx(0.05 * before.arms[0].values["throughput_tps"])
    with closing(ExperimentStore(home / "experiments" / "experiments.sqlite")) as store:
        assert store.load(experiment.id).at_load == found.at_load
        measured = store.load(at_load.experiment_id)
    assert measured.verdicts == (), "a rate that was given is no finding"
    assert load_stored(None).id == experiment.id, "it is a part of the other, and never the newest"
    (block,) = measured.blocks
    assert [arm.variant for arm in block.arms] == ["default", "plan"]
    for arm, ms in zip(
        block.arms, (at_load.latencies[0].baseline_ms, at_load.latencies[0].plan_ms), strict=True
    ):
        assert arm.values["throughput_tps"] == pytest.approx(at_load.rate_tps, rel=0.25)
        assert arm.values["latency_ms_p50"] == ms > 0


CONDITIONS = Conditions(None, find_workloads(("sysbench-read-only", "sysbench-read-write")), Design())
DECIDED = replace(of_a_plan(), at_load=())


@pytest.fixture
def decided(home: Path) -> Experiment:
    """A stored experiment that is decided."""
    with closing(open_store()) as store:
        store.save(DECIDED)
    return DECIDED


def failing(error: PgdynoError) -> Measured:
    def fails(*_: object) -> Experiment:
        raise error

    return fails


def test_a_machine_without_room_for_it_makes_a_note(decided: Experiment) -> None:
    full = failing(HugePagesError("no pages are left"))
    found = with_latencies_at_load(decided, CONDITIONS, Lines(), full)
    assert found.at_load == ()
    assert found.notes[-1] == (
        "latencies at 60\xa0% of the baseline's throughput were not measured: no pages are left"
    )
    with closing(open_store()) as store:
        assert store.load(decided.id).notes == found.notes


@pytest.mark.parametrize(
    "error",
    [
        MeasurementError("wrong data", hint="do not trust it"),
        StillChangedError("not all is back"),
        InterruptedByUserError("interrupted"),
    ],
)
def test_any_other_error_is_one_and_leads_to_what_was_decided(
    error: PgdynoError, decided: Experiment
) -> None:
    before = error.hint
    with pytest.raises(type(error)) as caught:
        with_latencies_at_load(decided, CONDITIONS, Lines(), failing(error))
    leads = f"pgdyno report {decided.id} shows the earlier decision"
    assert caught.value.hint == (f"{before}; {leads}" if before else leads)


def test_it_is_measured_only_where_the_decision_has_enough_of_the_budget() -> None:
    workloads = tuple(CONDITIONS.workloads.values())
    least_s = time_needed(workloads, Design(), 7, [workloads[0].data_set]).least_s
    kept_s = time_at_load_s(CONDITIONS, 3600, 7)
    assert kept_s > 0
    assert least_s + kept_s < 900
    slow = replace(CONDITIONS, design=Design(warmup_s=10))
    least_s = time_needed(workloads, slow.design, 7, [workloads[0].data_set]).least_s
    kept_s = time_at_load_s(slow, 36000, 7)
    assert time_at_load_s(slow, least_s + kept_s - 1, 7) == 0
    assert time_at_load_s(slow, least_s + kept_s, 7) == kept_s


def test_it_takes_the_minute_after_a_checkpoint_and_a_longer_budget() -> None:
    workloads = find_workloads(("sysbench-read-only", "sysbench-read-write"))
    times = [
        time_at_load_s(Conditions(None, workloads, Design(phase=phase)), 900, 3)
        for phase in (Phase.AFTER_CHECKPOINT, Phase.CYCLE)
    ]
    assert times[0] == times[1] > 0
    assert time_at_load_s(Conditions(None, workloads, Design()), 899, 3) == 0
    assert time_at_load_s(Conditions(None, workloads, alternating(Design())), 900, 3) == 0
