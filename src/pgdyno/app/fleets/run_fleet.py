"""Control a fleet: lease trials to workers, hear of them, take their answers, until nothing is left to do.

The state is in the fleet's store alone, so that a controller that is started again goes on. A lock keeps a
second one of this machine off: the kernel takes it back when a controller ends, in whatever way. Controllers
of other machines may share a store that is a database; each keeps what it has leased.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import inf
from typing import Protocol

from pgdyno.app.fleets.measure_trial import measure_trial
from pgdyno.app.fleets.take_answer import take_answer
from pgdyno.app.fleets.trial_stores import open_trials
from pgdyno.app.local_machine import workspace
from pgdyno.experiments.fleets.trial_leases import (
    LEASE_S,
    answered,
    due,
    failed,
    given_back,
    heard_lately,
    leased,
    lost,
)
from pgdyno.journal.ledger.lock import exclusive_lock
from pgdyno.model import numbers
from pgdyno.model.errors import LockHeldError, MeasurementError, as_pgdyno_error
from pgdyno.model.fleets.finding import FleetFinding
from pgdyno.model.fleets.fleet_order import FleetOrder, TrialOrder
from pgdyno.model.fleets.fleet_trial import FleetTrial, FleetTrialState
from pgdyno.model.fleets.trial_store import FleetEvent, TrialStore
from pgdyno.model.fleets.trial_workers import TrialWorkers

_OTHERS_TURNS = 10  # arbitrary: between two looks at the trials of other controllers, which read all of them
_ENDED = "its controller has ended"


class FleetOnlooker(Protocol):
    """Sees a fleet while it runs."""

    def look(self, store: TrialStore) -> None:
        """Look at the trials. It is called every turn, a second or less."""
        ...

    def say(self, what: str) -> None:
        """Tell of something that holds the fleet up."""
        ...


@dataclass
class _Controller:
    """A controller that holds the fleet's lock. ``pending`` has the leased trial of each answer to come."""

    order: FleetOrder
    fleet_id: str
    store: TrialStore
    workers: TrialWorkers
    make: Callable[[TrialOrder], bytes]
    clock: Callable[[], float]
    turn_s: float
    trials: dict[tuple[str, int], FleetTrial]
    pending: dict[Future[bytes], FleetTrial] = field(default_factory=dict)
    _beats: dict[str, float] = field(default_factory=dict)
    _there: frozenset[str] = frozenset()
    _heard_s: dict[str, float] = field(default_factory=dict)
    _asked_s: float = -inf
    _others_s: float = -inf

    def go_on(self) -> None:
        """Take back the leases of controllers that have ended; trials that had failed are tried again."""
        now_s = self.clock()
        self._heard_s = {machine.name: now_s for machine in self.order.machines}
        self._take_back()
        for trial in [*self.trials.values()]:
            if trial.state is FleetTrialState.FAILED:
                self._change(trial, replace(trial, state=FleetTrialState.WAITING, attempts=0), "again")

    def turn(self) -> bool:
        """Lease, hear and take, once; False when nothing is left to do, or nobody does it."""
        self._hear()
        self._hear_others()
        heard = heard_lately(self._heard_s, self.clock())
        for trial in lost(self._mine(), heard):
            self._lose(trial)
        for trial in due([*self.trials.values()], heard & self._there):
            self._lease(trial)
        if not self.pending and not any(
            _is_open(one) and one.machine in heard for one in self.trials.values()
        ):
            return False
        if self.pending:
            wait(self.pending, self.turn_s, FIRST_COMPLETED)
            for future in [one for one in self.pending if one.done()]:  # ``wait`` leaves out cancelled ones
                self._take(future, self.pending.pop(future))
        else:
            time.sleep(self.turn_s)
        return True

    def forget(self) -> None:
        """Let the workers know that nobody waits for their answers."""
        for future in self.pending:
            future.cancel()

    def _hear(self) -> None:
        now_s = self.clock()
        if now_s - self._asked_s < self.turn_s:
            return
        beats = self.workers.beats()
        waited_s = self.clock() - now_s  # nobody was heard meanwhile, which is no fault of the workers
        self._asked_s = now_s + waited_s
        self._heard_s = {machine: heard_s + waited_s for machine, heard_s in self._heard_s.items()}
        self._there = frozenset(beats)
        for machine, beat in beats.items():
            if self._beats.get(machine) != beat:
                self._beats[machine], self._heard_s[machine] = beat, self._asked_s

    def _hear_others(self) -> None:
        """Learn the changes of other controllers; the leases of those that have ended are taken back."""
        now_s = self.clock()
        if now_s - self._others_s >= _OTHERS_TURNS * self.turn_s:
            self._others_s = now_s
            self._learn(self.store.changed_by_others())
            self._take_back()

    def _learn(self, trials: Iterable[FleetTrial]) -> None:
        self.trials.update((one.place, one) for one in trials if one.place in self.trials)

    def _take_back(self) -> None:
        for trial in self.store.abandoned():
            if trial.place in self.trials:
                self._change(trial, given_back(trial, trial.lease), "given back", _ENDED)

    def _mine(self) -> list[FleetTrial]:
        """Return the trials that this controller has leased."""
        asked = [(self.trials[one.place], one.lease) for one in self.pending.values()]
        return [one for one, lease in asked if one.lease == lease]

    def _lease(self, trial: FleetTrial) -> None:
        mine = leased(trial)
        if not self._change(trial, mine, "leased"):
            return
        key = f"{self.fleet_id}-{mine.machine}-{mine.number}"
        order = TrialOrder(key, self.order.command, self.order.limit_s)
        self.pending[self.workers.submit(mine.machine, self.make, order)] = mine

    def _lose(self, trial: FleetTrial) -> None:
        for future, mine in [*self.pending.items()]:
            if mine.place == trial.place and mine.lease == trial.lease and future.cancel():
                del self.pending[future]
        why = f"nothing was heard of its worker for {numbers.duration(LEASE_S)}"
        self._change(trial, failed(trial, trial.lease, why), "lost", why)

    def _take(self, future: Future[bytes], mine: FleetTrial) -> None:
        """Bring an answer, or its absence, to its trial."""
        now = self.trials[mine.place]
        if future.cancelled():
            if (back := given_back(now, mine.lease)) is not None:
                self._change(now, back, "given back", "its worker's scheduler let go of it")
            return
        if not _is_leased(now, mine):
            self._drop(mine)
            return
        error = future.exception() or self._stored(future.result(), now)
        if error is None:
            return
        now, why = self.trials[mine.place], _words(error)
        if not _is_leased(now, mine):
            self._drop(mine)
        else:
            self._change(now, failed(now, mine.lease, why), "failed", why)

    def _stored(self, answer: bytes, trial: FleetTrial) -> MeasurementError | None:
        """Store an answer as a trial's result, or return why it is none."""
        try:
            finding = take_answer(answer, self.store)
        except MeasurementError as error:
            return error
        done = answered(trial, trial.lease, finding.experiment)
        if self._change(trial, done, "done", finding=finding):
            return None
        return MeasurementError("another trial has been answered with the same experiment meanwhile")

    def _drop(self, mine: FleetTrial) -> None:
        self.store.record(mine, _event("dropped", "an answer to a lease that had ended"))

    def _change(
        self,
        before: FleetTrial,
        after: FleetTrial | None,
        what: str,
        detail: str | None = None,
        finding: FleetFinding | None = None,
    ) -> bool:
        """Write a trial's new state and go by it; False: another controller was first, go by its state."""
        assert after is not None  # noqa: S101 — callers have seen that the lease is the latest
        if self.store.write(before, after, _event(what, detail), finding):
            self.trials[after.place] = after
            return True
        self._learn(self.store.changed_by_others())
        return False


def run_fleet(
    order: FleetOrder,
    workers: TrialWorkers,
    onlooker: FleetOnlooker,
    *,
    make: Callable[[TrialOrder], bytes] = measure_trial,
    clock: Callable[[], float] = time.monotonic,
    turn_s: float = 1.0,
) -> None:
    """Have all trials made that are not done.

    It ends when all are done or have failed, or no worker was heard of that could make the others.
    Raises: LockHeldError while another controller runs the fleet here; StorageError; RemoteHostError.
    """
    with _alone(order), closing(open_trials(order, onlooker.say)) as store:
        fleet_id = store.begin(order, f"{order.name}-{secrets.token_hex(4)}")
        asked = {machine.name for machine in order.machines}  # a machine may have left the order
        trials = {one.place: one for one in store.trials() if one.machine in asked}
        controller = _Controller(order, fleet_id, store, workers, make, clock, turn_s, trials)
        controller.go_on()
        try:
            while controller.turn():
                onlooker.look(store)
        finally:
            controller.forget()


@contextmanager
def _alone(order: FleetOrder) -> Iterator[None]:
    """Hold the fleet's lock. Raises: LockHeldError naming the process that holds it."""
    try:
        with exclusive_lock(workspace().fleets() / f"{order.name}.controller.lock"):
            yield
    except LockHeldError as error:
        raise LockHeldError(
            f'another pgdyno runs the fleet "{order.name}"',
            detail=error.detail,
            hint="see how far it is: pgdyno fleet status",
        ) from error


def _event(what: str, detail: str | None = None) -> FleetEvent:
    return FleetEvent(datetime.now(UTC).isoformat(timespec="milliseconds"), what, detail)


def _is_open(trial: FleetTrial) -> bool:
    return trial.state in {FleetTrialState.WAITING, FleetTrialState.LEASED}


def _is_leased(trial: FleetTrial, mine: FleetTrial) -> bool:
    """Whether a lease of ours is the trial's latest, and it has no answer yet."""
    return trial.state is FleetTrialState.LEASED and trial.lease == mine.lease


def _words(error: BaseException) -> str:
    """Return an error in one line. It may come from a worker: of any kind, with any text."""
    if not isinstance(error, Exception):
        return type(error).__name__
    known = as_pgdyno_error(error)
    line = " ".join(": ".join(filter(None, (known.message, known.detail))).splitlines())
    return line.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
