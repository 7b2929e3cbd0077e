"""Variants that lead on from each other on real servers: in turns where the machine stays, else in trials."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_machine import SWAPPINESS, Machine

from pgdyno.app import wiring
from pgdyno.app.measure import Conditions, measure
from pgdyno.app.parts import measure_in_parts
from pgdyno.app.workload_choice import find_workloads
from pgdyno.cli.output import Lines
from pgdyno.model.experiment import Design, DesignKind, Experiment, VoidThresholds
from pgdyno.model.study import Study
from pgdyno.model.variant import Variant
from pgdyno.report.page import render_page

pytestmark = [pytest.mark.server, pytest.mark.root, pytest.mark.usefixtures("home")]

WORKLOAD = "pgbench-select"
WHATEVER_ELSE_RUNS = VoidThresholds(steal_share=1.0, foreign_cpu_share=1.0, schedule_lag_share=1e9)
DESIGN = Design(
    rounds=2, blocks_per_round=1, block_s=0.4, warmup_s=0.2, thresholds=WHATEVER_ELSE_RUNS
)  # fmt: skip
PATH = ("default", "application", "application+system", "plan")


@pytest.fixture
def short_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgdyno.app.measure._ALTERNATING_TRIAL_S", 0.4)


def in_parts(pg18_bin: Path, swappiness: str) -> Experiment:
    application = {"work_mem": "8MB"}
    system = {**application, SWAPPINESS: swappiness}
    variants = (
        Variant("default"),
        Variant("application", application),
        Variant("application+system", system),
        Variant("plan", system, server=str(pg18_bin.parent)),
    )
    conditions = Conditions(
        wiring.embedded(), find_workloads((WORKLOAD,), (), 1), DESIGN, accepts_builds=True
    )

    def within(study: Study, budget_s: float | None) -> Experiment:
        return measure(study, replace(conditions, budget_s=budget_s), Lines())

    study = Study("accelerate", "Is it faster?", variants, (WORKLOAD,), DESIGN)
    return measure_in_parts(study, PATH, None, within)


@pytest.mark.usefixtures("short_trials")
def test_only_the_step_that_changes_the_machine_takes_trials_and_the_machine_is_given_back(
    machine: Machine, pg18_bin: Path
) -> None:
    before = machine.snapshot()
    wanted = machine.others()[SWAPPINESS]
    composed = in_parts(pg18_bin, wanted)
    assert machine.snapshot() == before
    duet, trials = DesignKind.DUET, DesignKind.ALTERNATING
    assert [(part.kind, part.variants) for part in composed.parts] == [
        (duet, PATH[:2]), (trials, PATH[1:3]), (duet, PATH[2:]),
    ]  # fmt: skip
    stored = [wiring.open_store().load(part.experiment) for part in composed.parts]
    shown = [
        {one.variant: one.effective for one in part.settings if one.name == SWAPPINESS} for part in stored
    ]
    found = before[SWAPPINESS].strip()
    assert shown == [
        {},
        {"application": found, "application+system": wanted},
        {"application+system": wanted, "plan": wanted},
    ]
    assert {arm.variant for block in stored[2].blocks for arm in block.arms} == set(PATH[2:])
    assert "What each step adds" in render_page(composed)
