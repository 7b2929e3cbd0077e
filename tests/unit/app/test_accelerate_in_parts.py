"""What ``accelerate`` decides of a plan that is measured in parts; what measures is made up here."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.fix_progress import Remembered
from tests.unit.app.plan_in_parts import PATH, STUDY, TPS, Machine

from pgdyno.app import accelerate as use_case
from pgdyno.app import wiring
from pgdyno.app.accelerate import AccelerateRequest, Acceleration
from pgdyno.app.measure import Conditions
from pgdyno.experiments.analysis import analyse
from pgdyno.model.awake import POLL_NS
from pgdyno.model.experiment import Design, Experiment
from pgdyno.model.plan import KERNEL, Change, Effect, Layer, Plan, PlanLine, Risk
from pgdyno.model.study import Study
from pgdyno.server.account import caller
from pgdyno.studies._contract import PGTUNE, PLAN, StudyContext

SYSTEM = PATH[2]
NOTHING = Plan((), (), (), None)


def accelerated(
    machine: Machine,
    tmp_path: object,
    monkeypatch: pytest.MonkeyPatch,
    *,
    plan: Plan = NOTHING,
    idled: list[str] | None = None,
) -> Acceleration:
    """Accelerate by a plan whose layers are the study's, on a made-up machine.

    ``idled`` takes the reasons for which CPUs are left as booted, one for each measurement.
    """
    configurations = {variant.name: variant.settings for variant in STUDY.variants[1:]}
    context = StudyContext(
        STUDY.variants[0],
        STUDY.workloads,
        Design(),
        configurations,
        layers=PATH[1:3],
        servers={PLAN: "built"},
    )
    planned = SimpleNamespace(plan=plan, study_context=context)

    def measure(study: Study, conditions: Conditions, *_: object) -> Experiment:
        if idled is not None:
            idled.append(conditions.as_booted)
        done = machine.measure(study, conditions.budget_s)
        names = [variant.name for variant in study.variants]
        verdicts = analyse(
            done.blocks, workloads=study.workloads, variants=names, baseline=names[0], design=done.design
        )
        return replace(done, verdicts=verdicts)

    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path))
    monkeypatch.setattr(wiring, "current_account", caller)
    monkeypatch.setattr(use_case, "plan_for", lambda *_: planned)
    monkeypatch.setattr(use_case, "document_of", lambda _: {})
    monkeypatch.setattr(use_case, "measure", measure)
    subject: Any = SimpleNamespace(host=None, server=None)
    conditions = Conditions(None, {}, Design())
    request = AccelerateRequest(conditions, STUDY.variants[0], 3000.0, subject=subject)
    return use_case.accelerate(request, Remembered())


def studies(machine: Machine) -> list[tuple[str, list[str]]]:
    return [(study.name, [v.name for v in study.variants]) for study, _ in machine.asked]


def test_a_plan_that_promises_is_measured_afresh_in_all_its_parts(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()
    done = accelerated(machine, tmp_path, monkeypatch)
    assert studies(machine) == [
        ("accelerate-1", ["default", "application", PGTUNE]),
        ("accelerate-2", ["application", SYSTEM]),
        ("accelerate-3", [SYSTEM, PLAN]),
        ("accelerate-fresh-1", ["default", "application"]),
        ("accelerate-fresh-2", ["application", SYSTEM]),
        ("accelerate-fresh-3", [SYSTEM, PLAN]),
    ]
    assert len({study.design.seed for study, _ in machine.asked}) == len(machine.asked)
    assert done.experiment.name == "accelerate-fresh"
    assert [one.name for one in done.earlier] == ["accelerate"]
    assert any("pgtune on sysbench-read-only, throughput: " in note for note in done.experiment.notes)
    throughput = [v for v in done.layer_verdicts if v.metric == "throughput_tps"]
    assert [(v.variant, v.baseline) for v in throughput] == [
        ("application", "default"), (SYSTEM, "application"), (PLAN, SYSTEM), (PLAN, "default"),
    ]  # fmt: skip
    # Nothing is known of the tail, which this machine does not measure: that is not proven to pay.
    assert not done.acceptance.is_accepted
    assert all("nothing is known about latency_ms_p99" in reason for reason in done.acceptance.reasons)


def test_a_plan_that_promises_nothing_is_not_measured_again(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tps={**TPS, PLAN: 100.0, "application": 101.0, SYSTEM: 101.5})
    done = accelerated(machine, tmp_path, monkeypatch)
    assert [name for name, _ in studies(machine)] == ["accelerate-1", "accelerate-2", "accelerate-3"]
    assert (done.experiment.name, done.earlier) == ("accelerate", ())
    assert done.acceptance.reasons[0] == "throughput is not better on any workload"


def test_a_layer_that_costs_is_not_kept_for_what_another_one_gains(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tps={**TPS, SYSTEM: 99.0})
    done = accelerated(machine, tmp_path, monkeypatch)
    assert len(machine.asked) == 3
    assert any(
        reason.startswith(f"{SYSTEM} is slower than application on sysbench-read-only")
        for reason in done.acceptance.reasons
    )


def test_parts_of_a_plan_that_sets_how_cpus_idle_are_all_measured_as_booted(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = Change("halt_polling", KERNEL, POLL_NS, "0", "200000", Effect.IMMEDIATE)
    line = PlanLine(change, Layer.SYSTEM, "because", "a paper", Risk.SHARED, "pgdyno revert")
    for plan, reason in (
        (NOTHING, ""),
        (Plan((line,), (), (), None), "the plan sets itself how CPUs idle"),
    ):
        idled: list[str] = []
        accelerated(Machine(), tmp_path, monkeypatch, plan=plan, idled=idled)
        assert idled == [reason] * 6
