"""Compute a profile from an arm's cycles; remedies, with the upper bounds of their gains (Amdahl)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pgdyno.profile import parts
from pgdyno.profile.account import account, background_us, kernel_entries, latency, slowdown
from pgdyno.profile.cycles import Cycle, Window
from pgdyno.profile.records.profile_record import (
    SHOWN_SHARE,
    AccountGroup,
    AccountLine,
    Remedy,
    StackCount,
    StatementTime,
    TransactionProfile,
)


@dataclass(frozen=True)
class Profiled:
    """The subject of a profile.

    ``sessions`` is the mean number of sessions in transactions; ``cpus`` is the number of the server's CPUs.
    """

    variant: str
    workload: str
    sessions: float
    cpus: int


def sum_up(
    profiled: Profiled,
    cycles: Sequence[Cycle],
    statements: tuple[StatementTime, ...],
    remarks: tuple[str, ...],
) -> TransactionProfile:
    """Return the profile of cycles, with advice."""
    plain = [one.plain for one in cycles]
    seconds = sum(one.seconds for one in plain)
    found = TransactionProfile(
        variant=profiled.variant,
        workload=profiled.workload,
        sessions=profiled.sessions,
        seconds=seconds,
        transactions_per_s=sum(one.transactions for one in plain) / seconds,
        latency=latency(cycles),
        lines=account(cycles),
        kernel=kernel_entries(cycles),
        statements=statements,
        background_us=background_us(cycles),
        cpu_share=_cpu_share(plain, profiled.cpus),
        sampling_slowdown=slowdown(cycles),
        remarks=remarks,
        stacks=_stacks(cycles),
    )
    return replace(found, advice=tuple(advice(found)))


def _stacks(cycles: Sequence[Cycle]) -> tuple[StackCount, ...]:
    """Return the stacks of all cycles, sorted by their frames, outermost first."""
    counts: Counter[tuple[str, ...]] = Counter()
    for cycle in cycles:
        if cycle.sampled is not None:
            counts.update(cycle.sampled.stacks)
    found = (StackCount(frames[::-1], samples) for frames, samples in counts.items())
    return tuple(sorted(found, key=lambda one: one.frames))


def _cpu_share(windows: Sequence[Window], cpus: int) -> float | None:
    added = [one.added for one in windows if one.added is not None]
    return (
        sum(one.busy for one in added) / 1e9 / sum(one.seconds for one in windows) / cpus if added else None
    )


SATURATED = 0.9
"""CPU utilisation above which a server counts as limited by CPU time. Arbitrary."""


@dataclass(frozen=True)
class _Cure:
    """``levers`` are names of pgdyno's levers. ``saves`` is the most of the lines' time they save."""

    text: str
    levers: tuple[str, ...] = ()
    saves: float = 1.0


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
    "PostgreSQL's own code: use a build for this CPU and workload",
    ("optimised_build", "huge_page_pool"),
    saves=1 / 3,  # the largest seen: 32.5 % of the CPU time (docs/results/builds.md)
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


def most_gain(profile: TransactionProfile, lines: Sequence[AccountLine], saves: float = 1.0) -> float:
    """Return the gain in throughput if lines took less time, by the share ``saves``: 0.1 is 10%.

    If CPUs are saturated, a transaction also waits for the work of all others. Then the lines' share of the
    CPU time decides, and lines other than work of the server gain nothing.
    """
    whole = profile.latency.us
    if profile.cpu_share is not None and profile.cpu_share >= SATURATED:
        lines = [one for one in lines if one.group is AccountGroup.SERVER]
        whole = sum(one.time.us for one in profile.lines if one.group is AccountGroup.SERVER)
    share = sum(one.time.us for one in lines) / whole if whole else 0.0
    return 1 / (1 - min(share * saves, 0.99)) - 1


def _of_lines(profile: TransactionProfile, remedy: _Cure, lines: Sequence[AccountLine]) -> Remedy:
    named = tuple(one.name for one in sorted(lines, key=lambda one: -one.time.us))
    return Remedy(named, most_gain(profile, lines, remedy.saves), remedy.levers, remedy.text)


def _remedy(line: AccountLine) -> _Cure | None:
    if line.group is AccountGroup.SERVER:
        return _OF_PARTS.get(line.name, _CODE)
    if line.group is AccountGroup.WAITING:
        return next((one for prefix, one in _OF_WAITS if line.name.startswith(prefix)), None)
    return _OF_GROUPS[line.group]
