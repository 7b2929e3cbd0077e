"""Variants that lead on from each other are measured in parts; what measures is made up here."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.app.plan_in_parts import PATH, STUDY, Machine

from pgdyno.app import wiring
from pgdyno.app.parts import measure_in_parts, runs_of
from pgdyno.model.errors import HugePagesError
from pgdyno.model.experiment import Design, DesignKind
from pgdyno.model.study import Study
from pgdyno.server.account import caller
from pgdyno.studies._contract import PGTUNE, PLAN


@pytest.fixture(autouse=True)
def own_home(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores nothing among the user's experiments."""
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path))
    monkeypatch.setattr(wiring, "current_account", caller)


def test_steps_that_change_the_machine_are_measured_apart() -> None:
    machine = Machine()
    measure_in_parts(STUDY, PATH, 600.0, machine.measure, machine.clock)
    assert [([v.name for v in study.variants], study.name) for study, _ in machine.asked] == [
        (["default", "application", PGTUNE], "accelerate-1"),
        (["application", "application+system"], "accelerate-2"),
        (["application+system", PLAN], "accelerate-3"),
    ]
    assert machine.asked[1][0].question == (
        "What changes from application to application+system? (part 2 of 3 of: Is PostgreSQL faster?)"
    )


def test_each_part_has_an_order_of_its_own() -> None:
    """With one order for all, what being first or last does to a part would add up over them."""
    machine = Machine()
    measure_in_parts(STUDY, PATH, None, machine.measure, machine.clock)
    measure_in_parts(replace(STUDY, name="accelerate-fresh"), PATH, None, machine.measure, machine.clock)
    seeds = [study.design.seed for study, _ in machine.asked]
    orders = [np.random.default_rng((seed, 0)).permutation(20).tolist() for seed in seeds]
    assert len(set(seeds)) == 6
    assert len({tuple(order) for order in orders}) == 6


def test_the_budget_is_split_and_what_one_part_leaves_goes_to_the_next_ones() -> None:
    """Weights are 1, 3, 1: of 600 s a fifth; of the 500 s that are left three quarters; then the rest."""
    machine = Machine()
    measure_in_parts(STUDY, PATH, 600.0, machine.measure, machine.clock)
    assert [budget_s for _, budget_s in machine.asked] == [120.0, 375.0, 400.0]
    machine = Machine(takes_s=400.0)
    measure_in_parts(STUDY, PATH, 600.0, machine.measure, machine.clock)
    assert [budget_s for _, budget_s in machine.asked] == [120.0, 150.0, 0.0]


def test_the_parts_are_put_together_and_stored() -> None:
    machine = Machine()
    composed = measure_in_parts(STUDY, PATH, None, machine.measure, machine.clock)
    assert [(part.experiment, part.variants) for part in composed.parts] == [
        ("of-accelerate-1", ("default", "application")),
        ("of-accelerate-2", ("application", "application+system")),
        ("of-accelerate-3", ("application+system", PLAN)),
    ]
    (whole,) = [v for v in composed.verdicts if (v.metric, v.variant) == ("throughput_tps", PLAN)]
    mean = sum(map(math.log, (0.99, 1.01, 1.0, 1.02, 0.98, 1.0))) / 6
    assert whole.effect == pytest.approx(1.43 * math.exp(-3 * mean))
    assert (composed.variants, composed.baseline, composed.blocks) == (STUDY.variants, "default", ())
    assert (composed.name, composed.question, composed.is_complete) == (STUDY.name, STUDY.question, True)
    assert composed.notes == (
        *STUDY.notes,
        "write workloads: checkpoints are charged",
        "part 2: alternating trials instead of a duet",
    )
    assert wiring.open_store().load(composed.id) == composed


def test_where_pages_for_two_servers_cannot_be_had_they_have_trials_of_their_own() -> None:
    def fails(study: Study) -> Exception | None:
        is_duet = study.design.kind is DesignKind.DUET
        return (
            HugePagesError("only 5 of 9 huge pages could be reserved")
            if (study.name.endswith("-3") and is_duet)
            else None
        )

    machine = Machine(fails=fails)
    composed = measure_in_parts(STUDY, PATH, None, machine.measure, machine.clock)
    assert composed.parts[2].kind is DesignKind.ALTERNATING
    assert composed.notes[-1] == (
        "part 3: alternating trials instead of a duet: for all servers at once only 5 of 9 huge pages could "
        "be reserved"
    )


def test_one_server_alone_that_has_no_room_is_an_error() -> None:
    def fails(study: Study) -> Exception | None:
        return HugePagesError("only 1 of 9 huge pages could be reserved") if len(machine.asked) > 1 else None

    machine = Machine(fails=fails)
    with pytest.raises(HugePagesError, match="only 1 of 9"):
        measure_in_parts(STUDY, PATH, None, machine.measure, machine.clock)
    assert len(machine.asked) == 2


def test_what_can_take_turns_throughout_needs_no_parts() -> None:
    built = replace(STUDY.variants[3], settings={"work_mem": "8MB"})
    study = replace(STUDY, variants=(*STUDY.variants[:2], built), design=Design())
    assert len(runs_of(study, ("default", "application", PLAN))) == 1
    assert len(runs_of(STUDY, PATH)) == 3
