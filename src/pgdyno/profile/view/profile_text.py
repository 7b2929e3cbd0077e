"""A profile as text, for terminals."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.profile.account import difference
from pgdyno.profile.records.profile_record import (
    AccountGroup,
    AccountLine,
    Time,
    TransactionProfile,
)
from pgdyno.report.elements.tables import NOTHING, Table, columns

_MOST_ROWS = 12  # of kernel entries
_NAMED = 4  # lines in a piece of advice
_LEAST_SHARE = 0.005  # of a transaction's time; shorter lines are combined


def headline(profile: TransactionProfile) -> str:
    """Return the sentence above the account."""
    left, us = profile.unaccounted_share, profile.latency.us
    latency = f"{us / 1000:,.2f} ms" if us >= 1000 else f"{us:,.0f} µs"
    remainder = "is counted twice" if round(left, 2) < 0 else "is not accounted for"
    busy = "" if profile.cpu_share is None else f"the server's CPUs are {profile.cpu_share:.0%} busy; "
    return (
        f"{profile.variant}, {profile.workload}, {profile.sessions:.3g} sessions: "
        f"{profile.transactions_per_s:,.0f} transactions per second, {latency} each; "
        f"{busy}{abs(left):.0%} {remainder}"
    )


def account_table(profile: TransactionProfile) -> Table:
    """Return the account: lines by group, the unaccounted time, and the total."""
    lines = [line for group in AccountGroup for line in shown_lines(profile, group)]
    rows = [_row(profile, line) for line in lines]
    left = f"{profile.unaccounted_us:z,.1f}", NOTHING, f"{profile.unaccounted_share:z.1%}", NOTHING
    whole = f"{profile.latency.us:,.1f}", interval(profile.latency), "100.0%", NOTHING
    return Table(
        "Where a transaction's time goes",
        columns("Part", "µs", "95 % interval", "share", "in the kernel", numbers_from=1),
        (*rows, ("not accounted for", *left), ("a transaction", *whole)),
        totals=1,
    )


def shown_lines(profile: TransactionProfile, group: AccountGroup) -> Iterator[AccountLine]:
    """Yield a group's lines; short ones are combined in one line."""
    short = []
    for line in profile.of_group(group):
        if line.time.us >= _LEAST_SHARE * profile.latency.us:
            yield line
        else:
            short.append(line)
    if short:
        kernel = [one.kernel_us for one in short if one.kernel_us is not None]
        whole = Time(sum(one.time.us for one in short))
        yield AccountLine(group, "others", whole, short[0].source, kernel_us=sum(kernel) if kernel else None)


def _row(profile: TransactionProfile, line: AccountLine) -> tuple[str, ...]:
    kernel = NOTHING if line.kernel_us is None else f"{line.kernel_us:,.1f}"
    share = f"{line.time.us / profile.latency.us:.1%}"
    return (f"{line.group}: {line.name}", f"{line.time.us:,.1f}", interval(line.time), share, kernel)


def comparison_table(one: TransactionProfile, other: TransactionProfile) -> Table:
    """Return the accounts of two variants side by side, with the difference of each line."""
    least_us = _LEAST_SHARE * max(one.latency.us, other.latency.us)
    rows = []
    for group in AccountGroup:
        before, after = ({line.name: line for line in each.of_group(group)} for each in (one, other))
        for name in dict.fromkeys((*before, *after)):
            pair = before.get(name), after.get(name)
            if max(line.time.us for line in pair if line) >= least_us:
                rows.append(_compared(f"{group}: {name}", *pair))
    for name, us, other_us in (
        ("not accounted for", one.unaccounted_us, other.unaccounted_us),
        ("a transaction", one.latency.us, other.latency.us),
    ):
        rows.append((name, f"{us:z,.1f}", f"{other_us:z,.1f}", f"{other_us - us:+z,.1f}", NOTHING))
    titles = (f"{one.variant}, µs", f"{other.variant}, µs", "difference, µs", "95 % interval")
    heads = columns("Part", *titles, numbers_from=1)
    return Table("Where a transaction's time goes, compared", heads, tuple(rows), totals=1)


def _compared(name: str, one: AccountLine | None, other: AccountLine | None) -> tuple[str, ...]:
    change = difference(one, other)
    values = (NOTHING if line is None else f"{line.time.us:,.1f}" for line in (one, other))
    return (name, *values, f"{change.us:+z,.1f}", interval(change))


def kernel_table(profile: TransactionProfile) -> Table:
    """Return the sessions' CPU time in the kernel by way of entry."""
    heads = columns("Kernel entry", "µs", "95 % interval", numbers_from=1)
    rows = tuple((one.name, f"{one.time.us:,.1f}", interval(one.time)) for one in profile.kernel[:_MOST_ROWS])
    return Table("CPU time of the server's sessions in the kernel, per transaction", heads, rows)


def advice_lines(profile: TransactionProfile) -> Iterator[str]:
    """Yield a sentence per remedy."""
    for one in profile.advice:
        levers = f" ({', '.join(one.levers)})" if one.levers else ""
        named = ", ".join(one.lines[:_NAMED]) + (", …" if len(one.lines) > _NAMED else "")
        yield f"At most {one.gain:+.0%}: {one.text}{levers}. Lines concerned: {named}"


def notes(profile: TransactionProfile) -> Iterator[str]:
    """Yield the sources of lines, the overhead of measuring, and gaps."""
    sources: dict[str, dict[str, None]] = {}
    for line in profile.lines:
        sources.setdefault(line.source, {})[line.group] = None
    yield "Sources: " + "; ".join(f"{', '.join(groups)}: {source}" for source, groups in sources.items())
    if profile.stacks and (slower := profile.sampling_slowdown) is not None:
        yield (
            f"Stack sampling changed the latency by {slower.us:+,.0f} µs ({interval(slower)}); CPU time and "
            "run queue time are from windows without sampling"
        )
    if profile.background_us:
        yield f"The server's other processes used {profile.background_us:,.1f} µs of CPU time per transaction"
    yield from profile.remarks


def interval(time: Time) -> str:
    """Return the confidence interval as text, or a placeholder if there is none."""
    if time.low_us is None or time.high_us is None:
        return NOTHING
    return f"{time.low_us:z,.1f} … {time.high_us:z,.1f}"
