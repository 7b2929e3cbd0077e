"""The account of a transaction: its time, divided by activities.

At any moment, a session of the server is in one of these states. The counters of the plain windows give the
time in each state; the samples and traces of the other windows divide it further:

    on a CPU           CPU time of the sessions, divided by parts with samples of their stacks
    runnable           queue: its CPU runs another session or something else; waking up: its CPU was idle
    waits in server    mean number of sessions seen waiting for each event
    waits for client   the load generator's CPU time, and the time its threads waited for a CPU
    stolen             the hypervisor ran something else on the server's CPUs

The rest of the transaction's time is unaccounted for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.profile.cycles import Cycle, Window
from pgdyno.profile.records.profile_record import AccountGroup, AccountLine, KernelEntry, Time
from pgdyno.profile.scheduling import Delays
from pgdyno.stats.nested import mean_amount

LEVEL = 0.95
UNSAMPLED = "work of sessions"
UNSEEN = "sessions that work, or wait for a CPU"
_SAMPLES = "samples of stacks (perf, cpu-clock)"
_TRACE = "scheduler's trace (perf), /proc/PID/schedstat"
_COUNTERS = "/proc/PID/schedstat"
_WAITS = "pg_stat_activity"
_STEAL = "/proc/stat"
_MOST_LOST = 0.05  # arbitrary: a trace with a larger share of lost wakeups is not used
_SESSIONS, _GENERATOR = "sessions", "load generator"


def mean_time(values: Sequence[float]) -> Time:
    """Return the mean of one value per cycle, with its confidence interval if there are several cycles."""
    if len(values) < 2:
        return Time(values[0])
    amount = mean_amount(values, LEVEL)
    return Time(amount.mean, amount.low, amount.high)


def account(cycles: Sequence[Cycle]) -> tuple[AccountLine, ...]:
    """Return the lines of an account, without lines of zero time."""
    lines = (*_client(cycles), *_delays(cycles), *_work(cycles), *_waits(cycles), *_stolen(cycles))
    return tuple(line for line in lines if line.time.us > 0)


def kernel_entries(cycles: Sequence[Cycle]) -> tuple[KernelEntry, ...]:
    """Return the sessions' CPU time in the kernel by way of entry, longest first."""
    names = dict.fromkeys(name for cycle in cycles if cycle.sampled for name in cycle.sampled.entries)
    found = (KernelEntry(name, mean_time([_entry_us(one, name) for one in cycles])) for name in names)
    return tuple(sorted(found, key=lambda entry: -entry.time.us))


def background_us(cycles: Sequence[Cycle]) -> float:
    """Return the CPU time of the server's other processes, in µs per transaction."""
    return mean_time([one.plain.us("background_cpu") for one in cycles]).us


def latency(cycles: Sequence[Cycle]) -> Time:
    """Return a transaction's latency, as measured by its client."""
    return mean_time([one.plain.latency_us for one in cycles])


def slowdown(cycles: Sequence[Cycle]) -> Time | None:
    """Return the additional latency during sampling; None without sampled windows."""
    longer = [
        one.sampled_window.latency_us - one.plain.latency_us
        for one in cycles
        if one.sampled_window is not None
    ]
    return mean_time(longer) if longer else None


def _line(
    group: AccountGroup, name: str, source: str, values: Sequence[float], kernel_us: float | None = None
) -> AccountLine:
    return AccountLine(group, name, mean_time(values), source, tuple(values), kernel_us)


def _client(cycles: Sequence[Cycle]) -> Iterator[AccountLine]:
    for event in dict.fromkeys(event for cycle in cycles for event in cycle.client_waits):
        yield _line(
            AccountGroup.CLIENT,
            event,
            _WAITS,
            [_session_us(one, one.client_waits.get(event, 0.0)) for one in cycles],
        )
    values = [one.plain.us("client_cpu") for one in cycles]
    yield _line(AccountGroup.CLIENT, "load generator's CPU time", _COUNTERS, values)


def _delays(cycles: Sequence[Cycle]) -> Iterator[AccountLine]:
    """Yield the time in which threads were runnable but did not run, divided by reason if traced."""
    sessions = [one.plain.us("session_queue") for one in cycles]
    generator = [one.plain.us("client_queue") for one in cycles]
    traced = [cycle.traced for cycle in cycles if cycle.traced]
    if len(traced) < len(cycles):
        yield _line(AccountGroup.QUEUE, f"{_SESSIONS}, waiting for a CPU", _COUNTERS, sessions)
        yield _line(AccountGroup.QUEUE, f"{_GENERATOR}, waiting for a CPU", _COUNTERS, generator)
        return
    for owner, queued_us, traces in (
        (_SESSIONS, sessions, [(one.window, one.server, "session_queue") for one in traced]),
        (_GENERATOR, generator, [(one.window, one.client, "client_queue") for one in traced]),
    ):
        if max(delays.lost_share for _, delays, _ in traces) > _MOST_LOST:
            yield _line(AccountGroup.QUEUE, f"{owner}, waiting for a CPU", _COUNTERS, queued_us)
        else:
            yield from _split(owner, queued_us, traces)


def _split(
    owner: str, queued_us: Sequence[float], traced: Sequence[tuple[Window, Delays, str]]
) -> Iterator[AccountLine]:
    """Divide the run queue time of the plain windows in the proportions of the traced windows.

    The kernel's counter starts when a thread joins a run queue: it excludes the interrupt that wakes an idle
    CPU, which comes earlier.
    """
    waking = [delays.waking_ns / window.transactions / 1000 for window, delays, _ in traced]
    queue = [
        us * min(1.0, delays.queue_ns / window.transactions / 1000 / counted_us) if counted_us else 0.0
        for us, (window, delays, counter) in zip(queued_us, traced, strict=True)
        for counted_us in (window.us(counter),)
    ]
    yield _line(AccountGroup.WAKING, f"{owner}, on an idle CPU", _TRACE, waking)
    yield _line(AccountGroup.QUEUE, f"{owner}, behind others", _TRACE, queue)


def _work(cycles: Sequence[Cycle]) -> Iterator[AccountLine]:
    if any(cycle.plain.added is None for cycle in cycles):
        working = [_session_us(one, one.working) for one in cycles]
        yield _line(AccountGroup.SERVER, UNSEEN, _WAITS, working)
        return
    if any(cycle.sampled is None or not cycle.sampled.count for cycle in cycles):
        yield _line(AccountGroup.SERVER, UNSAMPLED, _COUNTERS, [_cpu_us(one) for one in cycles])
        return
    for part in dict.fromkeys(part for cycle in cycles if cycle.sampled for part in cycle.sampled.parts):
        whole, in_kernel = zip(*(_part_us(one, part) for one in cycles), strict=True)
        yield _line(AccountGroup.SERVER, part, _SAMPLES, whole, mean_time(in_kernel).us)


def _cpu_us(cycle: Cycle) -> float:
    return cycle.plain.us("session_cpu")


def _part_us(cycle: Cycle, part: str) -> tuple[float, float]:
    """Return a part's time and its time in the kernel, in µs."""
    assert cycle.sampled is not None  # noqa: S101 — checked by the caller
    each_us = _cpu_us(cycle) / cycle.sampled.count
    return each_us * cycle.sampled.parts.get(part, 0), each_us * cycle.sampled.in_kernel.get(part, 0)


def _entry_us(cycle: Cycle, name: str) -> float:
    if cycle.sampled is None or not cycle.sampled.count:
        return 0.0
    return _cpu_us(cycle) * cycle.sampled.entries.get(name, 0) / cycle.sampled.count


def _waits(cycles: Sequence[Cycle]) -> Iterator[AccountLine]:
    for event in dict.fromkeys(event for cycle in cycles for event in cycle.waits):
        yield _line(
            AccountGroup.WAITING,
            event,
            _WAITS,
            [_session_us(one, one.waits.get(event, 0.0)) for one in cycles],
        )


def _session_us(cycle: Cycle, sessions: float) -> float:
    """Return the time per transaction, in µs, that corresponds to a mean number of sessions."""
    window = cycle.sampled_window or cycle.plain
    return 1e6 * sessions / window.rate


def _stolen(cycles: Sequence[Cycle]) -> Iterator[AccountLine]:
    values = [one.plain.us("stolen") for one in cycles]
    yield _line(AccountGroup.STOLEN, "by the hypervisor", _STEAL, values)


def difference(one: AccountLine | None, other: AccountLine | None) -> Time:
    """Return the difference of a line between two profiles, by cycle, as other − one; a missing line is 0."""
    assert one or other  # noqa: S101 — the name is from one of them
    before = one.by_cycle if one else (0.0,) * len(other.by_cycle if other else ())
    after = other.by_cycle if other else (0.0,) * len(before)
    return mean_time([b - a for a, b in zip(before, after, strict=True)])
