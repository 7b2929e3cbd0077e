"""Records of a step and their tables: clients, waits, stalls, counters. Pure.

A table is None if nothing was recorded for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from pgdyno.base import numbers
from pgdyno.base.text import sentence
from pgdyno.measure.view.series import blocks_of, means, metrics_of, variants_of
from pgdyno.measure.view.wording import metric_of
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import METRICS
from pgdyno.model.experiments.step_record import RoleRecord, StallCause, StepRecord
from pgdyno.report.charts.rates import RateLine, RatePoint, RateStrip
from pgdyno.report.elements.tables import NOTHING, Table, columns

_OWN_ROLES = {"rows": "insert", "queries": "query"}
_PERCENTILES = {"p50": "p50", "p95": "p95", "p99": "p99", "p999": "p99.9", "max": "longest"}
_ALWAYS = frozenset(
    {
        *("num_timed", "num_requested", "checkpoints_timed", "checkpoints_req"),
        *("vacuum_count", "autovacuum_count", "autoanalyze_count"),
    }
)
"""Counters, by the last part of their name, that are shown if they are not zero: few events, much work."""

_UNINFORMATIVE = frozenset({"session_time", "active_time", "idle_in_transaction_time"})
"""Session times: they follow from a step's duration and its clients."""

_MOST_COUNTERS = 10
_WORTH_SHOWING = 100.0  # smaller differences of a counter explain nothing; arbitrary
_MOST_STALLS = 8


@dataclass(frozen=True)
class Recorded:
    """One variant in one round of a step. Rounds count from 1."""

    variant: str
    round: int
    record: StepRecord


def recorded(experiment: Experiment, workload: str) -> tuple[Recorded, ...]:
    """Return the records of all valid blocks, by variant and round, the baseline first."""
    order = variants_of(experiment)
    found = [
        Recorded(arm.variant, trial.round, arm.step)
        for trial, block in blocks_of(experiment, workload)
        for arm in block.arms
        if arm.step is not None and arm.variant in order and not block.void_for(arm.variant)
    ]
    return tuple(sorted(found, key=lambda one: (order.index(one.variant), one.round)))


def of_variant(records: Iterable[Recorded], variant: str) -> list[StepRecord]:
    """Return one variant's records, by round."""
    return [one.record for one in records if one.variant == variant]


def mean_of(records: Iterable[StepRecord], value: Callable[[StepRecord], float | None]) -> float | None:
    """Return the mean over the rounds that have a value; None if none has."""
    values = [found for record in records if (found := value(record)) is not None]
    return fmean(values) if values else None


def role_of(record: StepRecord, name: str) -> RoleRecord | None:
    """Return the role of this name; None if the step has no such role."""
    return next((role for role in record.roles if role.name == name), None)


def fairness(role: RoleRecord) -> float | None:
    """Return the slowest client's rate relative to the fastest's; None for fewer than two clients.

    A client's rate covers the time until its last transaction ended.
    """
    rates = [client.transactions / client.ended_s for client in role.clients if client.ended_s > 0]
    return min(rates) / max(rates) if len(rates) > 1 and max(rates) > 0 else None


def rate_strips(experiment: Experiment, records: Iterable[Recorded]) -> tuple[RateStrip, ...]:
    """Return every variant's rate over time, in rows or queries.

    A step with fewer transactions than intervals has no rate over time and is omitted.
    """
    found = list(records)
    places = {variant.name: place for place, variant in enumerate(experiment.variants)}
    strips = []
    for variant in dict.fromkeys(one.variant for one in found):
        lines = tuple(
            RateLine(one.round, points, one.record.stalls)
            for one in found
            if one.variant == variant and (points := _points(one.record))
        )
        if lines:
            strips.append(RateStrip(variant, places[variant], lines))
    return tuple(strips)


def _points(record: StepRecord) -> tuple[RatePoint, ...]:
    name = _OWN_ROLES.get(record.operations, record.operations)
    role = role_of(record, name)
    if role is None or role.transactions < len(record.intervals) or len(record.intervals) < 2:
        return ()
    each = record.completed / role.transactions
    return tuple(
        RatePoint(one.start_s, one.length_s, one.transactions.get(name, 0) * each / one.length_s)
        for one in record.intervals
        if one.length_s > 0
    )


def metric_table(experiment: Experiment, workload: str, records: Sequence[Recorded]) -> Table | None:
    """Return the means of all metrics except latencies, which are in ``client_table``."""
    variants, operation = variants_of(experiment), experiment.operations.get(workload)
    measured = metrics_of(experiment, workload)
    rows = []
    for name in [name for name in METRICS if name in measured and not name.startswith("latency_")]:
        metric, of = metric_of(name, operation), means(experiment, workload, name)
        cells = (NOTHING if (mean := of[v]) is None else numbers.quantity(metric, mean) for v in variants)
        rows.append((sentence(metric.title), *cells))
    dead = [mean_of(of_variant(records, v), lambda record: record.dead_tuples) for v in variants]
    if any(mean is not None for mean in dead):
        shown = (NOTHING if mean is None else numbers.number(mean) for mean in dead)
        rows.append(("Dead rows when the step began", *shown))
    return _table("Figures, means over the rounds", ("Figure", *variants), rows)


def client_table(records: Sequence[Recorded], variants: Sequence[str]) -> Table | None:
    """Return rate, latency, fairness and failures of the clients of every role.

    Latencies are means over the rounds, except the longest, which is the maximum over all rounds.
    """
    all_roles = [role for one in records for role in one.record.roles]
    has_failures = any({**role.retries, **role.errors} for role in all_roles)
    rows = []
    for name in dict.fromkeys(role.name for role in all_roles):
        for variant in variants:
            own = of_variant(records, variant)
            if any(role_of(record, name) for record in own):
                failures = (_failures(own, name),) if has_failures else ()
                rows.append((f"{name}, {variant}", *_client_cells(own, name), *failures))
    heads = ("Clients", "Transactions/s", *_PERCENTILES.values(), "late p99", "Slowest client")
    caption = (
        "Clients: latencies in ms from the intended start; late is the delay of the real start; the slowest "
        "client's rate is relative to the fastest's"
    )
    return _table(caption, (*heads, *(("Failures",) if has_failures else ())), rows)


def wait_table(records: Sequence[Recorded], variants: Sequence[str]) -> Table | None:
    """Return the waits of busy backends, as shares of the samples, most frequent first."""
    total: Counter[str] = Counter()
    for one in records:
        total.update(one.record.waits)
    kinds = [kind for kind, _ in total.most_common()]
    rows = []
    for variant in variants:
        own = [record for record in of_variant(records, variant) if record.wait_samples]
        if own:
            shares = (fmean(record.waits.get(kind, 0.0) for record in own) for kind in kinds)
            samples = sum(record.wait_samples for record in own)
            rows.append((variant, *(numbers.share(share, 1) for share in shares), f"{samples:,}"))
    caption = "Waits of busy server processes, share of the samples; CPU: not waiting"
    return _table(caption, ("Variant", *kinds, "Samples"), rows)


def stall_table(records: Sequence[Recorded], variants: Sequence[str]) -> Table | None:
    """Return the number and duration of every variant's stalls, by concurrent activity."""
    stalls = [(one.variant, stall) for one in records for stall in one.record.stalls]
    causes = [cause for cause in StallCause if any(stall.cause is cause for _, stall in stalls)]
    rows = []
    for variant in variants if stalls else ():
        own = [stall for name, stall in stalls if name == variant]
        lengths = {c: sum(s.end_s - s.start_s for s in own if s.cause is c) for c in causes}
        rounds = len(of_variant(records, variant))
        seconds = (numbers.duration(length_s) for length_s in (sum(lengths.values()), *lengths.values()))
        rows.append((variant, str(rounds), str(len(own)), *seconds))
    caption = "Stalls: intervals below half of the step's median rate, total of all rounds"
    return _table(caption, ("Variant", "Rounds", "Stalls", "Total", *(f"during {c}" for c in causes)), rows)


def stall_list(records: Sequence[Recorded]) -> tuple[str, ...]:
    """Return the longest stalls in words, with the evidence for their cause."""
    found = [(one, stall) for one in records for stall in one.record.stalls]
    longest = sorted(found, key=lambda pair: pair[1].start_s - pair[1].end_s)[:_MOST_STALLS]
    return tuple(
        f"{one.variant}, round {one.round}, from {numbers.duration(stall.start_s)} on for "
        f"{numbers.duration(stall.end_s - stall.start_s)}: {stall.cause}: {stall.why}"
        for one, stall in longest
    )


def counter_table(records: Sequence[Recorded], variants: Sequence[str], operation: str) -> Table | None:
    """Return the counters that differ most per operation between variants; checkpoints and vacuums first."""
    names = dict.fromkeys(name for one in records for name in one.record.counters)
    by_variant = [of_variant(records, variant) for variant in variants]
    completed = [mean_of(own, lambda record: record.completed) for own in by_variant]
    of = {name: [_counted(own, name) for own in by_variant] for name in names}
    rows = [
        (name, *(NOTHING if mean is None else numbers.number(mean) for mean in of[name]))
        for name in chosen_counters(of, completed)
    ]
    caption = (
        f"Counters that differ most per {operation}; differences over the whole step, means over the rounds"
    )
    return _table(caption, ("Counter", *variants), rows)


def chosen_counters(of: Mapping[str, Sequence[float | None]], completed: Sequence[float | None]) -> list[str]:
    """Return the counters to show: checkpoints and vacuums first, then by difference between variants.

    Shapes: ``completed`` and every value of ``of`` have one element per variant, its mean. Variants that lack
    a counter are ignored.
    """
    always = [name for name, means in of.items() if _last(name) in _ALWAYS and any(means)]
    others = [
        name
        for name, means in of.items()
        if name not in always
        and _last(name) not in _UNINFORMATIVE
        and max((mean for mean in means if mean is not None), default=0.0) >= _WORTH_SHOWING
    ]
    others.sort(key=lambda name: (-_difference(of[name], completed), name))
    return [*always, *others[:_MOST_COUNTERS]]


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _difference(values: Sequence[float | None], completed: Sequence[float | None]) -> float:
    """Return the relative difference of values per operation: 0 for equal values, 1 if one is zero."""
    each = [v / of for v, of in zip(values, completed, strict=True) if v is not None and of]
    if not each or max(each) <= 0:
        return 0.0
    return (max(each) - min(each)) / (max(each) + min(each))


def _counted(records: Sequence[StepRecord], counter: str) -> float | None:
    return mean_of(records, lambda record: record.counters.get(counter))


def _client_cells(records: Sequence[StepRecord], name: str) -> tuple[str, ...]:
    roles = [(record, role) for record in records if (role := role_of(record, name))]
    rates = [role.transactions / record.running_s for record, role in roles if record.running_s > 0]
    only = [role for _, role in roles]
    shares = [share for role in only if (share := fairness(role)) is not None]
    return (
        _number(rates),
        *(_latency(only, percentile) for percentile in _PERCENTILES),
        _number([role.lag_ms["p99"] for role in only if "p99" in role.lag_ms]),
        numbers.share(fmean(shares), 1) if shares else NOTHING,
    )


def _latency(roles: Sequence[RoleRecord], percentile: str) -> str:
    values = [role.latency_ms[percentile] for role in roles if percentile in role.latency_ms]
    return _number([max(values)] if percentile == "max" and values else values)


def _number(values: Sequence[float]) -> str:
    return numbers.plain(fmean(values)) if values else NOTHING


def _failures(records: Sequence[StepRecord], name: str) -> str:
    """Return the numbers of retried and failed transactions by SQLSTATE, total of all rounds."""
    roles = [role for record in records if (role := role_of(record, name))]
    kinds = (([role.retries for role in roles], " repeated"), ([role.errors for role in roles], ""))
    parts = []
    for events, words in kinds:
        total: Counter[str] = Counter()
        for by_state in events:
            total.update(by_state)
        parts += [f"{count} × {state}{words}" for state, count in sorted(total.items()) if count]
    return ", ".join(parts) or "0"


def _table(caption: str, titles: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table | None:
    """Return a table with labels in the first column and numbers in the others; None without rows."""
    return Table(caption, columns(*titles, numbers_from=1), tuple(rows)) if rows else None
