"""A controller with workers that answer by script: whatever they do, each trial has one result."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.golden.synthetic_fleet import fleet, on_machine
from tests.onlookers import Onlooker

from pgdyno.app.fleets.fleet_state import progress_of
from pgdyno.app.fleets.run_fleet import run_fleet
from pgdyno.app.fleets.trial_stores import fleet_path
from pgdyno.app.local_machine import open_store
from pgdyno.app.results.bundle import export_bundle
from pgdyno.model.errors import LockHeldError, MeasurementError, StorageError
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.fleets.fleet_order import FleetOrder, OrderedMachine, TrialOrder
from pgdyno.model.fleets.fleet_trial import FleetTrial, FleetTrialState
from pgdyno.store.bundle import pack_bundle
from pgdyno.store.documents import dump_experiment
from pgdyno.store.fleets.fleet_trials import FleetStore

pytestmark = pytest.mark.usefixtures("own_home")

ORDER = FleetOrder("f", ("compare", "a", "b"), (OrderedMachine("db1", 1), OrderedMachine("db2", 1)), 60.0)
DONE = FleetTrialState.DONE

Answer = bytes | BaseException | None
"""None: it never comes, and the worker is not heard of any more."""


@dataclass
class Scripted:
    """Workers that answer in turn by script; ``given`` are the answers' futures, by machine."""

    script: Mapping[str, Sequence[Answer]]
    orders: list[TrialOrder] = field(default_factory=list)
    given: dict[str, list[Future[bytes]]] = field(default_factory=dict)
    _beat: Callable[[], int] = field(default_factory=lambda: count().__next__)

    def beats(self) -> Mapping[str, float]:
        return {name: self._beat() for name in self.script if not self._is_silent(name)}

    def _is_silent(self, machine: str) -> bool:
        given = self.given.get(machine, [])
        return bool(given) and self.script[machine][len(given) - 1] is None

    def submit(self, machine: str, make: Callable[[TrialOrder], bytes], order: TrialOrder) -> Future[bytes]:
        self.orders.append(order)
        future: Future[bytes] = Future()
        given = self.given.setdefault(machine, [])
        answer = self.script[machine][len(given)]
        given.append(future)
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        elif answer is not None:
            future.set_result(answer)
        return future


def bundle(experiment: Experiment, directory: Path) -> bytes:
    return export_bundle(experiment, directory / "made.zip").read_bytes()


@pytest.fixture
def answers(tmp_path: Path) -> list[bytes]:
    return [bundle(one, tmp_path) for one in fleet(3)]


def made(workers: Scripted, order: FleetOrder = ORDER, step_s: float = 1.0) -> list[FleetTrial]:
    """Run a fleet, whose clock goes on by a step at every look; return its trials as they are stored."""
    clock = count(step=step_s).__next__
    run_fleet(order, workers, Onlooker(), clock=clock, turn_s=0.01)
    return stored()


def stored() -> list[FleetTrial]:
    with closing(FleetStore(fleet_path(ORDER))) as store:
        return store.trials()


def happened() -> dict[str, int]:
    with closing(FleetStore(fleet_path(ORDER))) as store:
        return store.events()


def experiments() -> list[str]:
    with closing(open_store()) as store:
        return sorted(store.ids())


def test_each_answer_becomes_one_stored_experiment(answers: list[bytes]) -> None:
    workers = Scripted({"db1": [answers[0]], "db2": [answers[1]]})
    assert made(workers) == [
        FleetTrial("db1", 1, DONE, 1, experiment="on-1"),
        FleetTrial("db2", 1, DONE, 1, experiment="on-2"),
    ]
    assert experiments() == ["on-1", "on-2"]
    with closing(FleetStore(fleet_path(ORDER))) as store:
        assert [(machine, one.experiment) for machine, one in store.findings()] == [
            ("db1", "on-1"), ("db2", "on-2"),
        ]  # fmt: skip
    assert [(one.command, one.limit_s) for one in workers.orders] == [(("compare", "a", "b"), 60.0)] * 2
    assert len({one.key for one in workers.orders}) == 2


def test_an_attempt_that_fails_is_made_again_and_at_last_given_up(answers: list[bytes]) -> None:
    broken = MeasurementError("no space", detail="on /data")
    workers = Scripted({"db1": [broken, ValueError("odd"), answers[0]], "db2": [broken] * 3})
    first, second = made(workers)
    assert (first.state, first.lease, first.attempts) == (DONE, 3, 2)
    assert (second.state, second.attempts) == (FleetTrialState.FAILED, 3)
    assert second.reason == "no space: on /data"
    assert {one.key for one in workers.orders if "-db1-" in one.key} == {workers.orders[0].key}
    found = progress_of(ORDER, None)
    assert (found.done, found.failed) == (1, 1)


def test_a_failed_trial_is_tried_again_by_the_next_run(answers: list[bytes]) -> None:
    made(Scripted({"db1": [answers[0]], "db2": [MeasurementError("no space")] * 3}))
    _, second = made(Scripted({"db1": [], "db2": [answers[1]]}))
    assert (second.state, second.experiment, second.lease) == (DONE, "on-2", 4)


def test_a_worker_that_is_not_heard_of_loses_its_lease(answers: list[bytes]) -> None:
    workers = Scripted({"db1": [answers[0]], "db2": [None]})
    first, second = made(workers, step_s=10.0)
    assert first.state is DONE
    assert (second.state, second.attempts) == (FleetTrialState.WAITING, 1)
    assert second.reason == "nothing was heard of its worker for 3\N{NO-BREAK SPACE}min"
    assert workers.given["db2"][0].cancelled()
    assert happened()["lost"] == 1


def test_a_machine_without_a_worker_does_not_hold_up_the_end(answers: list[bytes]) -> None:
    first, second = made(Scripted({"db1": [answers[0]]}), step_s=10.0)
    assert (first.state, second.state, second.lease) == (DONE, FleetTrialState.WAITING, 0)


def test_a_machine_that_left_the_order_gets_no_more_trials(answers: list[bytes]) -> None:
    made(Scripted({"db1": [answers[0]]}), step_s=10.0)
    workers = Scripted({"db1": [], "db2": [answers[1]]})
    _, second = made(workers, replace(ORDER, machines=ORDER.machines[:1]))
    assert not workers.orders
    assert second.state is FleetTrialState.WAITING


class _NeverCancelled(Future[bytes]):
    def cancel(self) -> bool:
        return False


def test_an_answer_to_a_lease_that_has_ended_is_dropped_and_recorded(
    answers: list[bytes],
) -> None:
    """A worker is cut off for a while: its trial is made again, and then both answers come."""
    late = _NeverCancelled()
    asked: list[TrialOrder] = []

    class CutOff:
        beat = count()

        def beats(self) -> Mapping[str, float]:
            if asked and not late.done() and next(self.beat) < 60:
                return {}
            return {"db1": next(self.beat)}

        def submit(self, machine: str, make: object, order: TrialOrder) -> Future[bytes]:
            asked.append(order)
            if len(asked) == 1:
                return late
            late.set_result(answers[1])
            answered: Future[bytes] = Future()
            answered.set_result(answers[0])
            return answered

    run_fleet(
        replace(ORDER, machines=ORDER.machines[:1]),
        CutOff(),
        Onlooker(),
        clock=count(step=10.0).__next__,
        turn_s=0.01,
    )
    (trial,) = stored()
    assert (trial.state, trial.experiment, trial.lease) == (DONE, "on-1", 2)
    assert experiments() == ["on-1"]
    assert (happened()["lost"], happened()["dropped"], happened()["done"]) == (1, 1, 1)


def test_one_experiment_for_two_trials_is_taken_once(answers: list[bytes], tmp_path: Path) -> None:
    copy = bundle(replace(on_machine(1, 1.19, 1.04), id="copy"), tmp_path)
    order = replace(ORDER, machines=(OrderedMachine("db1", 1), OrderedMachine("db2", 2)))
    first, second, third = made(
        Scripted({"db1": [answers[0]], "db2": [answers[0], copy, answers[1], answers[2]]}), order
    )
    assert first.experiment == "on-1"
    assert {second.experiment, third.experiment} == {"on-2", "on-3"}
    assert experiments() == ["on-1", "on-2", "on-3"]
    assert happened()["failed"] == 2


HOSTILE: dict[str, tuple[Any, str]] = {
    "no bundle": (b"PK nothing", "the worker's answer is no sound bundle: it is no readable zip file"),
    "nothing": (b"", "the worker's answer is no sound bundle"),
    "no bytes": ({"experiment": "x"}, "the worker answered with no bundle, but with a dict"),
    "too large": (b"\0" * ((64 << 20) + 1), "the worker's answer is too large: 64\N{NO-BREAK SPACE}MB"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_an_answer_that_is_no_bundle_is_a_failed_attempt(kind: str, answers: list[bytes]) -> None:
    answer, said = HOSTILE[kind]
    workers = Scripted({"db1": [answer] * 3, "db2": [answers[1]]})
    first, second = made(workers)
    assert (first.state, second.state) == (FleetTrialState.FAILED, DONE)
    assert (first.reason or "").startswith(said)
    assert experiments() == ["on-2"]


def test_a_bundle_that_was_changed_or_contradicts_itself_is_not_taken(
    answers: list[bytes], tmp_path: Path
) -> None:
    one = on_machine(7, 1.2, 1.0)
    document = {**dump_experiment(one), "baseline": "nobody"}
    made_up = pack_bundle("x", {"experiment.json": json.dumps(document).encode()})
    nothing = bundle(replace(one, verdicts=()), tmp_path)
    flipped = bytearray(answers[0])
    flipped[len(flipped) // 2] ^= 0xFF
    first, _ = made(Scripted({"db1": [bytes(flipped), made_up, nothing], "db2": [answers[1]]}))
    assert (first.state, first.attempts) == (FleetTrialState.FAILED, 3)
    assert first.reason == 'the worker\'s experiment "on-7" compares nothing'
    assert experiments() == ["on-2"]


def test_another_experiment_under_a_known_id_is_not_taken(answers: list[bytes], tmp_path: Path) -> None:
    made(Scripted({"db1": [answers[0]], "db2": []}), replace(ORDER, machines=ORDER.machines[:1]))
    fleet_path(ORDER).unlink()  # so that only the store of experiments knows it
    other = bundle(replace(on_machine(9, 1.3, 1.0), id="on-1"), tmp_path)
    first, _ = made(Scripted({"db1": [other] * 3, "db2": [answers[1]]}))
    assert (first.reason or "").startswith('another experiment is called "on-1" here: it differs in ')


def test_the_same_answer_again_after_the_fleet_was_lost_changes_nothing(answers: list[bytes]) -> None:
    script = {"db1": [answers[0]], "db2": [answers[1]]}
    made(Scripted(script))
    fleet_path(ORDER).unlink()
    assert [one.state for one in made(Scripted(script))] == [DONE, DONE]
    assert experiments() == ["on-1", "on-2"]


def test_a_store_that_goes_away_ends_the_run_and_the_next_one_goes_on(
    answers: list[bytes], tmp_path: Path
) -> None:
    aside = tmp_path / "aside"
    workers = Scripted({"db1": [answers[0]], "db2": [None]})

    def take_away() -> None:
        if not aside.exists() and stored()[0].state is DONE:
            fleet_path(ORDER).rename(aside)

    with pytest.raises(StorageError, match="could not write to the fleet's store"):
        run_fleet(ORDER, workers, Onlooker(take_away), clock=count(step=10.0).__next__, turn_s=0.01)
    assert workers.given["db2"][0].cancelled()
    fleet_path(ORDER).unlink(missing_ok=True)  # what looking at it has made
    aside.rename(fleet_path(ORDER))
    again = Scripted({"db1": [], "db2": [answers[1]]})
    first, second = made(again)
    assert (first.lease, second.state, second.lease, second.attempts) == (1, DONE, 2, 0)
    assert happened()["given back"] == 1
    assert again.orders[0].key == workers.orders[1].key


def test_two_controllers_do_not_run_one_fleet(answers: list[bytes]) -> None:
    refusals = []

    def second() -> None:
        with pytest.raises(LockHeldError) as caught:
            made(Scripted({}))
        refusals.append(caught.value)

    run_fleet(ORDER, Scripted({"db1": [answers[0]], "db2": [answers[1]]}), Onlooker(second), turn_s=0.01)
    assert refusals
    assert refusals[0].message == 'another pgdyno runs the fleet "f"'
    assert refusals[0].hint == "see how far it is: pgdyno fleet status"
