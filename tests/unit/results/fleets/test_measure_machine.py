"""A machine's part in a fleet: the command's experiment, once the machine is free."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.golden.synthetic_fleet import fleet

from pgdyno.base.errors import LockHeldError, MeasurementError
from pgdyno.model.experiments.fleet import MachineOrder
from pgdyno.results.bundle import export_bundle, verify_bundle
from pgdyno.results.bundle_import import import_bundle
from pgdyno.results.fleets.run_fleet import measure_machine

pytestmark = pytest.mark.usefixtures("own_home")

ORDER = MachineOrder(("compare", "a", "b"), 60.0)
BUSY = LockHeldError("another pgdyno measures on the machine")
EXPERIMENT = json.dumps({"experiment": "on-1"})


class Scripted:
    """A command that prints by script, or fails; ``asked`` has its words."""

    def __init__(self, *script: str | LockHeldError) -> None:
        self.script = script
        self.asked: list[list[str]] = []

    def __call__(self, words: list[str], *_: object, **__: object) -> str:
        self.asked.append(words)
        said = self.script[len(self.asked) - 1]
        if isinstance(said, LockHeldError):
            raise said
        return said


def test_the_answer_is_the_bundle_of_the_experiment_that_the_command_printed(tmp_path: Path) -> None:
    import_bundle(export_bundle(fleet(1)[0], tmp_path / "stored.zip"))
    command = Scripted(BUSY, EXPERIMENT)  # a busy machine is waited for
    answer = tmp_path / "answer.zip"
    answer.write_bytes(measure_machine(ORDER, run=command))
    found = verify_bundle(answer)
    assert (found.problems, found.experiment and found.experiment.id) == ((), "on-1")
    assert command.asked == [["compare", "a", "b", "--json"]] * 2


def test_a_busy_machine_is_waited_for_within_the_limit_and_while_that_is_wanted() -> None:
    with pytest.raises(LockHeldError):
        measure_machine(MachineOrder(ORDER.command, 0.0), run=Scripted(BUSY))
    with pytest.raises(LockHeldError):
        measure_machine(ORDER, lambda: False, run=Scripted(BUSY))


@pytest.mark.parametrize("printed", ["", "{}", "[1]", "no JSON"])
def test_a_command_that_prints_no_experiment_is_told(printed: str) -> None:
    with pytest.raises(MeasurementError) as caught:
        measure_machine(ORDER, run=Scripted(printed))
    assert caught.value.message == "the command printed no experiment"
    assert caught.value.hint == "order a command that measures: pgdyno compare … or pgdyno run …"
