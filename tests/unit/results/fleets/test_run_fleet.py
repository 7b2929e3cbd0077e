"""A fleet whose answers come by script: sound ones are kept under names of ours, others refused in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.golden.synthetic_fleet import fleet, on_machine

from pgdyno.base.errors import LockHeldError, MeasurementError
from pgdyno.host.files.lock import exclusive_lock
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.fleet import FleetOrder, MachineOrder
from pgdyno.results.bundle import export_bundle
from pgdyno.results.fleets.run_fleet import MachineOutcome, fleet_directory, run_fleet
from pgdyno.store.bundle import pack_bundle
from pgdyno.store.documents import dump_experiment

pytestmark = pytest.mark.usefixtures("own_home")

ORDER = FleetOrder("f", MachineOrder(("compare", "a", "b"), 60.0), ("db1", "db2"))


@pytest.fixture
def answers(tmp_path: Path) -> list[bytes]:
    return [bundle(one, tmp_path) for one in fleet(3)]


def bundle(experiment: Experiment, directory: Path) -> bytes:
    return export_bundle(experiment, directory / "made.zip").read_bytes()


def run(
    script: Mapping[str, object], order: FleetOrder = ORDER, said: list[str] | None = None
) -> tuple[list[str], list[MachineOutcome]]:
    """Run a fleet; return the machines that were asked as well."""
    asked: list[str] = []

    def given(machines: Sequence[str]) -> Iterator[tuple[str, object]]:
        asked.extend(machines)
        yield from ((one, script[one]) for one in machines)

    return asked, run_fleet(order, order.machines, given, (said if said is not None else []).append)


def refusal(answer: object, others: bytes) -> str:
    """Return why an answer of db2 is refused, beside one of db1; the file of db1 alone is there then."""
    _, (first, second) = run({"db1": others, "db2": answer})
    assert first.reason is None
    assert second.bundle is None
    assert kept() == [ORDER.bundle_name("db1")]
    return str(second.reason)


def kept() -> list[str]:
    return sorted(one.name for one in fleet_directory(ORDER).glob("*.zip"))


def test_each_answer_is_kept_as_it_came_under_the_machines_name(answers: list[bytes]) -> None:
    asked, outcomes = run({"db1": answers[0], "db2": answers[1]})
    assert asked == ["db1", "db2"]
    assert [one.bundle for one in outcomes] == [
        fleet_directory(ORDER) / ORDER.bundle_name(machine) for machine in ("db1", "db2")
    ]
    assert [one.bundle.read_bytes() for one in outcomes if one.bundle] == answers[:2]
    assert kept() == sorted(ORDER.bundle_name(machine) for machine in ORDER.machines)
    assert fleet_directory(ORDER).stat().st_mode & 0o777 == 0o700


def test_run_again_asks_only_machines_that_are_not_done(answers: list[bytes]) -> None:
    failed = MeasurementError("no space", detail="on /data")
    said: list[str] = []
    _, (_, second) = run({"db1": answers[0], "db2": failed}, said=said)
    assert second == MachineOutcome("db2", None, "no space: on /data")
    assert said == ["db2: no space: on /data"]
    asked, outcomes = run({"db2": answers[1]})
    assert asked == ["db2"]
    assert [one.reason for one in outcomes] == [None, None]
    assert run({})[0] == []


def test_another_command_is_measured_again_and_another_limit_is_not(answers: list[bytes]) -> None:
    both: dict[str, object] = {"db1": answers[0], "db2": answers[1]}
    run(both)
    longer = replace(ORDER, machine=replace(ORDER.machine, limit_s=90.0))
    assert run({}, longer)[0] == []
    other = replace(ORDER, machine=MachineOrder(("compare", "a", "c"), 60.0))
    assert run(both, other)[0] == ["db1", "db2"]
    assert len(kept()) == 4


def test_a_kept_bundle_that_is_broken_counts_for_nothing(answers: list[bytes]) -> None:
    run({"db1": answers[0], "db2": answers[1]})
    path = fleet_directory(ORDER) / ORDER.bundle_name("db1")
    path.write_bytes(path.read_bytes()[:-100])
    said: list[str] = []
    asked, _ = run({"db1": answers[2]}, said=said)
    assert asked == ["db1"]
    assert said[0].startswith(f'db1 counts as not measured: "{path}" is an incomplete bundle: ')
    assert path.read_bytes() == answers[2]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"PK nothing", "the answer is not a valid bundle: it is not a readable zip file"),
        (b"", "the answer is not a valid bundle"),
        ({"experiment": "x"}, "the answer is not a bundle, but a dict"),
        (
            b"\0" * ((64 << 20) + 1),
            "the answer is too large: 64\N{NO-BREAK SPACE}MB, more than 64\N{NO-BREAK SPACE}MB",
        ),
        (ValueError("odd\nlines"), "unforeseen ValueError: odd lines"),
        (SystemExit(3), "SystemExit"),
    ],
)
def test_an_answer_that_is_no_bundle_is_refused(answer: object, said: str, answers: list[bytes]) -> None:
    assert refusal(answer, answers[0]).startswith(said)


def test_a_bundle_that_was_changed_or_contradicts_itself_is_refused(
    answers: list[bytes], tmp_path: Path
) -> None:
    one = on_machine(7, 1.2, 1.0)
    flipped = bytearray(answers[1])
    flipped[len(flipped) // 2] ^= 0xFF
    assert refusal(bytes(flipped), answers[0]).startswith("the answer is not a valid bundle: ")
    document = {**dump_experiment(one), "baseline": "nobody"}
    made_up = pack_bundle("x", {"experiment.json": json.dumps(document).encode()})
    assert refusal(made_up, answers[0]).startswith("the answer is not a valid bundle: ")
    nothing = bundle(replace(one, verdicts=()), tmp_path)
    assert refusal(nothing, answers[0]) == 'the experiment "on-7" compares nothing'


def test_a_bundle_of_another_machine_is_refused(answers: list[bytes], tmp_path: Path) -> None:
    assert refusal(answers[0], answers[0]) == 'the experiment "on-1" is the one of db1'
    renamed = bundle(replace(fleet(1)[0], id="copy"), tmp_path)
    assert refusal(renamed, answers[0]) == 'the experiment "copy" is the one of db1'


def test_a_bundle_of_another_experiment_is_refused(answers: list[bytes], tmp_path: Path) -> None:
    one = on_machine(7, 1.2, 1.0)
    variant = replace(one.variants[1], name="other")
    blocks = [
        replace(block, arms=tuple(replace(arm, variant=_renamed(arm.variant)) for arm in block.arms))
        for block in one.blocks
    ]
    verdicts = tuple(replace(verdict, variant=_renamed(verdict.variant)) for verdict in one.verdicts)
    other = replace(
        one,
        question="Is it another one?",
        variants=(one.variants[0], variant),
        blocks=tuple(blocks),
        verdicts=verdicts,
        settings=(),
    )
    said = refusal(bundle(other, tmp_path), answers[0])
    assert said.startswith("the experiment has no comparison in common with that of db1: its question: Is ")
    assert fleet(1)[0].question in said


def _renamed(variant: str) -> str:
    return "other" if variant == "plan" else variant


def test_one_pgdyno_at_a_time_runs_a_fleet(answers: list[bytes]) -> None:
    fleet_directory(ORDER).mkdir()
    with exclusive_lock(fleet_directory(ORDER) / "run.lock"), pytest.raises(LockHeldError):
        run({"db1": answers[0], "db2": answers[1]})
