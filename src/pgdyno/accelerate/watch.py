"""Observe a server's own traffic while a plan is tried on it.

No load is added; every switch has its receipts.

A plan that a reload can undo alternates with the original configuration, as its own control: plan, original,
original, plan, … At the end the plan stays in force if it did no harm; otherwise the original does. A plan
that needs a restart cannot alternate: equal times before and after are observed, and harm raises an alarm.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.session.query import Connection
from pgdyno.base.errors import (
    ConnectionFailedError,
    InterruptedByUserError,
    PgdynoError,
    ServerError,
    StillChangedError,
    UsageError,
    as_pgdyno_error,
)
from pgdyno.base.facts import Unknown
from pgdyno.base.ports import Progress
from pgdyno.builds.switching.variant_switch import Switch
from pgdyno.measure.decisions.watch_decision import (
    Watched,
    WatchState,
    has_traffic,
    is_enough,
    is_harm,
    log_ratio,
    watched,
)
from pgdyno.model.plans.journal import restart_options
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.sampling.statement_statistics import read_traffic
from pgdyno.postgres.statement_counts import Traffic

_POLL_S = 0.5


@dataclass(frozen=True)
class Pace:
    """The timing of a watch. Arbitrary: 12 minutes in all, about as long as the measurement.

    The first ``settle_s`` of each period are ignored: sessions report their statistics once a second.
    ``warm_s`` is the wait after a restart, while caches fill; ``back_s`` the longest wait for a server that
    restarts during the watch.
    """

    period_s: float = 10.0
    settle_s: float = 2.0
    warm_s: float = 60.0
    back_s: float = 60.0
    pairs: int = 30


def require_counted(access: ServerAccess) -> None:
    """Refuse to watch a server that does not count its traffic. Raises: UsageError; ConnectionFailedError."""
    with closing(access.look()) as connection:
        found = read_traffic(connection)
    if isinstance(found.value, Unknown):
        raise UsageError(
            "this server's own traffic cannot be observed",
            detail=f"{found.source}: {found.value.reason}",
            hint="leave out --tail watch; it needs PostgreSQL 14, track_activities and track_counts",
        )


def watch_by_turns(
    access: ServerAccess, switch: Switch, plan: Variant, progress: Progress, pace: Pace
) -> Watched:
    """Alternate periods with the plan and without; return the observations.

    Raises: StillChangedError if the original configuration could not be restored; InterruptedByUserError
    after it was; what apply and revert raise.
    """
    ratios: list[float] = []
    try:
        with closing(access.look()) as connection:
            for index in range(pace.pairs):
                progress.step(f"observing the server's own traffic: pair {index + 1} of {pace.pairs}")
                ratio = _observe_pair(connection, switch, plan, pace, is_plan_first=index % 2 == 0)
                ratios += [] if ratio is None else [ratio]
                if is_harm(ratios):
                    break
        seen = watched(ratios, pace.pairs, is_applied=True)
        if seen.state is WatchState.NO_HARM:
            switch.to(plan)
            return seen
        switch.back()
        return watched(ratios, pace.pairs, is_applied=False)
    except (ConnectionFailedError, StillChangedError) as error:
        _put_back(access, switch, pace, error)
        return watched(ratios, pace.pairs, is_applied=False, reason=error.message)
    except KeyboardInterrupt as error:
        interrupted = InterruptedByUserError(
            "interrupted", detail="the original configuration is in force again"
        )
        _put_back(access, switch, pace, interrupted)
        raise interrupted from error
    except PgdynoError as error:
        _put_back(access, switch, pace, error)
        raise


def watch_after(access: ServerAccess, apply: Callable[[], None], progress: Progress, pace: Pace) -> Watched:
    """Observe the server, let ``apply`` restart it with the plan, and compare.

    The plan stays in force even if it does harm, because undoing it takes another restart. It is not applied
    if there is too little traffic to detect harm.
    Raises: what ``apply`` raises; StillChangedError if the watch ended early with the plan in force.
    """
    with closing(access.look()) as connection:
        before = []
        for index in range(pace.pairs):
            progress.step(f"observing the server without the plan: period {index + 1} of {pace.pairs}")
            before.append(_observe(connection, pace))
    if not is_enough(sum(map(has_traffic, before)), pace.pairs):
        return watched((), pace.pairs, is_applied=False)
    apply()
    ratios: list[float] = []
    try:
        time.sleep(pace.warm_s)
        with closing(access.look()) as connection:
            for index, without in enumerate(before):
                progress.step(f"observing the server with the plan: period {index + 1} of {pace.pairs}")
                ratio = log_ratio(without, _observe(connection, pace))
                ratios += [] if ratio is None else [ratio]
                if is_harm(ratios):
                    break
    except (Exception, KeyboardInterrupt) as error:
        raise StillChangedError(
            "the watch ended early, and the plan is in force",
            detail=as_pgdyno_error(error).message,
            hint=f"to undo it: {access.revert_command} {restart_options(access.restart_command)}",
        ) from error
    return watched(ratios, pace.pairs, is_applied=True)


def _observe_pair(
    connection: Connection, switch: Switch, plan: Variant, pace: Pace, *, is_plan_first: bool
) -> float | None:
    """Return the log-ratio of a period with the plan to one without it; None if the pair does not count."""
    if is_plan_first:
        switch.to(plan)
        with_plan = _observe(connection, pace)
        switch.back()
        return log_ratio(_observe(connection, pace), with_plan)
    switch.back()
    without = _observe(connection, pace)
    switch.to(plan)
    return log_ratio(without, _observe(connection, pace))


def _observe(connection: Connection, pace: Pace) -> Traffic:
    time.sleep(pace.settle_s)
    before = _read(connection)
    time.sleep(pace.period_s)
    return _read(connection).since(before)


def _read(connection: Connection) -> Traffic:
    found = read_traffic(connection).value
    if isinstance(found, Unknown):
        raise ServerError("the server no longer counts its traffic", detail=found.reason)
    return found


def _put_back(access: ServerAccess, switch: Switch, pace: Pace, error: PgdynoError) -> None:
    """Restore the original values once the server answers.

    Raises: StillChangedError if that fails.
    """
    deadline_s = time.monotonic() + pace.back_s
    while True:
        try:
            access.connect().close()
            switch.back()
        except StillChangedError:
            raise
        except PgdynoError as failure:
            if time.monotonic() > deadline_s:
                raise StillChangedError(
                    f"{error.message}; the plan may be in force",
                    detail=failure.message,
                    hint=f"make sure that the server runs, then: {access.revert_command}",
                ) from error
            time.sleep(_POLL_S)
        else:
            return
