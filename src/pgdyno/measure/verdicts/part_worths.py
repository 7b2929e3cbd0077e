"""The worth of each part of a configuration, from its effect alone and the loss without it. Pure.

A part is a layer of a plan, a lever, or several small levers. All servers run in the same blocks.

    symbol  meaning                                                          unit
    T_0     throughput of the baseline                                       1/s
    T_w     throughput of the whole                                          1/s
    T_+p    throughput of the baseline with part p                           1/s
    T_-p    throughput of the whole without part p                           1/s

    alone        T_+p / T_0
    left out     T_w / T_-p
    worth        √(alone · left out)
    interaction  left out / alone
    remainder    (T_w / T_0) / product of all worths

If parts act on ln T and only pairs interact, each interaction is divided equally between its two parts, the
worths are Shapley values, and the remainder is 1. Another remainder shows that three or more parts interact.
Experiments of earlier versions have no T_+p: there, the worth is the loss without the part.

Source: Shapley (1953), Contributions to the Theory of Games II, 307-317.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgdyno.measure.verdicts.analysis import Weights, contrast_intervals
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.plans.plan import ONLY, PLAN, WITHOUT, Layer
from pgdyno.model.tuning.tuning import TUNED


@dataclass(frozen=True)
class PartEffect:
    """The effects of one part, as throughput ratios. ``interaction`` has a simultaneous level for all parts.

    ``alone`` and ``interaction`` None: the part was only measured left out.
    """

    name: str
    worth: Interval
    left_out: Interval
    alone: Interval | None = None
    interaction: Interval | None = None

    @property
    def is_distinguishable(self) -> bool:
        """Whether the worth differs from 1 at the interval's level."""
        return self.worth.low > 1 or self.worth.high < 1


@dataclass(frozen=True)
class Attribution:
    """The worths of all parts on one workload. ``parts`` are in descending order of worth.

    ``together`` is the joint worth of all indistinguishable parts; None if there are fewer than two.
    """

    workload: str
    parts: tuple[PartEffect, ...]
    together: Interval | None
    remainder: Interval
    whole: Interval

    @property
    def separate(self) -> tuple[PartEffect, ...]:
        """The parts listed separately: all, unless small ones are combined."""
        return tuple(one for one in self.parts if self.together is None or one.is_distinguishable)

    @property
    def small(self) -> tuple[PartEffect, ...]:
        """The combined parts."""
        return tuple(one for one in self.parts if one not in self.separate)


def attributed_parts(experiment: Experiment) -> list[str]:
    """Return the names of the parts that the whole was split into; empty if it was not split."""
    names = {one.name for one in experiment.variants}
    alone = [one.name.removeprefix(ONLY) for one in experiment.variants if one.name.startswith(ONLY)]
    return [part for part in alone if f"{WITHOUT}{part}" in names] or layers_left_out(experiment)


def layers_left_out(experiment: Experiment) -> list[str]:
    """Return the layers that were left out of the plan in some variant."""
    left_out = [one.name.removeprefix(WITHOUT) for one in experiment.variants if one.name.startswith(WITHOUT)]
    return [name for name in left_out if name in set(Layer)]


def whole_name(experiment: Experiment) -> str:
    """Return the name of the variant that was split: a search's answer if there is one, else the plan."""
    return TUNED if TUNED in {one.name for one in experiment.variants} else PLAN


def attributions(experiment: Experiment) -> tuple[Attribution, ...]:
    """Return the attribution on every workload with enough rounds; empty if the whole was not split."""
    parts = attributed_parts(experiment)
    found = (_attribution(experiment, workload, parts) for workload in experiment.workloads if parts)
    return tuple(one for one in found if one is not None)


def _attribution(experiment: Experiment, workload: str, names: Sequence[str]) -> Attribution | None:
    parts = [_PartArms.of(experiment, name) for name in names]
    whole = {parts[0].whole: 1.0, experiment.baseline: -1.0}
    worths = {one.name: one.worth for one in parts}
    rest = _sum([whole, *(_times(-1.0, weights) for weights in worths.values())])
    wanted = {
        _WHOLE: whole,
        _REMAINDER: rest,
        **{f"{kind} {one.name}": weights for one in parts for kind, weights in one.contrasts.items()},
    }
    known = contrast_intervals(experiment, workload, wanted)
    if len(known) < len(wanted):  # the parts of a sum are only known together
        return None
    interactions = _interactions(experiment, workload, parts)
    effects = tuple(
        PartEffect(
            one.name,
            known[f"worth {one.name}"],
            known[f"left out {one.name}"],
            known.get(f"alone {one.name}"),
            interactions.get(one.name),
        )
        for one in parts
    )
    return Attribution(
        workload,
        tuple(sorted(effects, key=lambda one: -one.worth.point)),
        _together(experiment, workload, [worths[one.name] for one in effects if not one.is_distinguishable]),
        known[_REMAINDER],
        known[_WHOLE],
    )


def _interactions(
    experiment: Experiment, workload: str, parts: Sequence[_PartArms]
) -> Mapping[str, Interval]:
    """Return the interactions with simultaneous intervals (Bonferroni)."""
    level = 1 - (1 - experiment.design.level) / len(parts)
    wanted = {one.name: one.interaction for one in parts if one.is_alone}
    return contrast_intervals(experiment, workload, wanted, level=level)


def _together(experiment: Experiment, workload: str, worths: Sequence[Weights]) -> Interval | None:
    """Return the joint worth of several parts; None for fewer than two."""
    if len(worths) < 2:
        return None
    return contrast_intervals(experiment, workload, {_WHOLE: _sum(worths)}).get(_WHOLE)


_WHOLE, _REMAINDER = "", "*"  # no part has these names


@dataclass(frozen=True)
class _PartArms:
    """The arms that determine a part's worth: baseline, whole, and those without it and with it alone."""

    name: str
    baseline: str
    whole: str
    is_alone: bool

    @classmethod
    def of(cls, experiment: Experiment, name: str) -> _PartArms:
        arms = {one.name for one in experiment.variants}
        return cls(name, experiment.baseline, whole_name(experiment), f"{ONLY}{name}" in arms)

    @property
    def contrasts(self) -> Mapping[str, Weights]:
        found = {"worth": self.worth, "left out": self.left_out}
        return {**found, "alone": self.alone} if self.is_alone else found

    @property
    def left_out(self) -> Weights:
        return {self.whole: 1.0, f"{WITHOUT}{self.name}": -1.0}

    @property
    def alone(self) -> Weights:
        return {f"{ONLY}{self.name}": 1.0, self.baseline: -1.0}

    @property
    def worth(self) -> Weights:
        if not self.is_alone:
            return self.left_out
        return _times(0.5, _sum([self.left_out, self.alone]))

    @property
    def interaction(self) -> Weights:
        return _sum([self.left_out, _times(-1.0, self.alone)])


def _times(factor: float, weights: Weights) -> Weights:
    return {arm: factor * weight for arm, weight in weights.items()}


def _sum(contrasts: Sequence[Weights]) -> Weights:
    arms = dict.fromkeys(arm for weights in contrasts for arm in weights)
    return {arm: sum(weights.get(arm, 0.0) for weights in contrasts) for arm in arms}
