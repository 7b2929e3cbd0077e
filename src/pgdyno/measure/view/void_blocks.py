"""Blocks and parts of blocks that do not count: rules, observed values, and reasons. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping

from pgdyno.base import numbers
from pgdyno.measure.blocks.blocks import BY_OTHERS
from pgdyno.measure.blocks.disturbance import LEFT_OUT
from pgdyno.measure.blocks.drains import DIFFERENCE
from pgdyno.measure.blocks.start_offsets import APART
from pgdyno.measure.verdicts.failures import FailedTransactions, failed_transactions
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import DRAIN_SHARE
from pgdyno.report.elements.tables import NOTHING, Column, Table, columns

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
    titles = (Column("Workload"), Column("Round", is_number=True), Column("Block", is_number=True))
    return Table("Blocks that do not count, and why", (*titles, Column("Why")), tuple(rows))


def left_out_table(experiment: Experiment) -> Table:
    """Return the blocks with a part that does not count; empty if all count as a whole."""
    rows = [
        (block.workload, str(block.round + 1), str(block.index + 1), numbers.share(block.audit[LEFT_OUT], 1))
        for block in experiment.blocks
        if block.audit.get(LEFT_OUT, 0.0) > 0
    ]
    return Table(
        "Blocks with a part left out, in which others took more of the CPUs than usual",
        (Column("Workload"), *columns("Round", "Block", "Left out", numbers_from=0)),
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
    rows = [row for one in failed_transactions(experiment) for row in _rows(one)]
    return Table(
        "Failed transactions, not included in any rate",
        (
            *columns("Workload", "Variant", numbers_from=2),
            *columns("Share", "Failed", numbers_from=0),
            Column("SQLSTATE"),
            Column("Statement"),
        ),
        tuple(rows),
    )


def _rows(one: FailedTransactions) -> list[tuple[str, ...]]:
    if not one.failures:
        return [(one.workload, one.variant, numbers.share(0.0), "0", NOTHING, NOTHING)]
    failed = sum(reason.count for reason in one.failures)
    rows: list[tuple[str, ...]] = [
        (
            one.workload,
            one.variant,
            numbers.share(one.share * reason.count / failed),
            f"{reason.count:,}",
            reason.error,
            reason.statement or NOTHING,
        )
        for reason in one.failures[:_MOST_REASONS]
    ]
    if others := one.failures[_MOST_REASONS:]:
        count = sum(reason.count for reason in others)
        share = numbers.share(one.share * count / failed)
        rows.append((one.workload, one.variant, share, f"{count:,}", "others", NOTHING))
    return rows
