"""The experiment that proves an answer: beside the plan if that ran, and taken apart if asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from tests.unit.plan.engine.test_sharing_memory import GB, MB, MEMORY

from pgdyno.cli.output import Lines
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.measure.conditions import Conditions
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.plans.plan import Layer, Plan
from pgdyno.model.tuning.tuning import BUILD, Dimension, Space, Trial, TrialRound, TrialState, Tuning
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.sharing import Memory
from pgdyno.tune.searched_space import Searched
from pgdyno.tune.trial_rounds import TrialRounds
from pgdyno.tune.tune import proof_of
from pgdyno.tune.tune_request import TuneRequest

PLAN = {"shared_buffers": "6016MB", "jit": "off", BUILD: "built-00000000000a"}
ANSWER = {"shared_buffers": "6016MB", BUILD: "built-00000000000a", "max_wal_size": "8GB"}
LARGE = Memory(64 * GB, 615 * MB, MEMORY.size_of, MEMORY.buffers_of)


@dataclass(frozen=True)
class Unasked:
    """An arena whose servers do not tell how much memory they take."""

    def shared_memory_bytes(self, _: Variant) -> int:
        return 0


def proven(
    *, is_attributed: bool, memory: Memory = LARGE, state: TrialState = TrialState.WON
) -> dict[str, Variant]:
    space = Space(
        tuple(Dimension(key, Layer.APPLICATION, (value,), "", value) for key, value in PLAN.items()),
        {"max_wal_size": "8GB"},
    )
    trial = Trial(1, PLAN, None, (TrialRound(0.1, 0.1, 0.0),), state)
    tuning = Tuning("20261125-000000-tune", "guided", 1, ("w",), "s", space, (trial,), answer=ANSWER)
    searched = Searched(Plan((), (), (), None), space, ("a note",), lambda _: "", memory)
    base = Variant("default")
    request = TuneRequest(Conditions(None, {}, Design()), base, 600.0, is_attributed=is_attributed)
    rounds = TrialRounds(cast("ScratchArena", Unasked()), base, space, {}, Design(), Lines())
    study = proof_of(request, searched, tuning, rounds)
    assert study.notes[0] == "a note"
    assert study.workloads == ("w",)
    return {one.name: one for one in study.variants}


def test_the_answer_stands_beside_the_default_and_the_plan_that_ran() -> None:
    found = proven(is_attributed=False)
    assert list(found) == ["default", "plan", "tuned"]
    assert found["plan"].settings == {"shared_buffers": "6016MB", "jit": "off", "max_wal_size": "8GB"}
    assert found["tuned"].server == found["plan"].server == "built-00000000000a"


def test_a_plan_that_failed_is_not_tried_again() -> None:
    assert list(proven(is_attributed=False, state=TrialState.FAILED)) == ["default", "tuned"]


def test_every_part_of_the_answer_is_left_out_and_taken_alone() -> None:
    found = proven(is_attributed=True)
    assert list(found) == [
        "default", "plan", "tuned",
        "without-shared_buffers", "only-shared_buffers", "without-build", "only-build",
        "without-max_wal_size", "only-max_wal_size",
    ]  # fmt: skip
    assert found["only-build"] == replace(found["default"], name="only-build", server="built-00000000000a")
    assert found["without-build"].settings == found["tuned"].settings
    assert found["without-build"].server is None
    assert found["only-max_wal_size"].settings == {"max_wal_size": "8GB"}


def test_all_servers_of_the_proof_fit_into_memory() -> None:
    found = proven(is_attributed=True, memory=MEMORY)
    buffers = {one.settings.get("shared_buffers") for one in found.values()}
    assert "6016MB" not in buffers
    assert len(buffers) == 2  # all that have any have the same
