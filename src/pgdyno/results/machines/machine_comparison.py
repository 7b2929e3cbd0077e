"""Compares two machines on one experiment. Pure.

The result is the ratio of their results, and a list of all other differences.

The two were measured separately, so nothing cancels between them. The unit of inference is a round of each
machine, and the interval is Welch's for the difference of two means of log rates
(``stats.decision.decide_apart``). It describes these two machines at the time of measuring. It does not cover
other instances of the same type: machines sold under the same name differ.

Sources: Abedi, Brecht (2017), ICPE: common methods find differences between identical instances; Maricq et
al. (2018), OSDI: 835 servers of a few types.

All differences other than the machines are listed, heaviest first. Facts unknown on one side or both are
listed as unknown, never taken as equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pgdyno.base import numbers
from pgdyno.measure.records.recorded_facts import client_share, fact_at, frequency_mhz, stolen_share, sysctls
from pgdyno.measure.verdicts.analysis import verdict_metrics
from pgdyno.measure.verdicts.durability import breaches, warnings
from pgdyno.measure.verdicts.failures import (
    MOST_MORE,
    REQUIRED_BACKGROUND_SHARE,
    failed_transactions,
    missed_rate,
)
from pgdyno.model.experiments.experiment import Experiment, VoidThresholds
from pgdyno.model.experiments.failures import MOST_FAILED_SHARE
from pgdyno.model.experiments.machine_comparison import (
    A,
    B,
    ComparedMetric,
    DerivedRatio,
    Difference,
    MachineComparison,
    Side,
    Weight,
)
from pgdyno.model.experiments.metric import SERVER_CPU, THROUGHPUT, Metric
from pgdyno.model.experiments.verdict import Interval
from pgdyno.results.machines.difference_catalogue import ENTRIES, NAMED_SYSCTLS, Entry
from pgdyno.results.machines.machine_facts import frequency_warning, instance_warning, machine_facts
from pgdyno.results.machines.same_experiment import Common, common_part
from pgdyno.results.machines.setting_differences import setting_differences, variant_differences
from pgdyno.stats.decision import adjust, decide_apart
from pgdyno.stats.sample import Sample

_SECONDS_PER_HOUR = 3600
_MHZ_PER_GHZ = 1000
_DISTURBED = VoidThresholds().steal_share
"""The default limit: an experiment's own limit is higher if the machine was disturbed throughout."""
_SIMULATED = "SIMULATED: "
"""Prefix of the note on an experiment with made-up figures."""
_MOST_NAMED = 8


def compare_machines(
    a: Experiment, b: Experiment, prices: Mapping[str, float] | None = None
) -> MachineComparison:
    """Return the comparison of two machines; ``prices`` are in dollars per hour, by A and B.

    Raises: UsageError if the two did not run the same experiment.
    """
    common = common_part(a, b)
    metrics = _compared(a, b, common)
    facts = machine_facts(a, b)
    priced = prices or {}
    return MachineComparison(
        question=a.question if a.question == b.question else f"{a.question} / {b.question}",
        sides=(_side(A, a, b, priced), _side(B, b, a, priced)),
        metrics=metrics,
        per_frequency=tuple(_per_frequency(a, b, metrics)),
        per_price=tuple(_per_price(metrics, priced)),
        machine=facts,
        differences=(*common.unknown, *differences(a, b, common.variants)),
        warnings=tuple(_warnings(a, b, common, instance_warning(facts))),
        left_out=common.left_out,
    )


def _compared(a: Experiment, b: Experiment, common: Common) -> tuple[ComparedMetric, ...]:
    """Return every metric of every workload and variant, Holm-corrected for their number."""
    found = [
        one
        for workload in common.workloads
        for variant in common.variants
        for metric in verdict_metrics()
        if (one := _metric(a, b, workload, variant, metric)) is not None
    ]
    verdicts = adjust([one.verdict for one in found])
    return tuple(replace(one, verdict=verdict) for one, verdict in zip(found, verdicts, strict=True))


def _metric(
    a: Experiment, b: Experiment, workload: str, variant: str, metric: Metric
) -> ComparedMetric | None:
    """Return one comparison; None if neither side has the metric."""
    rounds = [_log_values(one, workload, variant, metric.name) for one in (a, b)]
    if not any(rounds):
        return None
    missed = [reason for side, one in ((A, a), (B, b)) for reason in _missed(side, one, workload, variant)]
    missed += _emulated(a, b)
    missed += _failed(a, b, workload, variant)
    missed += [f"{side}: {why}" for side, one in ((A, a), (B, b)) for why in breaches(one, variant)]
    of_a, of_b = ([], []) if missed else rounds
    verdict = decide_apart(
        of_b,
        of_a,
        workload=workload,
        metric=metric,
        variant=B,
        baseline=A,
        level=max(a.design.level, b.design.level),
        equivalence_margin=min(a.design.equivalence_margin, b.design.equivalence_margin),
        power=a.design.power,
        void_blocks=sum(
            1
            for one in (a, b)
            for block in one.blocks
            if block.workload == workload and block.void_for(variant)
        ),
    )
    cell = a.cells.get(workload)
    return ComparedMetric(
        workload,
        variant,
        metric.name,
        None if a.emulated_machine else _mean(rounds[0]),
        None if b.emulated_machine else _mean(rounds[1]),
        verdict=replace(verdict, reason="; ".join(missed)) if missed else verdict,
        load=cell.load if cell else None,
        clients=cell.clients if cell else None,
        level=cell.level if cell else None,
        unit=cell.unit if cell else None,
        operation=a.operations.get(workload),
        client_shares=(client_share(a, workload, variant), client_share(b, workload, variant)),
    )


def _emulated(a: Experiment, b: Experiment) -> list[str]:
    """Return a reason per emulated side: its speed is not that of a real machine."""
    return [f"{side} ran emulated" for side, one in ((A, a), (B, b)) if one.emulated_machine]


def _failed(a: Experiment, b: Experiment, workload: str, variant: str) -> Iterator[str]:
    """Yield the shares of failed transactions if there are too many for a comparison."""
    wanted = (workload, variant)
    shares = [
        next((one.share for one in failed_transactions(side) if (one.workload, one.variant) == wanted), 0.0)
        for side in (a, b)
    ]
    if max(shares) > MOST_FAILED_SHARE or max(shares) - min(shares) > MOST_MORE:
        yield (
            f"{numbers.share(shares[0], 1)} of the transactions failed on {A}, "
            f"{numbers.share(shares[1], 1)} on {B}"
        )


def _missed(side: str, experiment: Experiment, workload: str, variant: str) -> Iterator[str]:
    """Yield a reason if the background rate was missed: its cost to the other load is then unknown."""
    how = missed_rate(experiment.blocks, workload, variant)
    if how is not None:
        yield (
            f"{side} missed the background rate in {how.passes} of {how.of_passes} passes: "
            f"{numbers.share(how.lowest, 0)} of it at worst ({numbers.share(REQUIRED_BACKGROUND_SHARE)} is "
            "required)"
        )


def _log_values(experiment: Experiment, workload: str, variant: str, metric: str) -> list[list[float]]:
    """Return ln of a metric by round, without void blocks."""
    rounds: dict[int, list[float]] = {}
    for block in experiment.blocks:
        if block.workload != workload or block.void_for(variant):
            continue
        for arm in block.arms:
            value = arm.values.get(metric, 0.0)
            if arm.variant == variant and value > 0 and math.isfinite(value):
                rounds.setdefault(block.round, []).append(math.log(value))
    return [rounds[number] for number in sorted(rounds)]


def _mean(log_values: Sequence[Sequence[float]]) -> float | None:
    return math.exp(float(Sample.of(log_values).round_means.mean())) if log_values else None


def _per_frequency(a: Experiment, b: Experiment, metrics: Sequence[ComparedMetric]) -> Iterator[DerivedRatio]:
    """Yield throughput per GHz, and server cycles per transaction, if both frequencies are known."""
    mhz = [frequency_mhz(one) for one in (a, b)]
    if mhz[0] is None or mhz[1] is None:
        return
    ghz_a, ghz_b = mhz[0] / _MHZ_PER_GHZ, mhz[1] / _MHZ_PER_GHZ
    for one in metrics:
        if one.metric == THROUGHPUT:
            yield from _derived(one, "throughput per GHz (per second)", 1 / ghz_a, 1 / ghz_b)
        elif one.metric == SERVER_CPU:
            thousands = (
                f"server cycles for each of the {one.operation or 'transactions'} (thousands)"  # µs × GHz
            )
            yield from _derived(one, thousands, ghz_a, ghz_b)


def _per_price(metrics: Sequence[ComparedMetric], prices: Mapping[str, float]) -> Iterator[DerivedRatio]:
    """Yield transactions per dollar. Prices are exact, so the interval is the ratio's, scaled."""
    if prices.keys() >= {A, B}:
        for one in metrics:
            if one.metric == THROUGHPUT:
                factors = (_SECONDS_PER_HOUR / prices[A], _SECONDS_PER_HOUR / prices[B])
                yield from _derived(one, f"{one.operation or 'transactions'} per $", *factors)


def _derived(one: ComparedMetric, title: str, of_a: float, of_b: float) -> Iterator[DerivedRatio]:
    measured = one.verdict.interval
    if measured is None or one.a is None or one.b is None:
        return
    factor = of_b / of_a
    ratio = Interval(measured.low * factor, measured.point * factor, measured.high * factor, measured.level)
    yield DerivedRatio(one.workload, one.variant, title, one.a * of_a, one.b * of_b, ratio)


def _side(name: str, mine: Experiment, other: Experiment, prices: Mapping[str, float]) -> Side:
    facts = {
        what: fact_at(document, path)
        for what, document, path in (
            ("model", mine.host, "cpu.model"),
            ("cpus", mine.host, "cpu.logical_count"),
            ("version", mine.server, "version"),
        )
    }
    cpus = "CPUs unknown" if facts["cpus"] is None else f"{facts['cpus']} CPUs"
    return Side(
        name=name,
        experiment=mine.id,
        created=mine.created,
        machine=f"{facts['model'] or 'processor unknown'}, {cpus}",
        server="PostgreSQL" if facts["version"] is None else f"PostgreSQL {facts['version']}",
        price_per_hour=prices.get(name),
        notes=tuple(note for note in mine.notes if note not in other.notes),
    )


def _warnings(a: Experiment, b: Experiment, common: Common, of_instances: str | None) -> Iterator[str]:
    for side, one in ((A, a), (B, b)):
        yield from _without_a_machine(side, one)
    for side, one in ((A, a), (B, b)):
        for variant in one.variants:
            if variant.name in common.variants and not variant.is_durable:
                yield f"NOT DURABLE: {variant.name} on {side}: {', '.join(variant.unsafe_settings)}"
        yield from (f"{why} ({side})" for why in warnings(one))
    if of_instances is not None:
        yield of_instances
    if frequency_mhz(a) and frequency_mhz(b) and (of_frequencies := frequency_warning(a, b)):
        yield of_frequencies
    for side, one in ((A, a), (B, b)):
        share = stolen_share(one)
        if share is not None and share > _DISTURBED:
            yield f"{side} was disturbed: the hypervisor took {numbers.share(share, 0)} of its CPU time"
        if not one.is_complete:
            yield f"{side} was interrupted: it did not run to its planned end"


def _without_a_machine(side: str, one: Experiment) -> Iterator[str]:
    """Yield warnings about figures that no real machine produced."""
    if one.emulated_machine:
        yield (
            f"{side} RAN EMULATED: its server was built for {one.emulated_machine}. Its results can be "
            "compared, its speed cannot: no ratio is given"
        )
    yield from (f"{side} IS {note}" for note in one.notes if note.startswith(_SIMULATED))


def differences(a: Experiment, b: Experiment, variants: Sequence[str]) -> tuple[Difference, ...]:
    """Return everything not known to be equal on both sides, except the machines.

    ``variants`` are the compared ones.
    """
    found = [
        *(one for entry in ENTRIES if entry.concerns(a, b) for one in _of(entry, a, b)),
        *_other_builds(a, b, variants),
        *setting_differences(a, b),
        *(one for variant in variants for one in variant_differences(a, b, variant)),
        *_other_sysctls(a, b),
    ]
    return tuple(sorted(found, key=lambda one: one.weight.rank))


def _of(entry: Entry, a: Experiment, b: Experiment) -> Iterator[Difference]:
    of_a, of_b = entry.read(a), entry.read(b)
    if of_a is not None and of_a == of_b:
        return
    weight = entry.weigh(of_a, of_b)
    if entry.between is not None and of_a is not None and of_b is not None:
        of_a, of_b = _only(of_a, of_b, entry.between), _only(of_b, of_a, entry.between)
    if of_a != of_b or of_a is None:
        yield Difference(entry.subject, of_a, of_b, weight, entry.reason, entry.source)


def _only(mine: str, other: str, between: str) -> str:
    """Return the items of ``mine`` that ``other`` lacks; ``without`` if there are none."""
    others = other.split(between)
    return between.join(one for one in mine.split(between) if one not in others) or "without"


def _other_builds(a: Experiment, b: Experiment, variants: Sequence[str]) -> Iterator[Difference]:
    """Yield variants with another server than the baseline's: the build of that server is not recorded."""
    for name in variants:
        servers = [
            {one.name: one.server for one in experiment.variants}[name]
            == {one.name: one.server for one in experiment.variants}.get(experiment.baseline)
            for experiment in (a, b)
        ]
        if not all(servers):
            subject = f"build of the server of {name}"
            reason = "only the build of the baseline's server is recorded, which is a different one"
            yield Difference(subject, None, None, Weight.TENS, reason, "see compiler's flags")


def _other_sysctls(a: Experiment, b: Experiment) -> Iterator[Difference]:
    """Yield the kernel settings without their own entries, all in one difference: they matter little."""
    of_a, of_b = sysctls(a), sysctls(b)
    names = [name for name in of_a if name not in NAMED_SYSCTLS and of_a[name] != of_b.get(name, of_a[name])]
    if names:
        shown = names[:_MOST_NAMED]
        more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        yield Difference(
            f"{', '.join(shown)}{more}",
            ", ".join(of_a[name] for name in shown),
            ", ".join(of_b[name] for name in shown),
            Weight.LITTLE,
            "several depend on the memory size; none is known to affect a server on a socket",
            "pgdyno's estimate",
        )
