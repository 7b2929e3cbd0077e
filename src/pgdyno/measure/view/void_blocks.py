"""Blocks and parts of blocks that do not count, failures, and effects adjusted for stolen time. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping

from pgdyno.base import numbers
from pgdyno.measure.blocks.blocks import BY_OTHERS, DIFFERENCE
from pgdyno.measure.blocks.disturbance import APART, LEFT_OUT
from pgdyno.measure.verdicts.failures import FailedTransactions, failed_transactions
from pgdyno.measure.verdicts.steal_adjustment import AdjustedEffect, Adjustment, adjustments
from pgdyno.measure.view.wording import effect_text, metric_of
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import DRAIN_SHARE
from pgdyno.report.elements.tables import NOTHING, Table, columns

_VOID_RULES = {
    "steal_share": "CPU time stolen by the hypervisor",
    "foreign_cpu_share": "CPU time taken by other processes",
    "client_saturation_share": "load generator's CPUs busy, if pinned separately",
    "schedule_lag_share": "excess of all turns over their planned length",
}
_OF_SEVERAL_HOSTS = {APART: "a variant's turns that load hosts may have begun too far apart"}
_MOST_REASONS = 8  # per arm


def void_rule_table(experiment: Experiment) -> Table:
    """Return the rules that make a block void, with the largest value in any block.

    The CPU shares of others are those of the counted part, if parts of blocks can be left out.
    """
    limits = experiment.design.thresholds
    rows, is_of_several = [], any(APART in audit for audit in _audits(experiment))
    for name, words in {**_VOID_RULES, **(_OF_SEVERAL_HOSTS if is_of_several else {})}.items():
        seen = [audit[name] for audit in _audits(experiment) if name in audit]
        highest = numbers.share(max(seen), 1) if seen else "not read"
        limit = getattr(limits, name)
        unless = ", and twice the median" if name in BY_OTHERS else ""
        above = f"above {numbers.share(limit)}{unless}" if limit < 1 else "none, see above"
        rows.append((words, above, highest))
    if left_out := [audit[LEFT_OUT] for audit in _audits(experiment) if LEFT_OUT in audit]:
        rows.append(("part of a block left out for that", "half", numbers.share(max(left_out), 1)))
    rows.append(
        (
            "void blocks, beyond which the report begins with a warning",
            f"above {numbers.share(limits.void_block_share)}",
            _void(experiment),
        )
    )
    return Table(
        "When a block is void; no rule looks at the measured result",
        columns("Rule", "Limit", "Highest seen", numbers_from=1),
        tuple(rows),
    )


def drain_table(experiment: Experiment) -> Table:
    """Return the share of drains in the turns, and its range over the variants; empty if unknown."""
    rows = []
    for workload in experiment.workloads:
        blocks = [block for block in experiment.blocks if block.workload == workload]
        apart = [block.audit[DIFFERENCE] for block in blocks if DIFFERENCE in block.audit]
        for variant in experiment.variants:
            shares = [
                arm.values[DRAIN_SHARE]
                for block in blocks
                for arm in block.arms
                if arm.variant == variant.name and DRAIN_SHARE in arm.values
            ]
            if shares:
                highest = numbers.share(max(apart), 1) if apart else NOTHING
                seen = (statistics.mean(shares), max(shares))
                rows.append((workload, variant.name, *(numbers.share(one, 1) for one in seen), highest))
    return Table(
        "Drains at the ends of turns, in which transactions end and none begins: share of the turns, not "
        "counted for throughput",
        columns("Workload", "Variant", "Mean", "Highest", "Largest difference in a block", numbers_from=2),
        tuple(rows),
    )


def _audits(experiment: Experiment) -> Iterator[Mapping[str, float]]:
    """Yield the inputs of the void rules, of blocks and of arms with separate trials."""
    for block in experiment.blocks:
        yield block.audit
        yield from (arm.audit for arm in block.arms)


def void_block_table(experiment: Experiment) -> Table:
    """Return the void blocks with their reasons."""
    rows = [
        (block.workload, str(block.round + 1), str(block.index + 1), reason)
        for block in experiment.blocks
        for reason in block.void_reasons
    ]
    titles = columns("Workload", "Round", "Block", "Why", numbers_from=1, words_from=3)
    return Table("Blocks that do not count, and why", titles, tuple(rows))


def left_out_table(experiment: Experiment) -> Table:
    """Return the blocks with a part that does not count; empty if all count as a whole."""
    rows = [
        (block.workload, str(block.round + 1), str(block.index + 1), numbers.share(block.audit[LEFT_OUT], 1))
        for block in experiment.blocks
        if block.audit.get(LEFT_OUT, 0.0) > 0
    ]
    return Table(
        "Blocks with a part left out, in which others took more of the CPUs than usual",
        columns("Workload", "Round", "Block", "Left out", numbers_from=1),
        tuple(rows),
    )


def _void(experiment: Experiment) -> str:
    if not experiment.blocks:
        return "no blocks"
    count = len(experiment.blocks)
    void = sum(1 for block in experiment.blocks if block.void)
    partly = sum(1 for block in experiment.blocks if block.void_reasons) - void
    others = f"; in {partly} more, the trial of an arm" if partly else ""
    return f"{void} of {count} ({numbers.share(void / count, 0)}){others}"


def failures_table(experiment: Experiment) -> Table:
    """Return the failed transactions of each variant by SQLSTATE and statement; empty if none failed."""
    rows = [row for one in failed_transactions(experiment) for row in _reasons(one)]
    return Table(
        "Failed transactions, not included in any rate",
        columns(
            *("Workload", "Variant", "Share", "Failed", "SQLSTATE", "Statement"), numbers_from=2, words_from=4
        ),
        tuple(rows),
    )


def _reasons(one: FailedTransactions) -> list[tuple[str, ...]]:
    if not one.failures:
        return [(one.workload, one.variant, numbers.share(0.0), "0", NOTHING, NOTHING)]
    failed = sum(reason.count for reason in one.failures)
    shown = [(each.count, each.error, each.statement or NOTHING) for each in one.failures[:_MOST_REASONS]]
    if others := one.failures[_MOST_REASONS:]:
        shown.append((sum(reason.count for reason in others), "others", NOTHING))
    return [
        (one.workload, one.variant, numbers.share(one.share * count / failed), f"{count:,}", error, statement)
        for count, error, statement in shown
    ]


def adjustment_tables(experiment: Experiment) -> tuple[Table, ...]:
    """Return the adjusted effects of each workload measured in alternating trials."""
    level = numbers.share(experiment.design.level)
    return tuple(
        Table(
            f"{_stolen(found)}. Adjusted for stolen time: effects at equal stolen time; the verdicts use "
            "the unadjusted effects",
            columns("Variant", "Metric", "Unadjusted", "Adjusted", f"{level} interval", numbers_from=2),
            tuple(_adjusted(experiment, found.workload, one) for one in found.effects),
        )
        for found in adjustments(experiment)
        if found.effects
    )


def refusals(experiment: Experiment) -> tuple[str, ...]:
    """Return why effects are not adjusted, a sentence for each workload with varying steal time."""
    return tuple(
        f"{_stolen(found)}. No effect is adjusted for it: {found.reason}"
        for found in adjustments(experiment)
        if found.reason
    )


def _stolen(found: Adjustment) -> str:
    return (
        f"{found.workload}: the hypervisor took between {numbers.share(found.lowest, 1)} and "
        f"{numbers.share(found.highest, 1)} of the CPU time of {found.trials} trials"
    )


def _adjusted(experiment: Experiment, workload: str, one: AdjustedEffect) -> tuple[str, ...]:
    unadjusted = (
        effect_text(verdict)
        for verdict in experiment.verdicts
        if (verdict.workload, verdict.metric, verdict.variant) == (workload, one.metric, one.variant)
    )
    bounds = one.interval
    return (
        one.variant,
        metric_of(one.metric).title,
        next(unadjusted, NOTHING),
        numbers.change_within(bounds.point, bounds.low, bounds.high),
        numbers.interval(bounds),
    )
