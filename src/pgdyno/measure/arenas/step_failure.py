"""Explain a failed step: its name, its server, and the last lines of the server's log."""

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

_END_S = 1.0  # arbitrary: a killed postmaster exits within milliseconds
_POLL_S = 0.05
_NO_SPACE = "No space left on device"
_SQLSTATE = re.compile(r"\(SQLSTATE (\w{5})\)")
_DISK_FULL = "53100"  # disk_full
_SERVER_ENDS = frozenset({"57P01", "57P02", "57P03"})  # server shutdown; only its log has the reason
_SHARED_MEMORY = "shared memory segment"


@contextmanager
def failures_named(step: str, arm: Arm) -> Iterator[None]:
    """Run one step; add the step's name to any error.

    Raises: StorageError if the server's disk is full, ServerCrashedError if the server has exited,
    LoadHostLostError unchanged if the load host was lost, GeneratorFailedError for anything else.
    """
    try:
        yield
    except LoadHostLostError:  # the round is repeated in any case
        raise
    except GeneratorError as error:
        raise explained(error, step, arm) from error


def explained(error: GeneratorError, step: str, arm: Arm) -> PgdynoError:
    """Return the error with its cause and a hint for the user."""
    place, is_running = f"{step} on the server of {arm.variant.name}", _is_running(arm)
    log = arm.server.last_log_lines()  # read last: the server had time to log the reason
    detail = "\n         ".join(part for part in (error.detail, f"the server's log ends with: {log}") if part)
    full = _disk_full_line(str(error), log)
    if full is not None and _SHARED_MEMORY in full:
        return StorageError(
            f"the memory for /dev/shm filled up during {place}",
            detail=f"{error.message}\n         {detail}",
            hint="make /dev/shm larger (containers have 64 MB by default), or set "
            "max_parallel_maintenance_workers=0 (for queries max_parallel_workers_per_gather=0)",
        )
    if full is not None:
        return StorageError(
            f"the disk filled up during {place}",
            detail=f"{error.message}\n         {detail}",
            hint="free space where PGDYNO_HOME is, set it to another disk, or use fewer rows",
        )
    if not is_running:
        return ServerCrashedError(
            f"the server of {arm.variant.name} ended during {step}",
            detail=f"{error.message}\n         {detail}",
            hint="its log says why; if it was killed, it may have run out of memory (dmesg)",
        )
    return type(error)(f"{place} failed: {error.message}", detail=detail, hint=error.hint)


def _disk_full_line(error_text: str, log: str) -> str | None:
    """Return the error text or log line that reports a full disk; None if that is not the reason.

    The log also has older lines. It is read only if the error itself gives no reason, as when a connection is
    lost because the server panicked.
    """
    states = set(_SQLSTATE.findall(error_text))
    if _DISK_FULL in states or _NO_SPACE in error_text:
        return error_text
    if states - _SERVER_ENDS:
        return None
    return next((line for line in reversed(log.splitlines()) if _NO_SPACE in line), None)


def _is_running(arm: Arm) -> bool:
    """Whether the server keeps running for a while: clients may lose connections before it exits."""
    deadline_s = time.monotonic() + _END_S
    while time.monotonic() < deadline_s:
        try:
            arm.server.pid  # noqa: B018 — it raises
        except ServerCrashedError:
            return False
        time.sleep(_POLL_S)
    return True
