"""A comparison of two machines as sentences and tables, for the page and the terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.console import Group, RenderableType

from pgdyno.base import numbers
from pgdyno.base.text import listed, sentence, shortened
from pgdyno.measure.view.wording import (
    compact,
    effect_text,
    half_width,
    legend,
    metric_of,
    symbol,
    verdict_cells,
)
from pgdyno.model.experiments.machine_comparison import (
    ComparedMetric,
    DerivedRatio,
    Difference,
    MachineComparison,
    MachineFact,
    Side,
    Weight,
)
from pgdyno.model.experiments.metric import METRICS, P99, TAIL_MEAN, THROUGHPUT
from pgdyno.model.experiments.verdict import Decision
from pgdyno.report.elements.tables import NOTHING, Table, columns
from pgdyno.report.elements.terminal import DECISION_STYLES, plain_text, rich_table
from pgdyno.results.machines.difference_catalogue import ESTIMATE

SCOPE = (
    "The intervals describe these two machines at the time of measuring: another instance of the same type "
    "may be faster or slower."
)
UNKNOWN = "unknown"
_LONGEST = 60  # characters of a value; --json has the whole value
_TITLES = {
    "server_cpu_us_per_transaction": "server CPU (µs per transaction)",
    TAIL_MEAN: "slowest 5 %, mean latency (ms)",
    P99: "p99 latency (ms)",
}
_ANSWERS = {
    Decision.BETTER: "B is better on",
    Decision.WORSE: "B is worse on",
    Decision.EQUIVALENT: "no difference that matters on",
    Decision.INCONCLUSIVE: "not decided on",
}
_DIFFERENCE_WIDTHS = (30, 22, 22, 30)
"""Column widths, equal in all tables of differences; 110 characters including gaps."""

_STYLES = {f"{symbol(decision)} {decision}": style for decision, style in DECISION_STYLES.items()}


def side_line(side: Side) -> str:
    """Return a line that identifies machine A or B."""
    price = "" if side.price_per_hour is None else f", ${numbers.plain(side.price_per_hour)} per hour"
    return f"{side.name}  {side.machine}, {side.server}{price} ({side.experiment})"


def answer(found: MachineComparison) -> str:
    """Return one sentence on which machine has the higher throughput on which workloads."""
    by_decision: dict[Decision, list[ComparedMetric]] = {decision: [] for decision in _ANSWERS}
    for one in found.metrics:
        if one.metric == THROUGHPUT:
            by_decision[one.verdict.decision].append(one)
    parts = [
        f"{_ANSWERS[decision]} {listed(_places(ones, found))}"
        for decision, ones in by_decision.items()
        if ones
    ]
    return f"Throughput: {'; '.join(parts)}." if parts else "Neither has a throughput."


def _places(ones: Sequence[ComparedMetric], found: MachineComparison) -> list[str]:
    """Return workloads with their effects; with several numbers of clients or workers, the effects' range."""
    places: dict[str, list[ComparedMetric]] = {}
    for one in ones:
        places.setdefault(_name(one, one.load or one.workload, found), []).append(one)
    return [f"{place}{_effects(those)}" for place, those in places.items()]


def _effects(ones: Sequence[ComparedMetric]) -> str:
    effects = [one.verdict.effect for one in ones if one.verdict.effect is not None]
    shown = ""
    if effects and ones[0].verdict.decision in {Decision.BETTER, Decision.WORSE}:
        least, most = min(effects), max(effects)
        shown = numbers.change(least) if len(effects) == 1 else numbers.change_range(least, most)
    if (unit := ones[0].unit) is None:
        return f" ({shown})" if shown else ""
    levels = ", ".join(str(one.level) for one in ones)
    return f" with {levels} {unit.removesuffix('s') if levels == '1' else unit}" + (
        f" ({shown})" if shown else ""
    )


def metric_tables(found: MachineComparison) -> Iterator[Table]:
    """Yield a table per workload; workloads that differ only in their level share one table."""
    for (name, unit), ones in groupby(
        found.metrics, key=lambda one: (_name(one, one.load or one.workload, found), one.unit)
    ):
        rows = [*ones]
        yield _by_level(name, unit, rows) if unit else _by_metric(name, rows, found)


def _by_metric(name: str, ones: Sequence[ComparedMetric], found: MachineComparison) -> Table:
    return Table(
        name,
        columns("", "A → B", "B to A", _interval_head(found), "B is", numbers_from=1, words_from=4),
        tuple((_title(one), _values(one.a, one.b), *verdict_cells(one.verdict)) for one in ones),
    )


def _by_level(name: str, unit: str, ones: Sequence[ComparedMetric]) -> Table:
    others = [metric for metric in dict.fromkeys(one.metric for one in ones) if metric != THROUGHPUT]
    heads = columns(
        *(unit, "throughput, A → B", "B to A"),
        *(_TITLES.get(metric, metric).partition(" (")[0] for metric in others),
        "client's share of CPU",
        numbers_from=0,
    )
    rows = []
    for workload in dict.fromkeys(one.workload for one in ones):
        by_metric = {one.metric: one for one in ones if one.workload == workload}
        first = by_metric.get(THROUGHPUT)
        if first is not None:
            rows.append(
                (
                    *(str(first.level), _values(first.a, first.b), _short_effect(first)),
                    *(_short_effect(by_metric.get(metric)) for metric in others),
                    " → ".join(
                        NOTHING if one is None else numbers.share(one, 0) for one in first.client_shares
                    ),
                )
            )
    return Table(f"{name}, by {unit}; ± half of the interval's width", heads, tuple(rows))


def derived_tables(ratios: Sequence[DerivedRatio], found: MachineComparison) -> Iterator[Table]:
    """Yield a table for each quantity derived from a ratio: per GHz, per dollar."""
    names = {(one.workload, one.variant): _name(one, one.workload, found) for one in found.metrics}
    for title in dict.fromkeys(one.title for one in ratios):
        rows = tuple(
            (
                names.get((one.workload, one.variant), one.workload),
                f"{compact(one.a)} → {compact(one.b)}",
                numbers.change_within(one.ratio.point, one.ratio.low, one.ratio.high),
                numbers.interval(one.ratio),
            )
            for one in ratios
            if one.title == title
        )
        heads = columns("", "A → B", "B to A", _interval_head(found), numbers_from=1)
        yield Table(sentence(title), heads, rows)


def machine_table(facts: Sequence[MachineFact]) -> Table:
    """Return the descriptions of the machines."""
    rows = tuple(
        (fact.subject, fact.a or UNKNOWN, "the same" if fact.is_equal else fact.b or UNKNOWN)
        for fact in facts
    )
    return Table("The machines", columns("", "A", "B"), rows)


def difference_tables(differences: Sequence[Difference]) -> Iterator[Table]:
    """Yield known other differences by weight, then unknown ones."""
    known = [one for one in differences if one.is_known]
    for weight, ones in groupby(known, key=lambda one: one.weight):
        yield _difference_table(f"What else differs and {weight}", [*ones])
    unknown = [one for one in differences if not one.is_known]
    if unknown:
        yield _difference_table("Unknown on one side or both, possibly different", unknown)


def all_differences(differences: Sequence[Difference]) -> Table:
    """Return known and unknown differences in one table, with the source of their weight."""
    rows = tuple(
        (*_difference_row(one)[:3], f"{_short_weight(one.weight)}: {one.reason} ({one.source})")
        for one in sorted(differences, key=lambda one: not one.is_known)
    )
    caption = "Known differences, heaviest first; then those unknown on one side or both"
    return Table(caption, columns("", "A", "B", "largest effect, and why"), rows)


def notes(found: MachineComparison) -> Iterator[str]:
    """Yield the notes that only one side has."""
    for side in found.sides:
        yield from (f"Note of {side.name}: {note}" for note in side.notes)


def withheld(found: MachineComparison) -> Iterator[str]:
    """Yield why comparisons are undecided if their intervals do not show it, each reason once."""
    reasons: dict[str, list[str]] = {}
    for one in found.metrics:
        if one.verdict.decision is Decision.INCONCLUSIVE and (
            one.verdict.is_withheld or one.verdict.interval is None
        ):
            subject = f"{_name(one, one.workload, found)}, {_title(one).partition(' (')[0]}"
            reasons.setdefault(one.verdict.reason, []).append(subject)
    for reason, subjects in reasons.items():
        shown = subjects[0] if len(subjects) == 1 else f"{len(subjects)} comparisons"
        yield f"{symbol(Decision.INCONCLUSIVE)} {shown}: {reason}"


def margin(found: MachineComparison) -> float | None:
    """Return the equivalence margin; None if no equivalence was tested."""
    margins = [one.verdict.equivalence.margin for one in found.metrics if one.verdict.equivalence]
    return margins[0] if margins else None


def _name(one: ComparedMetric, place: str, found: MachineComparison) -> str:
    """Return ``place``, with the variant if there are several."""
    variants = {metric.variant for metric in found.metrics}
    return place if len(variants) == 1 else f"{place}, {one.variant}"


def _title(one: ComparedMetric) -> str:
    metric = metric_of(one.metric, one.operation)
    if one.operation is None and one.metric in _TITLES:
        return _TITLES[one.metric]
    unit = metric.unit.replace("transactions/s", "tps")
    return f"{metric.title} ({unit})" if unit else metric.title


def _interval_head(found: MachineComparison) -> str:
    levels = [one.verdict.interval.level for one in found.metrics if one.verdict.interval]
    return f"{numbers.share(levels[0])} interval" if levels else "interval"


def _values(a: float | None, b: float | None) -> str:
    return " → ".join(NOTHING if value is None else numbers.number(value) for value in (a, b))


def _short_effect(one: ComparedMetric | None) -> str:
    """Return an effect with half its interval's width and the symbol of its decision."""
    if one is None or one.verdict.effect is None:
        return NOTHING
    width = half_width(one.verdict)
    return " ".join(filter(None, (effect_text(one.verdict), width, symbol(one.verdict.decision))))


def _difference_table(caption: str, ones: Sequence[Difference]) -> Table:
    return Table(caption, columns("", "A", "B", "why"), tuple(_difference_row(one) for one in ones))


def _difference_row(one: Difference) -> tuple[str, ...]:
    a, b = (UNKNOWN if value is None else shortened(value, _LONGEST) for value in (one.a, one.b))
    reason = f"{one.reason} (estimate)" if one.source == ESTIMATE else one.reason
    why = reason if one.is_known else f"{_short_weight(one.weight)}: {reason}"
    return (shortened(one.subject, _LONGEST), a, b, why)


def _short_weight(weight: Weight) -> str:
    """Return a short weight such as ``tens of percent``."""
    return weight.removeprefix("can change it by ")


def machine_comparison_text(found: MachineComparison) -> RenderableType:
    """Return the ratios, figures by price and frequency, and all other differences."""
    return Group(*_parts(found))


def _parts(found: MachineComparison) -> Iterator[RenderableType]:
    yield plain_text(found.question, "bold")
    yield from (plain_text(side_line(side)) for side in found.sides)
    for warning in found.warnings:
        yield plain_text(f"{warning[:1].upper()}{warning[1:]}", "bold red")
    yield plain_text(answer(found))
    yield from _tables(metric_tables(found))
    yield from (plain_text(reason, "dim") for reason in withheld(found))
    limit = margin(found)
    yield plain_text(legend(limit) if limit is not None else "", "dim")
    yield plain_text(SCOPE, "dim")
    yield from _tables(derived_tables((*found.per_price, *found.per_frequency), found))
    yield from _tables([machine_table(found.machine)])
    differences = [*difference_tables(found.differences)]
    if not differences:
        yield plain_text("\nNothing else is known to differ, and nothing that matters is unknown.", "bold")
    yield from _tables(differences, _DIFFERENCE_WIDTHS)
    if found.left_out:
        yield plain_text(f"\nNot compared: {'; '.join(found.left_out)}", "dim")
    yield from (plain_text(f"\n{note}", "dim") for note in notes(found))


def _tables(tables: Iterable[Table], widths: tuple[int, ...] = ()) -> Iterator[RenderableType]:
    for table in tables:
        yield plain_text(f"\n{table.caption}", "bold")
        rows = ([plain_text(cell, _STYLES.get(cell, "")) for cell in row] for row in table.rows)
        verdicts = [place for place, column in enumerate(table.columns) if column.title == "B is"]
        shown = rich_table(table.columns, rows, unbroken=verdicts, overflow="fold")
        for column, width in zip(shown.columns, widths, strict=False):
            column.width = width
        yield shown


assert {*_TITLES} <= {*METRICS}  # noqa: S101 — both are constants of this program
