"""The account of a transaction: its time, divided by activities.

Seen from a session of the server, which is at any moment in one of these states, of which the counters of the
plain windows give the size and samples and traces of the others the shares:

    on a CPU           CPU time of the sessions, split by the parts that samples of their stacks belong to
    could run          queue: its CPU runs another session, or something else; waking up: its CPU was idle
    waits in server    the mean number of sessions that were seen waiting for each event
    waits for client   the load generator's CPU time, and how long its threads waited for a CPU
    stolen             the hypervisor ran something else on the server's CPUs

What is left of the transaction's time is not accounted for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.profile.cycles import Cycle, Window
from pgdyno.profile.records.profile_record import AccountGroup, AccountLine, KernelEntry, Time
from pgdyno.profile.scheduling import Delays
from pgdyno.stats.amount import mean_amount

LEVEL = 0.95
UNSAMPLED = "work of sessions"
UNSEEN = "sessions that work, or wait for a CPU"
_SAMPLES = "samples of stacks (perf, cpu-clock)"
_TRACE = "scheduler's trace (perf), /proc/PID/schedstat"
_COUNTERS = "/proc/PID/schedstat"
_WAITS = "pg_stat_activity"
_STEAL = "/proc/stat"
_MOST_LOST = 0.05  # arbitrary: of a trace that lacks more wakings, delays are not taken
_SESSIONS, _GENERATOR = "sessions", "load generator"


def mean_time(values: Sequence[float]) -> Time:
    """Return the mean of one value per cycle, with its interval where there is more than one."""
    if len(values) < 2:
        return Time(values[0])
    amount = mean_amount(values, LEVEL)
    return Time(amount.mean, amount.low, amount.high)


def account(cycles: Sequence[Cycle]) -> tuple[AccountLine, ...]:
    """Return the lines of an account. Lines of nothing are left out."""
    lines = (*_client(cycles), *_delays(cycles), *_work(cycles), *_waits(cycles), *_stolen(cycles))
    return tuple(line for line in lines if line.time.us > 0)


def kernel_entries(cycles: Sequence[Cycle]) -> tuple[KernelEntry, ...]:
    """Return the sessions' CPU time in the kernel by how they came there, longest first."""
    names = dict.fromkeys(name for cycle in cycles if cycle.sampled for name in cycle.sampled.entries)
    found = (KernelEntry(name, mean_time([_entry_us(one, name) for one in cycles])) for name in names)
    return tuple(sorted(found, key=lambda entry: -entry.time.us))


def background_us(cycles: Sequence[Cycle]) -> float:
    """Return the CPU time of the server's other processes per transaction."""
    return mean_time([one.plain.us("background_cpu") for one in cycles]).us


def latency(cycles: Sequence[Cycle]) -> Time:
    """Return how long a transaction takes, as its client measures it."""
    return mean_time([one.plain.latency_us for one in cycles])


def slowdown(cycles: Sequence[Cycle]) -> Time | None:
    """Return how much longer transactions took while they were sampled."""
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
    """Yield the time in which threads could run, and did not. The trace tells the reasons apart."""
    sessions = [one.plain.us("session_queue") for one in cycles]
    generator = [one.plain.us("client_queue") for one in cycles]
    traced = [cycle.traced for cycle in cycles if cycle.traced]
    if len(traced) < len(cycles):
        yield _line(AccountGroup.QUEUE, f"{_SESSIONS}, waiting for a CPU", _COUNTERS, sessions)
        yield _line(AccountGroup.QUEUE, f"{_GENERATOR}, waiting for a CPU", _COUNTERS, generator)
        return
    for whose, queued_us, its in (
        (_SESSIONS, sessions, [(one.window, one.server, "session_queue") for one in traced]),
        (_GENERATOR, generator, [(one.window, one.client, "client_queue") for one in traced]),
    ):
        if max(delays.lost_share for _, delays, _ in its) > _MOST_LOST:
            yield _line(AccountGroup.QUEUE, f"{whose}, waiting for a CPU", _COUNTERS, queued_us)
        else:
            yield from _split(whose, queued_us, its)


def _split(
    whose: str, queued_us: Sequence[float], traced: Sequence[tuple[Window, Delays, str]]
) -> Iterator[AccountLine]:
    """Split the queue of the plain windows as the trace of its own windows shows it.

    The kernel's counter begins when a thread joins a queue: interrupting an idle CPU comes before that.
    """
    waking = [delays.waking_ns / window.transactions / 1000 for window, delays, _ in traced]
    queue = [
        us * min(1.0, delays.queue_ns / window.transactions / 1000 / counted_us) if counted_us else 0.0
        for us, (window, delays, counter) in zip(queued_us, traced, strict=True)
        for counted_us in (window.us(counter),)
    ]
    yield _line(AccountGroup.WAKING, f"{whose}, on an idle CPU", _TRACE, waking)
    yield _line(AccountGroup.QUEUE, f"{whose}, behind others", _TRACE, queue)


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
    """Return the time of a part, and how much of it passed in the kernel."""
    assert cycle.sampled is not None  # noqa: S101 — the caller has looked
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
    """Return the time per transaction of a mean number of sessions."""
    window = cycle.sampled_window or cycle.plain
    return 1e6 * sessions / window.rate


def _stolen(cycles: Sequence[Cycle]) -> Iterator[AccountLine]:
    values = [one.plain.us("stolen") for one in cycles]
    yield _line(AccountGroup.STOLEN, "by the hypervisor", _STEAL, values)


def difference(one: AccountLine | None, other: AccountLine | None) -> Time:
    """Return how much longer a line is in another profile than in one, cycle by cycle; a missing one is 0."""
    assert one or other  # noqa: S101 — one of them has the name
    before = one.by_cycle if one else (0.0,) * len(other.by_cycle if other else ())
    after = other.by_cycle if other else (0.0,) * len(before)
    return mean_time([b - a for a, b in zip(before, after, strict=True)])
