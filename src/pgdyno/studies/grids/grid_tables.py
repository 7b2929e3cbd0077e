"""Tables of a grid of loads, database sizes and levels: a row per cell, a column per variant. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pgdyno.base import numbers
from pgdyno.base.text import sentence
from pgdyno.measure.view.series import ROUNDS_FOR_AN_INTERVAL, SeriesEstimate, blocks_of, estimates
from pgdyno.measure.view.wording import direction_hint, effect_text, metric_of, symbol
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import THROUGHPUT, Metric
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.model.experiments.workload import Cell
from pgdyno.report.elements.tables import NOTHING, StyledCell, StyledTable, Table, columns


@dataclass(frozen=True)
class Load:
    """A load of the grid; ``order`` is its index among the loads.

    ``workloads`` has their names by (database size in bytes, level). ``unit`` is the unit of levels,
    ``operation`` that of rates if not transactions.
    """

    name: str
    order: int
    unit: str
    workloads: Mapping[tuple[int, int], str]
    operation: str | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Database sizes in bytes, ascending."""
        return tuple(sorted({size for size, _ in self.workloads}))

    @property
    def levels(self) -> tuple[int, ...]:
        """Levels, ascending."""
        return tuple(sorted({level for _, level in self.workloads}))

    @property
    def corner(self) -> str:
        """Title of the column with the names of cells."""
        return f"Database, {self.unit}"

    def at(self, level: int) -> Load:
        """Return the load with only the workloads of this level."""
        own = {place: workload for place, workload in self.workloads.items() if place[1] == level}
        return replace(self, workloads=own)

    def place_name(self, place: tuple[int, int]) -> str:
        """Return a (size, level) pair in words."""
        return place_name(*place, self.unit)


@dataclass(frozen=True)
class Amounts:
    """A metric in every cell of a load, by workload and variant.

    Units: estimates in the metric's unit; ``unit`` is the display unit, of ``unit_size`` metric units.
    """

    metric: Metric
    unit: str
    unit_size: int
    estimates: Mapping[str, Mapping[str, SeriesEstimate]]

    @property
    def title(self) -> str:
        """Title of the metric, with the display unit."""
        return sentence(f"{self.metric.title} in {self.unit}" if self.unit else self.metric.title)


def loads(experiment: Experiment) -> tuple[Load, ...]:
    """Return the loads of a grid; empty if the workloads form no grid."""
    cells = [(name, experiment.cells[name]) for name in experiment.workloads if name in experiment.cells]
    return tuple(
        Load(
            load,
            order,
            unit,
            dict(sorted(((c.database_bytes, c.level), name) for name, c in cells if c.load == load)),
            operation,
        )
        for order, (load, unit, operation) in enumerate(
            dict.fromkeys((cell.load, cell.unit, cell.operation) for _, cell in cells)
        )
    )


def amounts(experiment: Experiment, load: Load, metric: str) -> Amounts:
    """Return a metric's means in all cells with measurements, with a display unit suited to the largest."""
    known = metric_of(metric, load.operation)
    found = {
        workload: of_variants
        for workload in load.workloads.values()
        if (of_variants := estimates(experiment, workload, metric))
    }
    largest = max((one.mean for each in found.values() for one in each.values()), default=0.0)
    unit_size, unit = numbers.byte_unit(largest) if known.unit == "B" else (1, known.unit)
    return Amounts(known, unit, unit_size, found)


def verdicts_on(experiment: Experiment, metric: str = THROUGHPUT) -> dict[tuple[str, str], Verdict]:
    """Return the verdicts on a metric by workload and variant."""
    return {(v.workload, v.variant): v for v in experiment.verdicts if v.metric == metric}


def compared_variants(experiment: Experiment) -> tuple[str, ...]:
    """Return the names of all variants except the baseline."""
    return tuple(variant.name for variant in experiment.variants if variant.name != experiment.baseline)


def gain_table(experiment: Experiment, load: Load, metric: str = THROUGHPUT) -> StyledTable | None:
    """Return change, interval and decision in every cell; None if the metric has no verdicts."""
    verdicts, variants = verdicts_on(experiment, metric), compared_variants(experiment)
    if not any((workload, name) in verdicts for workload in load.workloads.values() for name in variants):
        return None
    known, level = metric_of(metric), numbers.share(experiment.design.level)
    return StyledTable(
        sentence(known.title),
        f"Change against {experiment.baseline}, with its {level} interval; {direction_hint(known)}",
        tuple(map(StyledCell, variants)),
        tuple(
            (load.place_name(place), tuple(_gain(verdicts.get((workload, name))) for name in variants))
            for place, workload in load.workloads.items()
        ),
        corner=load.corner,
    )


def verdict_table(experiment: Experiment, load: Load) -> Table:
    """Return every verdict on throughput with its reason."""
    verdicts = verdicts_on(experiment)
    return Table(
        f"{load.name}: throughput relative to {experiment.baseline} in every cell",
        columns(load.corner, "Variant", "Change", "Interval", "Verdict", "Why", numbers_from=2, words_from=4),
        tuple(
            (
                load.place_name(place),
                name,
                NOTHING if verdict.effect is None else effect_text(verdict),
                numbers.interval(verdict.interval) if verdict.interval else NOTHING,
                str(verdict.decision),
                verdict.reason,
            )
            for place, workload in load.workloads.items()
            for name in compared_variants(experiment)
            if (verdict := verdicts.get((workload, name)))
        ),
    )


def amount_table(experiment: Experiment, load: Load, of: Amounts, *, has_bounds: bool) -> Table:
    """Return the means of every cell, with intervals if ``has_bounds``."""
    show = with_bounds if has_bounds else _mean
    variants = [variant.name for variant in experiment.variants]
    return Table(
        f"{load.name}: {of.metric.title}, means over the rounds",
        columns(load.corner, *variants, numbers_from=1),
        tuple(
            (load.place_name(place), *(show(of.metric, found.get(name)) for name in variants))
            for place, workload in load.workloads.items()
            for found in (of.estimates.get(workload, {}),)
        ),
    )


def summary_table(experiment: Experiment, metrics: Sequence[Amounts]) -> Table:
    """Return the range of each variant's means over all cells, a row per metric."""
    variants = [variant.name for variant in experiment.variants]
    return Table(
        "Other metrics: means over the rounds, range over all cells",
        columns("Figure", *variants, numbers_from=1),
        tuple((sentence(one.metric.title), *(_range(one, name) for name in variants)) for one in metrics),
    )


def gaps(experiment: Experiment, load: Load) -> tuple[str, ...]:
    """Return sentences on cells without a variant's throughput, with reasons, and on missing intervals."""
    found = amounts(experiment, load, THROUGHPUT).estimates
    missing: dict[tuple[str, str], list[str]] = {}
    for place, workload in load.workloads.items():
        for variant in (one.name for one in experiment.variants):
            if variant not in found.get(workload, {}):
                why = _why_missing(experiment, workload, variant)
                missing.setdefault((variant, why), []).append(load.place_name(place))
    found_gaps = [f"{variant} at {'; '.join(places)}: {why}" for (variant, why), places in missing.items()]
    few = sum(one.rounds < ROUNDS_FOR_AN_INTERVAL for each in found.values() for one in each.values())
    if few:
        values = "1 value has" if few == 1 else f"{few} values have"
        found_gaps.append(f"{values} no interval: fewer than {ROUNDS_FOR_AN_INTERVAL} valid rounds")
    return tuple(found_gaps)


def cell_name(cell: Cell) -> str:
    """Return a cell's name within its load: ``512 MB, 4 clients``."""
    return place_name(cell.database_bytes, cell.level, cell.unit)


def place_name(database_bytes: int, level: int, unit: str) -> str:
    """Return a size and a level in words."""
    return f"{numbers.size(database_bytes)}, {counted(level, unit)}"


def counted(level: int, unit: str) -> str:
    """Return a level in words; ``unit`` is in the plural."""
    return f"{level} {unit.removesuffix('s') if level == 1 else unit}"


def with_bounds(metric: Metric, found: SeriesEstimate | None) -> str:
    """Return a mean with its interval. The unit is in the title of the figure, except for bytes."""
    if found is None or found.bounds is None:
        return NOTHING if found is None else f"{_mean(metric, found)} (no interval)"
    low, high = (_quantity(metric, end) for end in found.bounds)
    return f"{_mean(metric, found)} ({low}{numbers.SPACE}…{numbers.SPACE}{high})"


def _gain(verdict: Verdict | None) -> StyledCell:
    if verdict is None or verdict.effect is None:
        return StyledCell(NOTHING)
    return StyledCell(
        f"{effect_text(verdict)} {symbol(verdict.decision)}",
        numbers.interval(verdict.interval) if verdict.interval else "no interval",
        str(verdict.decision),
    )


def _why_missing(experiment: Experiment, workload: str, variant: str) -> str:
    reasons = (
        block.void or arm.void
        for _, block in blocks_of(experiment, workload)
        for arm in block.arms
        if arm.variant == variant
    )
    return next((reason for reason in reasons if reason), "not measured")


def _mean(metric: Metric, found: SeriesEstimate | None) -> str:
    return NOTHING if found is None else _quantity(metric, found.mean)


def _range(one: Amounts, variant: str) -> str:
    means = [each[variant].mean for each in one.estimates.values() if variant in each]
    ends = dict.fromkeys(_quantity(one.metric, value) for value in (min(means), max(means))) if means else ()
    return f"{numbers.SPACE}…{numbers.SPACE}".join(ends) or NOTHING


def _quantity(metric: Metric, value: float) -> str:
    return numbers.quantity(metric, value) if metric.unit == "B" else numbers.number(value)
