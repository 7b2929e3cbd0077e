"""Leases of trials: which trial a worker may have, and which answer counts. Pure.

                 lease               answer
    waiting ──────────────▶ measuring ──────▶ done
       ▲                        │
       └── attempts are left ───┤ failure, or nothing heard of the worker
                                └──────▶ failed

A lease has a number. An answer counts if its lease is the trial's latest, and the trial is being measured:
so exactly one does, whatever the order in which workers answer, fail and are lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from pgdyno.model.fleets.fleet_trial import FleetTrial, FleetTrialState

MOST_ATTEMPTS = 3
"""Arbitrary: what fails three times on one machine has a cause there."""

LEASE_S = 180.0
"""A worker gives a sign of life every second or so. Measured on a busy machine: none for 45 s, while
it loads its modules. One whose end is known loses its lease at once."""

_REASON_CHARACTERS = 2000  # arbitrary: a worker says it


def leased(trial: FleetTrial) -> FleetTrial:
    """Return a waiting trial with a lease of its own."""
    return replace(trial, state=FleetTrialState.LEASED, lease=trial.lease + 1)


def answered(trial: FleetTrial, lease: int, experiment: str) -> FleetTrial | None:
    """Return the trial with its result; None: the answer does not count."""
    if not _is_current(trial, lease):
        return None
    return replace(trial, state=FleetTrialState.DONE, experiment=experiment, reason=None)


def failed(trial: FleetTrial, lease: int, reason: str) -> FleetTrial | None:
    """Return the trial after an attempt that failed; None: the failure is of an earlier lease."""
    if not _is_current(trial, lease):
        return None
    attempts = trial.attempts + 1
    state = FleetTrialState.FAILED if attempts >= MOST_ATTEMPTS else FleetTrialState.WAITING
    return replace(trial, state=state, attempts=attempts, reason=reason[:_REASON_CHARACTERS])


def given_back(trial: FleetTrial, lease: int) -> FleetTrial | None:
    """Return the trial as one that waits; its attempt does not count as failed."""
    return replace(trial, state=FleetTrialState.WAITING) if _is_current(trial, lease) else None


def due(trials: Sequence[FleetTrial], heard: Collection[str]) -> Iterator[FleetTrial]:
    """Yield the trials that may be leased now: one for each machine that is heard of and has none.

    Those that failed least come first: one that always fails does not keep the others waiting.
    """
    busy = {one.machine for one in trials if one.state is FleetTrialState.LEASED}
    waiting = (one for one in trials if one.state is FleetTrialState.WAITING and one.machine in heard)
    for one in sorted(waiting, key=lambda one: (one.attempts, one.number)):
        if one.machine not in busy:
            busy.add(one.machine)
            yield one


def heard_lately(heard_s: Mapping[str, float], now_s: float) -> frozenset[str]:
    """Return the machines whose worker has given a sign of life within the time of a lease."""
    return frozenset(machine for machine, when_s in heard_s.items() if now_s - when_s <= LEASE_S)


def lost(trials: Sequence[FleetTrial], heard: Collection[str]) -> Iterator[FleetTrial]:
    """Yield the trials whose lease has ended because nothing is heard of their worker."""
    return (one for one in trials if one.state is FleetTrialState.LEASED and one.machine not in heard)


def _is_current(trial: FleetTrial, lease: int) -> bool:
    return trial.state is FleetTrialState.LEASED and trial.lease == lease
