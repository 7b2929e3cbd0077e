"""Remedies for the lines of an account, and the upper bounds of their gains (Amdahl's law)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgdyno.profile import parts
from pgdyno.profile.records.profile_record import (
    SHOWN_SHARE,
    AccountGroup,
    AccountLine,
    Remedy,
    TransactionProfile,
)

SATURATED = 0.9
"""CPU utilisation above which a server counts as limited by CPU time. Arbitrary."""


@dataclass(frozen=True)
class _Cure:
    """``levers`` are names of pgdyno's levers."""

    text: str
    levers: tuple[str, ...] = ()


_PLANS = _Cure(
    "statements are planned at each execution: use generic plans, or named prepared statements",
    ("plan_cache_mode",),
)
_FLUSHES = _Cure(
    "commits write WAL and wait for the disk", ("wal_device", "commit_delay", "wal_buffers", "wal_ready")
)
_MESSAGES = _Cure(
    "kernel work for messages and context switches: send fewer messages, or make switches cheaper",
    ("halt_polling", "sched_batch"),
)
_CODE = _Cure(
    "PostgreSQL's own code: use a build for this CPU and workload", ("optimised_build", "huge_page_pool")
)
_READS = _Cure(
    "pages are read from the disk, or copied from the page cache",
    ("shared_buffers", "io_method", "effective_io_concurrency"),
)
_OF_PARTS = {
    parts.PLANNING: _PLANS,
    parts.PARSING: _PLANS,
    parts.WAL_FLUSH: _FLUSHES,
    parts.WAL_RECORDS: _Cure(
        "WAL and its full-page images: make checkpoints less frequent",
        ("max_wal_size", "checkpoint_timeout", "wal_compression"),
    ),
    parts.PAGES_READ: _READS,
    parts.SENDING: _MESSAGES,
    parts.RECEIVING: _MESSAGES,
}
_OF_GROUPS = {
    AccountGroup.WAKING: _Cure(
        "idle CPUs sleep, and waking them takes time", ("halt_polling", "idle_states")
    ),
    AccountGroup.QUEUE: _Cure("more sessions want to run than there are CPUs: pool connections, or add CPUs"),
    AccountGroup.STOLEN: _Cure("the hypervisor runs other machines: move, or use dedicated CPUs"),
    AccountGroup.CLIENT: _Cure("the program that uses the database"),
}
_OF_WAITS = (
    ("IO:Wal", _FLUSHES),
    ("IO:WAL", _FLUSHES),
    ("LWLock:WAL", _FLUSHES),
    ("IO:", _READS),
    ("Lock:", _Cure("transactions wait for each other's rows: make transactions shorter")),
    ("LWLock:", _Cure("sessions wait for each other in shared memory: run fewer at once")),
    ("IPC:", _Cure("server processes wait for each other")),
    ("Timeout:", _Cure("the server sleeps as configured or requested")),
)


def advice(profile: TransactionProfile) -> Iterator[Remedy]:
    """Yield a remedy for each set of lines with enough possible gain, the largest gain first."""
    lines: defaultdict[_Cure, list[AccountLine]] = defaultdict(list)
    for line in profile.lines:
        if (remedy := _remedy(line)) is not None:
            lines[remedy].append(line)
    found = (_of_lines(profile, remedy, its) for remedy, its in lines.items())
    yield from sorted((one for one in found if one.gain >= SHOWN_SHARE), key=lambda one: -one.gain)


def most_gain(profile: TransactionProfile, lines: Sequence[AccountLine]) -> float:
    """Return the gain in throughput if lines took no time, as a fraction: 0.1 is 10%.

    If CPUs are saturated, a transaction also waits for the work of all others. Then the lines' share of the
    CPU time decides, and lines other than work of the server gain nothing.
    """
    whole = profile.latency.us
    if profile.cpu_share is not None and profile.cpu_share >= SATURATED:
        lines = [one for one in lines if one.group is AccountGroup.SERVER]
        whole = sum(one.time.us for one in profile.lines if one.group is AccountGroup.SERVER)
    share = sum(one.time.us for one in lines) / whole if whole else 0.0
    return 1 / (1 - min(share, 0.99)) - 1


def _of_lines(profile: TransactionProfile, remedy: _Cure, lines: Sequence[AccountLine]) -> Remedy:
    named = tuple(one.name for one in sorted(lines, key=lambda one: -one.time.us))
    return Remedy(named, most_gain(profile, lines), remedy.levers, remedy.text)


def _remedy(line: AccountLine) -> _Cure | None:
    if line.group is AccountGroup.SERVER:
        return _OF_PARTS.get(line.name, _CODE)
    if line.group is AccountGroup.WAITING:
        return next((one for prefix, one in _OF_WAITS if line.name.startswith(prefix)), None)
    return _OF_GROUPS[line.group]
