"""Name a failed step, its server, and the last lines of that server's log."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pgdyno.base.errors import (
    GeneratorError,
    LoadHostLostError,
    PgdynoError,
    ServerCrashedError,
    StorageError,
)
from pgdyno.measure.arenas.arm import Arm

_END_S = 1.0  # arbitrary: a postmaster that was killed is gone in milliseconds
_POLL_S = 0.05
_NO_SPACE = "No space left on device"
_SQLSTATE = re.compile(r"\(SQLSTATE (\w{5})\)")
_DISK_FULL = "53100"  # disk_full
_SERVER_ENDS = frozenset({"57P01", "57P02", "57P03"})  # why it does, only the log says
_SHARED_MEMORY = "shared memory segment"


@contextmanager
def failures_named(step: str, arm: Arm) -> Iterator[None]:
    """Run one step; add the step's name to any error.

    Raises: StorageError if the server's disk is full, ServerCrashedError if the server has gone,
    LoadHostLostError as it is if the host that issues the load has, GeneratorFailedError for anything else.
    """
    try:
        yield
    except LoadHostLostError:  # the round is repeated, whatever the server says
        raise
    except GeneratorError as error:
        raise explained(error, step, arm) from error


def explained(error: GeneratorError, step: str, arm: Arm) -> PgdynoError:
    """Return the error that a user can do something about."""
    place, is_running = f"{step} on the server of {arm.variant.name}", _is_running(arm)
    log = arm.server.last_log_lines()  # it has had the time to say why
    said = "\n         ".join(part for part in (error.detail, f"the server's log ends with: {log}") if part)
    full = _words_of_a_full_disk(str(error), log)
    if full is not None and _SHARED_MEMORY in full:
        return StorageError(
            f"the memory for /dev/shm filled up during {place}",
            detail=f"{error.message}\n         {said}",
            hint="make /dev/shm larger (containers have 64 MB unless told otherwise), or set "
            "max_parallel_maintenance_workers=0 (for queries max_parallel_workers_per_gather=0)",
        )
    if full is not None:
        return StorageError(
            f"the disk filled up during {place}",
            detail=f"{error.message}\n         {said}",
            hint="make room where PGDYNO_HOME is, or name another place with it; fewer rows need less",
        )
    if not is_running:
        return ServerCrashedError(
            f"the server of {arm.variant.name} ended during {step}",
            detail=f"{error.message}\n         {said}",
            hint="its log says why; a server that was killed may have run out of memory (dmesg)",
        )
    return type(error)(f"{place} failed: {error.message}", detail=said, hint=error.hint)


def _words_of_a_full_disk(said: str, log: str) -> str | None:
    """Return the words that say that there was no space left; None if that is not the reason.

    The log is older than the error: it is asked only if the error itself gives no reason, as when a
    connection is lost because the server panicked.
    """
    states = set(_SQLSTATE.findall(said))
    if _DISK_FULL in states or _NO_SPACE in said:
        return said
    if states - _SERVER_ENDS:
        return None
    return next((line for line in reversed(log.splitlines()) if _NO_SPACE in line), None)


def _is_running(arm: Arm) -> bool:
    """Whether the server runs, and goes on: clients may lose their connections before it has ended."""
    deadline_s = time.monotonic() + _END_S
    while time.monotonic() < deadline_s:
        try:
            arm.server.pid  # noqa: B018 — it raises
        except ServerCrashedError:
            return False
        time.sleep(_POLL_S)
    return True
