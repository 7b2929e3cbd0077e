"""Verdicts, answers, steps and rates in plain words, for the page and the terminal. Pure.

The decision always comes from the verdict; this module only puts it into words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from pgdyno.base import numbers
from pgdyno.base.text import listed, sentence
from pgdyno.measure.records.recorded_facts import fact_at
from pgdyno.measure.verdicts.failures import is_comparable, is_forbidden
from pgdyno.measure.verdicts.scaling import CurveKnee, knees
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import METRICS, THROUGHPUT, Better, Metric
from pgdyno.model.experiments.step_record import TPCH_RUNS
from pgdyno.model.experiments.verdict import Decision, Interval, Verdict
from pgdyno.model.plans.recipe import patches_in

_DIRECTIONS = {
    THROUGHPUT: ("more transactions per second", "fewer transactions per second"),
    "server_cpu_us_per_transaction": (
        "more server CPU per transaction",
        "less server CPU per transaction",
    ),
}
"""Words for an increase and a decrease of a metric; other metrics are "higher" and "lower"."""
_PATCHED = "PATCHED:"  # as in an experiment's notes
SINGULARS = {"rows": "row", "queries": "query", "operations": "operation", "executions": "execution"}
"""Singular of each counted unit; "operations" stands for different units together."""
_THOUSANDS, _MILLIONS = 99_999.5, 999_500.0
_FINE, _FINEST = 0.0995, 0.0005  # half-widths at or above these have no decimals, or one
_SYMBOLS = {
    Decision.BETTER: "✓",
    Decision.WORSE: "✗",
    Decision.EQUIVALENT: "=",
    Decision.INCONCLUSIVE: "?",
}


@dataclass(frozen=True)
class Sign:
    """The sign of a decision, with its meaning."""

    symbol: str
    decision: str
    words: str


def emulation_warning(experiment: Experiment) -> str | None:
    """Return a warning on figures from an emulated server; None for others."""
    if not experiment.emulated_machine:
        return None
    return (
        f"EMULATED: the server was built for {experiment.emulated_machine} and ran emulated. Its results "
        "are shown; its speed is unknown"
    )


def patch_warnings(experiment: Experiment) -> list[str]:
    """Return the notes on patched servers; without any, a warning if the baseline reports patches."""
    noted = [note for note in experiment.notes if note.startswith(_PATCHED)]
    patches = ", ".join(patches_in(str(fact_at(experiment.server, "capabilities.build_flags"))))
    if noted or not patches:
        return noted
    return [f"{_PATCHED} the server is not PostgreSQL as it was released: {patches}"]


SIGNS = tuple(
    Sign(_SYMBOLS[decision], str(decision), words)
    for decision, words in (
        (Decision.BETTER, "better"),
        (Decision.WORSE, "worse"),
        (Decision.EQUIVALENT, "no difference that matters"),
        (Decision.INCONCLUSIVE, "cannot tell"),
    )
)
"""The meanings of the signs in tables and charts."""


@dataclass(frozen=True)
class Statement:
    """One verdict in words: ``figure`` and ``claim`` make the headline, ``support`` backs it.

    ``reason`` is why nothing was decided; empty for a decision.
    """

    figure: str
    claim: str
    support: str
    reason: str = ""

    @property
    def headline(self) -> str:
        """The headline as one sentence."""
        return f"{self.figure} {self.claim}"


def metric_of(name: str, operation: str | None = None) -> Metric:
    """Return a metric in terms of its operation: "rows", "queries", or None for transactions.

    A metric unknown to this version is shown by its name.
    """
    metric = METRICS.get(name) or Metric(name, name, "", Better.NEITHER)
    if name not in METRICS or operation is None:
        return metric
    return replace(metric, title=counted(metric.title, operation), unit=counted(metric.unit, operation))


def counted(text: str, operation: str | None) -> str:
    """Return a text with the operation in place of transactions."""
    if operation is None:
        return text
    singular = SINGULARS.get(operation, operation)
    return text.replace("transactions", operation).replace("transaction", singular)


def direction_hint(metric: Metric) -> str:
    """Return which direction is an improvement, in words."""
    return "" if metric.better is Better.NEITHER else f"{metric.better} is better"


def symbol(decision: Decision) -> str:
    """Return the sign of a decision, for displays without colour."""
    return _SYMBOLS[decision]


def legend(margin: float) -> str:
    """Return the meaning of the signs, in one line."""
    return "  ".join(
        f"{sign.symbol} {sign.words}"
        + (f" (±{numbers.share(margin)})" if sign.decision == Decision.EQUIVALENT else "")
        for sign in SIGNS
    )


def state(verdict: Verdict, margin: float, operation: str | None = None) -> Statement:
    """Return a verdict in plain words. ``margin`` is the equivalence margin, e.g. 0.02.

    ``operation`` is the workload's unit; None: transactions.
    """
    title = metric_of(verdict.metric, operation).title
    if verdict.decision is Decision.INCONCLUSIVE or verdict.effect is None:
        return Statement("Not decided", f"for {title}", _measured(verdict), verdict.reason)
    if verdict.decision is Decision.EQUIVALENT:
        claim = f"in {title} beyond ±{numbers.share(margin)}"
        return Statement("No difference", claim, _measured(verdict))
    claim = counted(_direction(verdict.metric, is_rise=verdict.effect > 1), operation)
    return Statement(effect_text(verdict).lstrip(f"+{numbers.MINUS}"), claim, _interval(verdict))


def effect_text(verdict: Verdict) -> str:
    """Return the effect with the decimals of its interval."""
    if verdict.effect is None:
        return "no estimate"
    if verdict.interval is None:
        return numbers.change(verdict.effect)
    return numbers.change_within(verdict.effect, verdict.interval.low, verdict.interval.high)


def verdict_cells(verdict: Verdict) -> tuple[str, str, str]:
    """Return effect, interval and decision of a verdict, for a table."""
    bounds = numbers.interval(verdict.interval) if verdict.interval else ""
    return effect_text(verdict), bounds, f"{symbol(verdict.decision)} {verdict.decision}"


def answers(experiment: Experiment) -> tuple[str, ...]:
    """Return the experiment's answer, a sentence or two per variant: gains and losses by workload."""
    if found := knees(experiment):
        return tuple(_answer_of_curve(experiment, one) for one in found)
    if not experiment.verdicts:
        return (
            "There is no verdict: nothing was compared."
            if experiment.is_complete
            else "There is no verdict yet: the experiment was interrupted too early.",
        )
    variants = dict.fromkeys(verdict.variant for verdict in experiment.verdicts)
    return tuple(
        _answer_for(
            experiment,
            [verdict for verdict in experiment.verdicts if verdict.variant == variant],
            variant if len(variants) > 1 else None,
        )
        for variant in variants
    )


def _answer_of_curve(experiment: Experiment, found: CurveKnee) -> str:
    so_far = "" if experiment.is_complete else " so far"
    if found.knee is None:
        return f"{found.curve}: too few rounds count{so_far}."
    unit = found.unit.removesuffix("s") if str(found.knee) == "1" else found.unit
    return f"{found.curve}: the knee is {found.knee} {unit}{so_far}."


def primary_metric(verdicts: Iterable[Verdict]) -> str:
    """Return the leading metric: throughput, or the first one if it has no verdict."""
    names = [verdict.metric for verdict in verdicts]
    return THROUGHPUT if THROUGHPUT in names or not names else names[0]


def _answer_for(experiment: Experiment, verdicts: Sequence[Verdict], variant: str | None) -> str:
    leading = primary_metric(verdicts)
    found_on: dict[str, list[Verdict]] = {words: [] for words in (*_ANSWERS.values(), _MISSED, _FAILED)}
    for v in verdicts:
        if v.metric == leading:
            kept = is_comparable(experiment.blocks, v.workload, v.variant, v.baseline)
            words = _ANSWERS[v.decision] if kept else _MISSED
            words = _FAILED if is_forbidden(v, experiment.blocks) else words
            found_on[words].append(v)
    if experiment.tpch:  # of the 22 queries, name only those that got better or worse
        for decision in (Decision.EQUIVALENT, Decision.INCONCLUSIVE):
            alike = found_on[_ANSWERS[decision]]
            alike[:] = [v for v in alike if v.workload in tpch_runs(experiment)]
    parts = [f"{words} {_where(experiment, found)}" for words, found in found_on.items() if found]
    costs: dict[str, list[Verdict]] = {}
    for v in verdicts:
        if v.metric != leading and v.decision is Decision.WORSE:
            title = metric_of(v.metric, experiment.operations.get(v.workload)).title
            costs.setdefault(title, []).append(v)
    worse = [f"{title} on {_where(experiment, found)}" for title, found in costs.items()]
    found = "; ".join(parts) + (f". Worse: {'; '.join(worse)}" if worse else "")
    return f"{variant}: {found}." if variant else f"{sentence(found)}."


def _where(experiment: Experiment, verdicts: Sequence[Verdict]) -> str:
    """Return the workloads of equal verdicts, in words; cells of a grid are counted by load.

    A replay that differs too much from its captured workload is not named as if it were that workload.
    """
    names = step_names(experiment)
    others = {name for name, found in experiment.likenesses.items() if found.is_another_workload}
    places: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        cell = experiment.cells.get(verdict.workload)
        places.setdefault(cell.load if cell else names.get(verdict.workload, verdict.workload), []).append(
            verdict
        )
    loads = Counter(cell.load for cell in experiment.cells.values())
    shown = {place: f"a replay unlike {place}" if place in others else place for place in places}
    return listed(
        [
            f"{shown[place]} ({len(found)} of {loads[place]} cells{_effects(found)})"
            if place in loads
            else shown[place]
            for place, found in places.items()
        ]
    )


def _effects(verdicts: Sequence[Verdict]) -> str:
    """Return the range of the effects that were shown, in words."""
    shown = (Decision.BETTER, Decision.WORSE)
    effects = [v.effect for v in verdicts if v.effect is not None and v.decision in shown]
    if len(effects) < 2:
        return "".join(f", {numbers.change(effect)}" for effect in effects)
    return f", {numbers.change_range(min(effects), max(effects))}"


_ANSWERS = {
    Decision.BETTER: "better on",
    Decision.WORSE: "worse on",
    Decision.EQUIVALENT: "no difference that matters on",
    Decision.INCONCLUSIVE: "not decided on",
}
_MISSED = "background rate missed, so not compared, on"
_FAILED = "too many transactions failed, so not compared, on"


def _direction(metric: str, *, is_rise: bool) -> str:
    rise, fall = _DIRECTIONS.get(
        metric, (f"higher {metric_of(metric).title}", f"lower {metric_of(metric).title}")
    )
    return rise if is_rise else fall


def _measured(verdict: Verdict) -> str:
    if verdict.effect is None:
        return ""
    parts = (f"measured {effect_text(verdict)}", _interval(verdict))
    return ", ".join(part for part in parts if part)


def _interval(verdict: Verdict) -> str:
    if verdict.interval is None:
        return ""
    level = numbers.share(verdict.interval.level)
    return f"{level} interval {numbers.interval(verdict.interval)}"


def step_workloads(experiment: Experiment) -> tuple[str, ...]:
    """Return the workloads that are steps of a longer one, in order."""
    return tuple(name for name in experiment.workloads if name in experiment.operations)


def step_names(experiment: Experiment) -> dict[str, str]:
    """Return the short name of every step by its workload's name."""
    steps = step_workloads(experiment)
    return dict(zip(steps, short_names(steps), strict=True))


def tpch_runs(experiment: Experiment) -> tuple[str, ...]:
    """Return the workloads that are whole TPC-H-like runs, not single executions."""
    return tuple(workload for workload, name in step_names(experiment).items() if name in TPCH_RUNS)


def short_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names without the leading words common to all; words end with a hyphen."""
    shared = "".join(
        letters[0] for letters in takewhile(lambda same: len(set(same)) == 1, zip(*names, strict=False))
    )
    cut = shared.rfind("-") + 1
    return tuple(name[cut:] for name in names)


def bounds_text(interval: Interval) -> str:
    """Return both ends of an interval as ratios."""
    return f"{interval.low:.2f}–{interval.high:.2f}"


def half_width(verdict: Verdict) -> str:
    """Return half the width of a verdict's interval, for narrow columns: ``±0.03%``, ``±1.2%``, ``±14%``."""
    if verdict.interval is None:
        return ""
    width = verdict.interval.half_width
    digits = 0 if width >= _FINE else 1 if width >= _FINEST else 2
    return f"±{numbers.share(width, digits)}".replace(numbers.SPACE, "")


def compact(rate: float) -> str:
    """Return a rate in at most six characters: ``9,080``, ``239k``, ``1.04M``."""
    if rate < _THOUSANDS:
        return numbers.number(rate)
    return f"{rate / 1e3:.0f}k" if rate < _MILLIONS else f"{rate / 1e6:.2f}M"
