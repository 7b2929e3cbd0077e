"""The decision on an experiment's plan, with the next step. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pgdyno.accelerate.view.per_application import without_per_application
from pgdyno.base import numbers
from pgdyno.measure.decisions.plan_decision import PlanDecision, PlanState, decide_plan, minutes_to_decide
from pgdyno.measure.decisions.stopping import round_s
from pgdyno.measure.view.awake_sentence import awake_remark
from pgdyno.measure.view.words import symbol
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.failures import MOST_FAILED_SHARE
from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.plans.terms import PLAN, Terms

_STYLES = {
    PlanState.PAYS: Decision.BETTER,
    PlanState.SLOWER: Decision.WORSE,
    PlanState.FAILING: Decision.WORSE,
    PlanState.TAIL_WORSE: Decision.WORSE,
    PlanState.NOTHING: Decision.EQUIVALENT,
}
"""The colour and the sign of a state; what is open has those of "cannot tell"."""


@dataclass(frozen=True)
class DecisionBox:
    """The state of a plan in words. ``terms`` are its requirements: name, limit."""

    state: str
    style: str
    symbol: str
    sentence: str
    more: str  # how much longer it would take; empty if it is decided, or no time would
    whole: str  # on the whole plan, where what suits only some applications was left out; otherwise empty
    remark: str  # in which idle state the figures hold, where CPUs were kept awake
    reasons: tuple[str, ...]
    terms: tuple[tuple[str, str], ...]


def decision_box(experiment: Experiment) -> DecisionBox | None:
    """Return the decision on the plan; None without a plan, or if its experiment did not end."""
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
    """Say how much longer it would take to decide; nothing if it is decided, or no time would."""
    more = minutes_to_decide(experiment, decision)
    if more is None:
        return ""
    so_far = experiment.design.rounds * round_s(experiment) / 60
    about = "Less than a minute more" if more < 1 else f"About {math.ceil(more)} more minutes"
    return f"{about} would tell: --budget {math.ceil(so_far + more) + 1}m."


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
