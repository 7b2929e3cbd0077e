"""The page's figures: charts of an experiment, each with its table. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from pgdyno.base import numbers
from pgdyno.base.text import sentence
from pgdyno.measure.view.block_charts import RatioChart, ratio_chart, value_chart
from pgdyno.measure.view.series import TrialValues, ValuePoint, arm_series, ratios
from pgdyno.measure.view.wording import direction_hint, effect_text, metric_of, verdict_cells
from pgdyno.model.experiments.experiment import Experiment, NoiseFloor
from pgdyno.model.experiments.metric import METRICS
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.model.plans.plan import REFUSED_ABOVE, MemoryProof
from pgdyno.report.charts.forest import ForestGroup, ForestRow, forest_plot
from pgdyno.report.charts.memory import memory_chart
from pgdyno.report.charts.svg import Caption
from pgdyno.report.elements.tables import Figure, Table, columns, figure


def forest_figure(experiment: Experiment) -> Figure | None:
    """Return all effects on one axis, grouped by metric; None without intervals, and for grids.

    A grid has too many effects for one axis, and has other charts.
    """
    if experiment.cells or not any(verdict.interval for verdict in experiment.verdicts):
        return None
    groups = _forest_groups(experiment)
    caption = Caption(
        "effects",
        "Effect and interval of every verdict",
        "; ".join(_in_one_line(verdict, experiment.operations) for verdict in experiment.verdicts),
    )
    margin = experiment.design.equivalence_margin
    draw = partial(forest_plot, caption, groups, margin=margin)
    return figure(draw, verdict_table(experiment), title="Effects")


def verdict_table(experiment: Experiment) -> Table:
    """Return a table with all figures of every verdict."""
    titles = (
        *("Workload", "Metric", "Variant", "Verdict", "Effect", "Interval", "Detectable", "p", "p (Holm)"),
        *("Rounds", "Blocks", "Void", "sd rounds", "sd blocks", "Why"),
    )
    return Table(
        "Verdicts: effect relative to the baseline, with its interval and the smallest detectable effect",
        columns(*titles, numbers_from=4, words_from=14),
        tuple(_verdict_row(verdict, experiment.operations) for verdict in experiment.verdicts),
    )


def ratio_figure(experiment: Experiment, verdict_key: tuple[str, str, str, str]) -> Figure | None:
    """Return variant/baseline per block, if any; the key is workload, metric, variant, baseline."""
    workload, metric, variant, baseline = verdict_key
    points = ratios(experiment, workload, metric, variant, baseline)
    if not points:
        return None
    known = metric_of(metric, experiment.operation(workload))
    title = sentence(f"{known.title}: {variant} relative to {baseline}")
    caption = Caption(
        _key("ratio", *verdict_key),
        f"{workload}, {title}",
        f"{len(points)} blocks in {len({p.trial.round for p in points})} rounds, between "
        f"{numbers.change_range(min(p.value for p in points), max(p.value for p in points))}",
    )
    chart = RatioChart(
        points,
        next((v.interval for v in experiment.verdicts if _verdict_key(v) == verdict_key), None),
        experiment.design.equivalence_margin,
        next((order for order, arm in enumerate(experiment.variants) if arm.name == variant), 0),
    )
    return figure(partial(ratio_chart, caption, chart), _ratio_table(caption.title, points), title=title)


def value_figure(experiment: Experiment, workload: str, metric: str) -> Figure | None:
    """Return every arm's values per block; None without values."""
    arms = [arm for arm in arm_series(experiment, workload, metric) if arm.points]
    if not arms:
        return None
    known = metric_of(metric, experiment.operation(workload))
    unit = f" in {known.unit}" if known.unit else ""
    caption = Caption(
        _key("value", workload, metric),
        f"{workload}, {known.title}{unit} of every variant",
        "; ".join(
            f"{arm.variant}: {numbers.quantity(known, min(p.value for p in arm.points))} to "
            f"{numbers.quantity(known, max(p.value for p in arm.points))}"
            for arm in arms
        ),
    )
    trials = {p.trial.position: p.trial for arm in arms for p in arm.points}
    rows = tuple(
        (
            *_place(trial),
            *(
                next((numbers.number(p.value) for p in arm.points if p.trial.position == position), "–")
                for arm in arms
            ),
            trial.void or "",
        )
        for position, trial in sorted(trials.items())
    )
    table = Table(
        caption.title,
        columns(
            "Round",
            "Block",
            *(arm.variant for arm in arms),
            "Void because",
            numbers_from=0,
            words_from=2 + len(arms),
        ),
        rows,
    )
    draw = partial(value_chart, caption, arms, known)
    return figure(draw, table, title=sentence(f"{known.title}{unit}"))


def memory_figure(proof: MemoryProof) -> Figure:
    """Return the memory proof: all items, their sum, and the limit."""
    caption = Caption(
        "memory",
        "Worst-case memory against the limit",
        f"{numbers.size(proof.total_bytes)} of {numbers.size(proof.limit_bytes)}, "
        f"{numbers.share(proof.share, 0)}",
    )
    rows = [(item.name, item.formula, numbers.size(item.size_bytes)) for item in proof.items]
    sums = [
        ("worst case", "sum of the above", numbers.size(proof.total_bytes)),
        ("limit", proof.limit_source, numbers.size(proof.limit_bytes)),
    ]
    table = Table(
        "The server's worst case of memory, item by item",
        columns("Item", "Formula", "Size", numbers_from=2),
        (*rows, *sums),
        totals=len(sums),
    )
    draw = partial(memory_chart, caption, proof, refused_above=REFUSED_ABOVE)
    return figure(draw, table, title="Memory proof")


def _forest_groups(experiment: Experiment) -> list[ForestGroup]:
    """Return a group per metric with a row per workload; with several variants, a group per workload, too."""
    has_variants = len({verdict.variant for verdict in experiment.verdicts}) > 1
    order = list(dict.fromkeys([*METRICS, *(verdict.metric for verdict in experiment.verdicts)]))
    grouped: dict[tuple[int, str, str], list[Verdict]] = {}
    for verdict in experiment.verdicts:
        title = metric_of(verdict.metric, experiment.operations.get(verdict.workload)).title
        key = (order.index(verdict.metric), title, verdict.workload if has_variants else "")
        grouped.setdefault(key, []).append(verdict)
    return [
        ForestGroup(
            " · ".join(filter(None, (sentence(title), workload))),
            direction_hint(metric_of(order[metric])),
            tuple(
                _forest_row(v, v.variant if has_variants else v.workload, experiment.noise_floor)
                for v in verdicts
            ),
        )
        for (metric, title, workload), verdicts in sorted(grouped.items(), key=lambda item: item[0][0])
    ]


def _forest_row(verdict: Verdict, label: str, floors: Iterable[NoiseFloor]) -> ForestRow:
    effect, bounds, decision = verdict_cells(verdict)
    floor = next((f for f in floors if (f.workload, f.metric) == (verdict.workload, verdict.metric)), None)
    return ForestRow(
        label=label,
        decision=verdict.decision,
        decision_text=decision,
        effect=effect,
        bounds=bounds,
        interval=verdict.interval,
        noise=floor.interval if floor else None,
    )


def _in_one_line(verdict: Verdict, operations: Mapping[str, str]) -> str:
    bounds = f" ({numbers.interval(verdict.interval)})" if verdict.interval else ""
    title = metric_of(verdict.metric, operations.get(verdict.workload)).title
    subject = f"{verdict.workload}, {title}, {verdict.variant}"
    return f"{subject}: {verdict.decision}, {effect_text(verdict)}{bounds}"


def _verdict_row(verdict: Verdict, operations: Mapping[str, str]) -> tuple[str, ...]:
    bounds, spread = verdict.interval, verdict.components
    return (
        verdict.workload,
        metric_of(verdict.metric, operations.get(verdict.workload)).title,
        verdict.variant,
        str(verdict.decision),
        "–" if verdict.effect is None else effect_text(verdict),
        f"{numbers.interval(bounds)} ({numbers.share(bounds.level)})" if bounds else "–",
        "–" if verdict.mde is None else f"±{numbers.size_of_change(1 + verdict.mde)}",
        "–" if verdict.p_value is None else numbers.p_value(verdict.p_value),
        "–" if verdict.p_adjusted is None else numbers.p_value(verdict.p_adjusted),
        str(verdict.rounds),
        str(verdict.blocks),
        str(verdict.void_blocks),
        numbers.number(spread.between_rounds) if spread else "–",
        numbers.number(spread.within_rounds) if spread else "–",
        "; ".join([verdict.reason, *(f"{name}: {words}" for name, words in verdict.checks.items())]),
    )


def _ratio_table(caption: str, points: Sequence[ValuePoint]) -> Table:
    digits = numbers.percent_digits(*(point.value for point in points))
    return Table(
        caption,
        columns("Round", "Block", "Change", "Void because", numbers_from=0, words_from=3),
        tuple((*_place(p.trial), numbers.change(p.value, digits), p.trial.void or "") for p in points),
    )


def _place(trial: TrialValues) -> tuple[str, str]:
    return str(trial.round), str(trial.block)


def _verdict_key(verdict: Verdict) -> tuple[str, str, str, str]:
    return verdict.workload, verdict.metric, verdict.variant, verdict.baseline


def _key(*parts: str) -> str:
    """Return an HTML id for any names; other characters would break references to it."""
    return "-".join("".join(c if c.isalnum() else f"_{ord(c):x}_" for c in part) for part in parts)
