"""When the transactions of a replay start."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.captured import CapturedWorkload


@dataclass(frozen=True)
class ReplayPace:
    """When transactions start: ``rate_tps`` arrive in a second, or each client begins one after a pause.

    ``pauses_s`` are those pauses, each as likely as the others. Without both, each client begins the next
    transaction at once. ``clients`` None: as many as were at work.
    """

    clients: int | None = None
    rate_tps: float | None = None
    pauses_s: tuple[float, ...] = ()


def replay_pace(
    workload: CapturedWorkload,
    clients: int | None,
    rate_tps: float | None,
    times_as_fast: float | None,
    *,
    is_pausing: bool,
) -> ReplayPace:
    """Return the pace that a user asks for.

    Raises: UsageError if the wishes exclude each other, or the workload does not know what they take.
    """
    if is_pausing:
        return _with_pauses(workload, clients, rate_tps, times_as_fast or 1.0)
    if times_as_fast is None:
        return ReplayPace(clients, rate_tps)
    if rate_tps is not None:
        raise UsageError("--pace and --rate both say how many transactions arrive", hint="leave out one")
    if workload.transactions_per_s is None:
        raise UsageError(
            f'the workload "{workload.name}" does not say how fast its transactions came', hint="give --rate"
        )
    return ReplayPace(clients, times_as_fast * workload.transactions_per_s)


def _with_pauses(
    workload: CapturedWorkload, clients: int | None, rate_tps: float | None, times_as_fast: float
) -> ReplayPace:
    if rate_tps is not None:
        raise UsageError(
            "--pauses and --rate exclude each other",
            detail="at a rate, transactions arrive whatever sessions do; with pauses, each session begins "
            "its next one when it has paused",
            hint="leave out one; --pauses --pace 2 makes pauses half as long",
        )
    if not workload.pauses_s:
        raise UsageError(
            f'how long sessions of the workload "{workload.name}" pause is not known',
            hint="logs with durations and milliseconds tell it, and a server that is watched for long "
            "enough; or write pauses into the file: pauses_s = [0.1, 0.5]",
        )
    pauses_s = tuple(one / times_as_fast for one in workload.pauses_s)
    return ReplayPace(clients or workload.pausing_clients, pauses_s=pauses_s)
