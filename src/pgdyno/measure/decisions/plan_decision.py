"""Decide whether a plan pays: the first state below that applies, and a sentence. Pure.

    slower somewhere       a workload is shown to have lost more than ``max_loss`` of its throughput
    more fail              more transactions fail with the plan than allowed (verdicts/failures.py)
    pays                   faster, nowhere slower, and every tail safe
    faster, tail worse     faster, nowhere slower, and a tail shown to be longer
    faster, tail unknown   faster, nowhere slower, and no tail shown to be longer
    nothing to gain        no workload can have gained enough to make the change worthwhile
    undecided              none of these; more rounds would decide

    symbol  meaning                                                          unit
    T_w     throughput of workload w, plan / baseline                        1
    L_w     mean of the slowest 5 % of its latencies, plan / baseline        1
    Q_w     99th percentile of its latencies, plan / baseline                1
    A_w     L_w of stretches in which no other server has load, if w writes  1
    g       gain that makes the change worthwhile                            1

slower          the upper bound of some T_w, at 5 % over the number of workloads and with the bias of an
                experiment (decision 68), is below 1 - max_loss
faster          some T_w > 1 + g at a one-sided 2.5 %, by Holm over the workloads: a single plan is tested
nowhere slower  the lower one-sided 95 % bound of every T_w is at least 1 - max_loss
safe            the upper one-sided 95 % bound of L_w is at most 1 + max_tail_loss, both as the mean of the
                log-ratios of rounds and as the ratio of the means over all rounds, which reveals a stall in a
                single round; that of Q_w is at most 1 + max_p99_loss, and that of A_w at most
                1 + max_stretch_loss
longer          some L_w, Q_w or A_w has a bound that is too high, and a lower bound, at 5 % over the number
                of all of them, above 1

If an experiment may end early, all these errors except that of *longer* are split: a fifth is spent at the
look, the rest at the end. The error of A_w is not split, because A_w has no new figures after the look.

If the plan is measured together with the part of it to be applied, the part is decided first, and the whole
plan can pay only if the part does. So both use one error undivided (fixed sequence: Maurer, Hothorn,
Lehmacher 1995, Biometrie in der chemisch-pharmazeutischen Industrie 6, 3-18).

A plan that makes some workload slower, or some tail longer, by more than the limits gets "pays" in at most
5 % of experiments. All bounds must hold together, so none is corrected for the others (intersection-union:
Berger 1982, Technometrics 24, 295-300). Drift withholds nothing here: if it is evident, the bounds are those
of the worse half of the rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from pgdyno.base import numbers
from pgdyno.measure.decisions.plan_outcome import BOUND, Estimate, Outcome, outcomes_of
from pgdyno.measure.decisions.stopping import round_s
from pgdyno.measure.verdicts import failures
from pgdyno.measure.verdicts.durability import doubts
from pgdyno.measure.verdicts.statements import costliest
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.likeness import LEAST_LIKENESS
from pgdyno.model.experiments.statements import StatementCount
from pgdyno.model.plans.plan import Terms, applied_of

LOOK_ERROR = 0.2 * BOUND
"""The error of a bound at a look before the end; the rest of ``BOUND`` is spent at the end."""
_FASTER = 0.025
_NOTHING = 1.02  # a gain below 2 % does not justify any change to a server
_MUCH = 0.2  # arbitrary: of all statements' time
_LONGEST = 30.0  # times the rounds so far: longer runs are not advised


class PlanState(StrEnum):
    """The possible states of a plan."""

    SLOWER = "slower somewhere"
    FAILING = "more transactions fail"
    PAYS = "pays"
    TAIL_WORSE = "faster, tail worse"
    TAIL_UNKNOWN = "faster, tail unknown"
    NOTHING = "nothing to gain"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class PlanDecision:
    """The state of a plan, a sentence for the decision maker, and supporting figures.

    ``rounds_to_decide`` is about how many more rounds would decide; None: decided, or no number would.
    """

    state: PlanState
    sentence: str
    reasons: tuple[str, ...]
    outcomes: tuple[Outcome, ...] = ()
    rounds_to_decide: int | None = None

    @property
    def pays(self) -> bool:
        """Whether the plan may be applied."""
        return self.state is PlanState.PAYS


def decide_plan(experiment: Experiment, variant: str, terms: Terms) -> PlanDecision:
    """Return the decision on a variant compared with its baseline."""
    if why := doubts(experiment, experiment.baseline, variant):
        sentence = "The plan was not measured fairly: its server was not as durable as the baseline's."
        return PlanDecision(PlanState.UNDECIDED, sentence, why)
    outcomes = outcomes_of(experiment, variant, final_error(terms))
    decision = _with_failures(experiment, variant, decide(outcomes, terms))
    applied = applied_of([one.name for one in experiment.variants])
    if decision.pays and terms.looks > 1 and applied != variant:
        part = decide_plan(experiment, applied, terms)
        if not part.pays:
            rest = f"the plan {applied.replace('-', ' ', 1)}"
            sentence = f"Undecided whether the plan pays: {rest} is not shown to pay."
            decision = PlanDecision(PlanState.UNDECIDED, sentence, decision.reasons, decision.outcomes)
    where = _where_time_goes(experiment) if decision.state is PlanState.NOTHING else ""
    return replace(decision, sentence=f"{decision.sentence}{where}{_unlike(experiment)}")


def _with_failures(experiment: Experiment, variant: str, decision: PlanDecision) -> PlanDecision:
    """Return the decision with failed transactions considered: neither side's rate may be due to them."""
    is_slower, baseline = decision.state is PlanState.SLOWER, experiment.baseline
    pair = (baseline, variant) if is_slower else (variant, baseline)
    reasons = [why for one in experiment.workloads if (why := failures.doubts(experiment.blocks, one, *pair))]
    if not reasons:
        return decision
    state = PlanState.UNDECIDED
    if is_slower:
        sentence = "Undecided whether the plan pays: too many transactions failed without it."
    elif any(failures.is_shown(experiment.blocks, one, *pair) for one in experiment.workloads):
        state, sentence = PlanState.FAILING, "The plan does not pay: more transactions fail with it."
    elif decision.state in _REJECTED:
        return decision
    else:
        sentence = "Undecided whether the plan pays: too many transactions fail, or may fail, with it."
    return PlanDecision(state, sentence, tuple(reasons), decision.outcomes)


def _where_time_goes(experiment: Experiment) -> str:
    """Return sentences on the statements that take much of the baseline's time; empty without any."""
    found = ((one, costliest(experiment, one)) for one in experiment.workloads)
    much = [f" {_costliest_text(name, *one)}" for name, one in found if one and one[1] >= _MUCH]
    return "".join(much) + (" pgdyno profile shows its plan." if much else "")


def _costliest_text(workload: str, name: str, share: float, count: StatementCount) -> str:
    blocks, rows = (numbers.plain(each / count.calls) for each in (count.blocks, count.rows))
    per_call = f"{blocks} blocks and {rows} rows per call"
    return f"On {workload}, {numbers.share(share, 0)} of the statements' time is {name}, with {per_call}."


def _unlike(experiment: Experiment) -> str:
    """Return a sentence on replays that differ from their captured workloads; empty if none does."""
    found = {name: one for name, one in experiment.likenesses.items() if one.least < LEAST_LIKENESS}
    if not found:
        return ""
    listed = ", ".join(f"{one.least:.2f} of {name}" for name, one in found.items())
    is_another = any(one.is_another_workload for one in found.values())
    return f" The replay {'is not' if is_another else 'only resembles'} your workload (likeness {listed})."


def minutes_to_decide(experiment: Experiment, decision: PlanDecision) -> float | None:
    """Return the minutes that deciding would still take; None if decided, or no time would be enough."""
    more = decision.rounds_to_decide
    return None if more is None else more * round_s(experiment) / 60


def decide(outcomes: Sequence[Outcome], terms: Terms) -> PlanDecision:
    """Return the decision, with the number of further rounds needed if it is open."""
    state = state_of(outcomes, terms)
    more = _rounds_to_decide(outcomes, terms) if state in _OPEN else None
    return PlanDecision(
        state,
        _sentence(state, outcomes, terms),
        (*map(_reason, outcomes), *(_unseen(outcomes) if state in _WITH_TAILS else ())),
        tuple(outcomes),
        more,
    )


def state_of(outcomes: Sequence[Outcome], terms: Terms, *, error: float | None = None) -> PlanState:
    """Return the first state of the module's table that the bounds show.

    ``error`` is the error of each bound; None: the one left for the end.
    """
    error = final_error(terms) if error is None else error
    throughput = [one.throughput for one in outcomes if one.throughput is not None]
    if any(one.upper_with_bias(error / len(outcomes)) < 1 - terms.max_loss for one in throughput):
        return PlanState.SLOWER
    if not outcomes or len(throughput) < len(outcomes):
        return PlanState.UNDECIDED
    nowhere_slower = all(one.lower(error) >= 1 - terms.max_loss for one in throughput)
    if faster_on(outcomes, terms, error) and nowhere_slower:
        return _state_of_tails(outcomes, terms, error)
    if all(one.upper(error) < max(_NOTHING, 1 + terms.min_gain) for one in throughput):
        return PlanState.NOTHING
    return PlanState.UNDECIDED


def faster_on(outcomes: Sequence[Outcome], terms: Terms, error: float = BOUND) -> tuple[str, ...]:
    """Return the workloads with more than the required gain, by Holm's step-down, at half of ``error``."""
    known = [
        (one.throughput.p_at_most(1 + terms.min_gain), one.workload) for one in outcomes if one.throughput
    ]
    found: list[str] = []
    for rank, (p, workload) in enumerate(sorted(known)):
        if p > error * _FASTER / BOUND / (len(outcomes) - rank):
            break
        found.append(workload)
    return tuple(one.workload for one in outcomes if one.workload in found)


def is_futile(outcomes: Sequence[Outcome], terms: Terms) -> bool:
    """Whether more measuring is futile: the plan costs throughput, or has nothing to gain."""
    return state_of(outcomes, terms, error=LOOK_ERROR) in FUTILE


def pays_at_look(outcomes: Sequence[Outcome], terms: Terms) -> bool:
    """Whether an experiment may end now, before its last round, because the plan pays."""
    return state_of(outcomes, terms, error=LOOK_ERROR) is PlanState.PAYS


def final_error(terms: Terms) -> float:
    """Return the error of each bound at the end."""
    return BOUND if terms.looks == 1 else BOUND - LOOK_ERROR


FUTILE = (PlanState.SLOWER, PlanState.NOTHING)
_REJECTED = (*FUTILE, PlanState.TAIL_WORSE)
_WITH_TAILS = (PlanState.PAYS, PlanState.TAIL_WORSE, PlanState.TAIL_UNKNOWN)
_OPEN = (PlanState.UNDECIDED, PlanState.TAIL_UNKNOWN)


def _state_of_tails(outcomes: Sequence[Outcome], terms: Terms, error: float) -> PlanState:
    tails = [(one.tail, terms.max_tail_loss, error) for one in outcomes]
    tails += [(one.p99, terms.max_p99_loss, error) for one in outcomes if one.p99 is not None]
    tails += [(one.alone, terms.max_stretch_loss, BOUND) for one in outcomes if one.has_stretches]
    unsafe = [one for one, longer, at in tails if one is None or one.upper(at) > 1 + longer]
    may_stall = any(one.stalls and one.stalls.upper > 1 + terms.max_tail_loss for one in outcomes)
    if not unsafe and not may_stall:
        return PlanState.PAYS
    if any(one is not None and one.lower(BOUND / len(tails)) > 1 for one in unsafe):
        return PlanState.TAIL_WORSE
    return PlanState.TAIL_UNKNOWN


def _rounds_to_decide(outcomes: Sequence[Outcome], terms: Terms) -> int | None:
    """Return how many more rounds would decide if the estimates were exact; None if too many."""
    known = [each for one in outcomes for each in (one.throughput, one.tail, one.p99) if each is not None]
    if not known or any(one.throughput is None for one in outcomes):
        return None
    run = max(each.rounds for each in known)
    for rounds in np.unique(np.geomspace(run + 1, run * _LONGEST, 60).astype(int)):
        later = [
            replace(
                one,
                throughput=one.throughput and one.throughput.after(int(rounds)),
                tail=one.tail and one.tail.after(int(rounds)),
                p99=one.p99 and one.p99.after(int(rounds)),
                stalls=one.stalls and one.stalls.after(int(rounds)),
            )
            for one in outcomes
        ]
        if state_of(later, terms) not in _OPEN:
            return int(rounds) - run
    return None


def _sentence(state: PlanState, outcomes: Sequence[Outcome], terms: Terms) -> str:
    gains = _gains(outcomes) or "too few rounds count"
    worthwhile = max(_NOTHING - 1, terms.min_gain)
    return {
        PlanState.SLOWER: f"The plan does not pay, a workload is slower: {gains}.",
        PlanState.PAYS: f"The plan pays: {gains}; {_guarded(outcomes, terms)}.",
        PlanState.TAIL_WORSE: f"The plan is faster, but its slowest transactions take longer: {gains}.",
        PlanState.TAIL_UNKNOWN: f"The plan is faster: {gains}. Its slowest transactions may take longer.",
        PlanState.NOTHING: f"No gain by the plan: no workload can be {numbers.share(worthwhile, 0)} faster.",
        PlanState.UNDECIDED: f"Undecided whether the plan pays: {gains}.",
    }[state]


def _guarded(outcomes: Sequence[Outcome], terms: Terms) -> str:
    """Return the limits that no latency can have exceeded, in words."""
    longer = numbers.share(terms.max_tail_loss, 0)
    mean = f"on no workload can the mean of the slowest 5{numbers.SPACE}% of transactions be {longer} longer"
    if alone := [one.workload for one in outcomes if one.has_stretches]:
        longest = numbers.share(terms.max_stretch_loss, 0)
        mean += f" (on {' and '.join(alone)}, {longest} while no other server had load)"
    if all(one.p99 is None for one in outcomes):
        return mean
    return f"{mean}, or the 99th percentile {numbers.share(terms.max_p99_loss, 0)}"


def _gains(outcomes: Sequence[Outcome]) -> str:
    return ", ".join(
        f"throughput {_percent(one.throughput)} on {one.workload}" for one in outcomes if one.throughput
    )


def _reason(outcome: Outcome) -> str:
    throughput = "unknown" if outcome.throughput is None else _percent(outcome.throughput)
    tail = "unknown" if outcome.tail is None else _percent(outcome.tail)
    p99 = "" if outcome.p99 is None else f", 99th percentile {_percent(outcome.p99)}"
    stalls = outcome.stalls
    over_all = (
        ""
        if stalls is None
        else f", over all rounds together {numbers.change(stalls.ratio, 1)} (at most "
        f"{numbers.change(stalls.upper, 1)})"
    )
    alone = ""
    if outcome.has_stretches:
        found = "unknown" if outcome.alone is None else _percent(outcome.alone)
        alone = f", while no other server had load {found}"
    return f"{outcome.workload}: throughput {throughput}, tail of latency {tail}{over_all}{alone}{p99}"


def _unseen(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield how rare a stall must be to be missed by these rounds: the rule of three, at 95 %."""
    rounds = min((one.stalls.rounds for one in outcomes if one.stalls), default=0)
    if rounds:
        yield f"a stall that occurs in fewer than 3 of {rounds} rounds on average may have been missed"


def _percent(found: Estimate) -> str:
    """Return an effect with its 95 % interval: each end at 2.5 %."""
    low, high = found.lower(_FASTER), found.upper(_FASTER)
    return f"{numbers.change(found.ratio, 1)} ({numbers.change(low, 1)} … {numbers.change(high, 1)})"
