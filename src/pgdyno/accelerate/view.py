"""The decision on a plan with the next step, its effect at load, and the text of a watch. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pgdyno.base import numbers
from pgdyno.base.text import lower_first, sentence
from pgdyno.measure.decisions.plan_decision import PlanDecision, PlanState, decide_plan, minutes_to_decide
from pgdyno.measure.decisions.stopping import round_s
from pgdyno.measure.decisions.watch_decision import LEAST_TRANSACTIONS, Watched, WatchState
from pgdyno.measure.view.awake_sentence import awake_remark
from pgdyno.measure.view.wording import metric_of, symbol
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.failures import MOST_FAILED_SHARE
from pgdyno.model.experiments.verdict import AtLoad, Decision, LatencyAtLoad
from pgdyno.model.plans.plan import PLAN, Terms, left_out_per_application
from pgdyno.report.elements.tables import NOTHING, Table, columns

_STYLES = {
    PlanState.PAYS: Decision.BETTER,
    PlanState.SLOWER: Decision.WORSE,
    PlanState.FAILING: Decision.WORSE,
    PlanState.TAIL_WORSE: Decision.WORSE,
    PlanState.NOTHING: Decision.EQUIVALENT,
}
"""The colour and the symbol of a state; undecided states use those of "inconclusive"."""


@dataclass(frozen=True)
class PerApplication:
    """The settings left out of the plan, and the decision on the rest of it."""

    variant: str
    settings: tuple[str, ...]
    decision: PlanDecision

    @property
    def sentence(self) -> str:
        """The sentence on the plan without these settings."""
        return f"Without {self._names}, which pgdyno never applies, {lower_first(self.decision.sentence)}"

    def whole_sentence(self, whole: PlanDecision) -> str:
        """Return the sentence on the whole plan."""
        only = "only statements prepared by name gain from it"
        return f"With {self._names} ({only}) {lower_first(whole.sentence)}"

    @property
    def _names(self) -> str:
        return " and ".join(self.settings)


@dataclass(frozen=True)
class DecisionBox:
    """The state of a plan in words. ``terms`` are its requirements: name, limit."""

    state: str
    style: str
    symbol: str
    sentence: str
    more: str  # additional time to a decision; empty if decided, or if no amount of time suffices
    whole: str  # on the whole plan, if per-application settings were left out; otherwise empty
    remark: str  # idle state for which the figures hold, if CPUs were kept awake
    reasons: tuple[str, ...]
    terms: tuple[tuple[str, str], ...]


def decision_box(experiment: Experiment) -> DecisionBox | None:
    """Return the decision on the plan; None without a plan, or if its experiment is incomplete."""
    if experiment.terms is None or not experiment.is_complete or not experiment.blocks:
        return None
    whole = decide_plan(experiment, PLAN, experiment.terms)
    without = without_per_application(experiment)
    decision = whole if without is None else without.decision
    style = _STYLES.get(decision.state, Decision.INCONCLUSIVE)
    return DecisionBox(
        decision.state.value,
        style.value,
        symbol(style),
        decision.sentence if without is None else without.sentence,
        more_sentence(experiment, decision),
        "" if without is None else without.whole_sentence(whole),
        awake_remark(experiment),
        decision.reasons,
        _terms(experiment.terms, has_stretches=any(one.has_stretches for one in decision.outcomes)),
    )


def more_sentence(experiment: Experiment, decision: PlanDecision) -> str:
    """Return the additional time to a decision; empty if decided, or if no amount of time suffices."""
    more = minutes_to_decide(experiment, decision)
    if more is None:
        return ""
    so_far = experiment.design.rounds * round_s(experiment) / 60
    about = "Less than a minute more" if more < 1 else f"About {math.ceil(more)} more minutes"
    return f"{about} would decide: --budget {math.ceil(so_far + more) + 1}m."


def _terms(terms: Terms, *, has_stretches: bool) -> tuple[tuple[str, str], ...]:
    """Return the conditions of "pays" with their limits."""
    alone = (
        f"Mean of the slowest 5{numbers.SPACE}% while no other server had load",
        f"at most {numbers.share(terms.max_stretch_loss)} longer, on every workload that writes",
    )
    gain = f"more than {numbers.share(terms.min_gain)}" if terms.min_gain else "any gain"
    return (
        ("Worthwhile gain of throughput", f"{gain}, on at least one workload"),
        ("Loss of throughput", f"at most {numbers.share(terms.max_loss)}, on every workload"),
        (
            "Failed transactions",
            f"at most {numbers.share(MOST_FAILED_SHARE)}, and one point more than before, on every workload",
        ),
        (
            f"Mean of the slowest 5{numbers.SPACE}% of transactions",
            f"at most {numbers.share(terms.max_tail_loss)} longer, on every workload",
        ),
        ("99th percentile", f"at most {numbers.share(terms.max_p99_loss)} longer, on every workload"),
        *((alone,) if has_stretches else ()),
    )


def at_load_table(experiment: Experiment) -> Table | None:
    """Return the latencies of every workload; None if none was measured at a fixed rate."""
    if not experiment.at_load:
        return None
    share = numbers.share(experiment.at_load[0].share)
    level = numbers.share(experiment.design.level)
    return Table(
        f"Latencies at {share} of the baseline's throughput: it and the server with the whole plan get the "
        "same transactions at the same instants; latencies count from the intended start. Without a verdict",
        columns("Workload", "Metric", "Before", "After", "Effect", level, numbers_from=2),
        tuple(_row(one, latency) for one in experiment.at_load for latency in one.latencies),
    )


def _row(one: AtLoad, latency: LatencyAtLoad) -> tuple[str, ...]:
    metric, ratio = metric_of(latency.metric), latency.ratio
    return (
        f"{one.workload}, {numbers.number(one.rate_tps)}/s",
        sentence(metric.title),
        numbers.quantity(metric, latency.baseline_ms),
        numbers.quantity(metric, latency.plan_ms),
        NOTHING if ratio is None else numbers.change_within(ratio.point, ratio.low, ratio.high),
        NOTHING if ratio is None else numbers.interval(ratio),
    )


def without_per_application(experiment: Experiment) -> PerApplication | None:
    """Return the results without per-application settings; None if they were not measured."""
    if experiment.terms is None:
        return None
    for variant in experiment.variants:
        if settings := left_out_per_application(variant.name):
            decision = decide_plan(experiment, variant.name, experiment.terms)
            return PerApplication(variant.name, settings, decision)
    return None


def watch_text(seen: Watched) -> str:
    """Return the observations, and the configuration in force."""
    now = "The plan is in force." if seen.is_applied else "The original configuration is in force."
    alarm = "ALARM: " if seen.is_alarm else ""
    return f"{alarm}{_observations(seen)} {now}"


def _observations(seen: Watched) -> str:
    of = f"{seen.pairs} of {seen.pairs_planned} pairs of periods"
    mean = "" if seen.ratio is None else f"mean time per transaction {numbers.change(seen.ratio, 1)}"
    if seen.state is WatchState.HARM:
        return f"The server's own transactions take longer with the plan: {mean}, {of}."
    if seen.state is WatchState.NO_HARM:
        return f"The server's own transactions show no harm from the plan: {mean}, {of}."
    if seen.state is WatchState.TOO_LITTLE:
        return (
            f"Too little traffic to detect harm: {of} had at least {LEAST_TRANSACTIONS} transactions in each."
        )
    return f"The watch ended early: {seen.reason}."
