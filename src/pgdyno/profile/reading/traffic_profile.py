"""Profile a running server's own traffic, without load and without changes.

The server counts the transactions; their time is its sessions' time in transactions. If the server provably
runs on this host, CPU time and run queue time are read from its processes. Samples of sessions divide the
rest; on a busy machine, a sample also shows sessions as waiting that are about to run.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from pgdyno.base import numbers
from pgdyno.base.errors import ServerError, UsageError
from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.base.ports import Progress
from pgdyno.measure.arenas.attached_server import postmaster_of
from pgdyno.postgres.connection.connection import Connection, connect
from pgdyno.postgres.inspection.inspection import identify_backend
from pgdyno.postgres.process.account import one_off_account
from pgdyno.postgres.process.local_machine import online_cpus, workspace
from pgdyno.postgres.process.processes import children, cpu_ns
from pgdyno.postgres.sampling.session_samples import may_see_sessions
from pgdyno.profile.hardware import CountedWindow, PerfCounts, of_hardware
from pgdyno.profile.reading.cycle_sampling import within
from pgdyno.profile.reading.hardware_counting import HardwareCounters, find_hardware_counters
from pgdyno.profile.reading.layouts import sampled_layout
from pgdyno.profile.reading.recordings import Recordings, open_recordings
from pgdyno.profile.reading.statement_work import TrafficCounting
from pgdyno.profile.reading.traffic import TrafficWindow, WatchedServer
from pgdyno.profile.records.microarchitecture import Microarchitecture
from pgdyno.profile.records.profile_record import TransactionProfile
from pgdyno.profile.summary import Profiled, sum_up

_WINDOW_S = 10.0
_LEAST_S, _MOST_S = 8.0, 1800.0  # two windows, as sessions report once a second; 3 GB of recordings
_SAMPLES_PER_S = 200
_NAME = "its own traffic"


def profile_attached(
    dsn: str,
    duration_s: float,
    progress: Progress,
    find_counters: Callable[[Path], HardwareCounters] = find_hardware_counters,
) -> TransactionProfile:
    """Profile a running server's traffic for about ``duration_s``.

    Hardware counters, if available, count in all windows. Samples hardly distort them, because they are few.

    Raises: UsageError for an unsupported duration; MeasurementError if the server is idle; ServerError if
    the role may not see other sessions; ConnectionFailedError.
    """
    if not _LEAST_S <= duration_s <= _MOST_S:
        raise UsageError(
            f"a server cannot be watched for {duration_s:g} s",
            hint=f"--for {_LEAST_S:g}s to {_MOST_S / 60:g}m",
        )
    windows = max(2, round(duration_s / _WINDOW_S))
    window_s = duration_s / windows
    with closing(connect(dsn)) as connection, workspace().scratch() as scratch:
        _require_visible_sessions(connection)
        own = identify_backend(connection).pid
        statements = TrafficCounting.begin(connection)
        postmaster = _on_this_host(postmaster_of(connection), own)
        traffic = WatchedServer(connection, postmaster.or_none(), own)
        spent_s, began_s = _own_cpu_s(postmaster, own), time.monotonic()
        with _opened_recordings(scratch, postmaster) as recordings:
            hardware = find_counters(scratch) if postmaster.is_known else HardwareCounters(scratch)
            progress.step(f"watching the traffic for {duration_s:.0f} s")
            watched, counts = [], []
            for window in range(windows):
                watch = partial(
                    traffic.watch, window_s, partial(_advance, progress, window * window_s, duration_s)
                )
                with recordings.sampling():
                    counted = hardware.count(traffic.sessions(), watch) if hardware.are_there else None
                    seen, window_counts = counted or (watch(), None)
                seen.require_traffic()
                watched.append(seen)
                counts.append(window_counts)
            recordings.end()
            read = statements.end(*_counts_of(watched))
            program = _program(postmaster)
        share = (_own_cpu_s(postmaster, own) - spent_s) / (time.monotonic() - began_s)
        progress.step("reading the recordings")
        stacks = within(recordings.stacks(), watched)
        watched = [one.sampled(found) for one, found in zip(watched, stacks, strict=True)]
        cycles = [one.cycle(found) for one, found in zip(watched, stacks, strict=True)]
        remarks = [*recordings.remarks, *hardware.remarks, *_remarks(watched, postmaster), *read.remarks]
        label = f"port={connection.info.port} dbname={connection.info.dbname}"
    sessions = sum(one.mean_sessions for one in watched) / len(watched)
    profiled = Profiled(label, _NAME, sessions, len(online_cpus()))
    found = sum_up(profiled, cycles, read.statements, (*remarks, _cost(share)))
    layout = None if program is None else sampled_layout(program, cycles)
    return replace(
        found, counted=_counted(watched, counts, hardware.events), layouts=(layout,) if layout else ()
    )


def _require_visible_sessions(connection: Connection) -> None:
    if not may_see_sessions(connection):
        raise ServerError(
            "the role may not see other sessions",
            hint="GRANT pg_read_all_stats TO the role, or connect as a superuser",
        )


def _counts_of(watched: Sequence[TrafficWindow]) -> tuple[int, Counter[tuple[int, str]]]:
    """Return the number of transactions, and the samples by statement and wait event."""
    waits = Counter[tuple[int, str]]()
    for one in watched:
        waits.update(one.looks.statements)
    return sum(one.transactions for one in watched), waits


def _counted(
    watched: Sequence[TrafficWindow], counts: Sequence[PerfCounts | None], events: Mapping[str, str]
) -> Microarchitecture | None:
    """Return the figures of the windows in which all sessions were counted; None without such windows.

    The hardware counters miss a session that began in a window, although its transactions are counted.
    """
    both = zip(watched, counts, strict=True)
    windows = [CountedWindow(its, one.transactions) for one, its in both if its is not None and not one.begun]
    return of_hardware(windows, events) if windows else None


def _program(postmaster: Fact[int]) -> Path | None:
    """Return the file of the server's program; None if its processes are not visible or not readable."""
    if isinstance(postmaster.value, Unknown):
        return None
    try:
        return Path(f"/proc/{postmaster.value}/exe").readlink()
    except OSError:
        return None


def _on_this_host(postmaster: Fact[int], own: int) -> Fact[int]:
    """Return the postmaster; Unknown if the server is in another PID namespace."""
    if isinstance(postmaster.value, Unknown) or own in children(postmaster.value):
        return postmaster
    return unknown("it runs in a container with its own process IDs", postmaster.source)


def _advance(progress: Progress, before_s: float, whole_s: float, passed_s: float) -> None:
    progress.advance(before_s + passed_s, whole_s)


def _own_cpu_s(postmaster: Fact[int], own: int) -> float:
    """Return the CPU time of this process, of its terminated children, and of the profile's session."""
    ours = sum(os.times()[:4])
    return ours + (cpu_ns(own) or 0) / 1e9 if postmaster.is_known else ours


@contextmanager
def _opened_recordings(scratch: Path, postmaster: Fact[int]) -> Iterator[Recordings]:
    if isinstance(postmaster.value, Unknown):
        yield Recordings(scratch, one_off_account())
        return
    pids = (postmaster.value, *children(postmaster.value))
    with open_recordings(scratch, pids, _SAMPLES_PER_S, is_traced=False) as opened:
        yield opened


def _remarks(watched: Sequence[TrafficWindow], postmaster: Fact[int]) -> Iterator[str]:
    if isinstance(postmaster.value, Unknown):
        yield f"no process data: the server is not proven to run on this host: {postmaster.value.reason}"
    elif any(one.added is None for one in watched):
        begun = sum(one.begun for one in watched)
        yield f"no CPU time: {begun:,} sessions began in the windows, and that of ended sessions is unknown"
    if any(one.in_transactions_s is not None and one.uncounted_s is None for one in watched):
        yield (
            "for clients with the extended protocol, which many drivers use, a transaction takes longer than "
            "shown: the server does not count the time of Parse and Bind, and there are no samples of it"
        )
    looks = sum(one.looks.looks for one in watched)
    yield (
        "the server counts transactions and sessions' time in them, of all databases; "
        f"{looks} samples of sessions show what they wait for"
    )


def _cost(share: float) -> str:
    return f"while watching, pgdyno used {numbers.share(share, 1)} of a CPU, including its session"
