"""The best degree of each query. Pure.

The variants differ only in max_parallel_workers_per_gather.

Each query has a curve over the requested degrees, with a knee: the smallest degree with at least 95 % of the
highest rate. The knee is estimated twice. *By itself*, each of its bounds holds with 95 %, regardless of
other queries. *Together*, all bounds of all queries hold with 95 %, each with 1 − 5 % / their number
(Bonferroni, because disturbances affect all queries of a pass). A query without workers in any plan is
omitted: all its variants have the same plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from pgdyno.measure.verdicts.scaling import LEAST_ROUNDS
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import LAUNCHED_WORKERS, PLANNED_WORKERS, THROUGHPUT
from pgdyno.model.experiments.scaling import Knee, Level
from pgdyno.model.experiments.step_record import PREFIX, REFRESHES, TPCH_RUNS, TpchFacts
from pgdyno.model.variants.variant import Variant
from pgdyno.stats.curves.knee import LEVEL
from pgdyno.stats.curves.scaling_law import observe

SETTING = "max_parallel_workers_per_gather"
_LEAST_LEVELS = 2
_ENDS = 2  # a knee can be wrong at its lower or at its upper bound


@dataclass(frozen=True)
class QueryDegree:
    """One query, or one of the two runs. Degrees are the setting's limits.

    ``alone`` and ``together`` are the knee; None if no degree gives it workers. ``planned`` are workers by
    degree: their mean over the passes if the server counts them, else those of the validation run's plan.
    ``launched`` is the share of planned workers that were launched, by degree. ``set_to`` is the degree to
    set for a query: its knee, if it is certain jointly with all others and workers were planned.
    """

    name: str
    levels: tuple[Level, ...]
    fastest: int
    alone: Knee | None
    together: Knee | None
    set_to: int | None
    planned: Mapping[int, float]
    launched: Mapping[int, float]


@dataclass(frozen=True)
class QueryDegrees:
    """All queries of variants that differ only in the degree; ``common`` is their common part.

    ``compared`` is the number of knees that hold jointly. ``queries`` is empty if too few rounds are valid.
    """

    common: str
    degrees: tuple[int, ...]
    compared: int
    queries: tuple[QueryDegree, ...]


@dataclass(frozen=True)
class _Measured:
    """Measurements of one query: rates by degree and round, worker metrics by degree.

    ``by_plan`` has the workers of the validation run's plans by degree.
    """

    name: str
    rounds: Sequence[Mapping[int, float]]
    counted: Mapping[int, float]
    launched: Mapping[int, float]
    by_plan: Mapping[int, int]

    @property
    def is_enough(self) -> bool:
        return len(self.rounds) >= LEAST_ROUNDS

    @property
    def may_have_workers(self) -> bool:
        """Whether the degree can affect the query; assumed so if no server counts workers."""
        return not self.counted or any(self.counted.values())


def query_degrees(experiment: Experiment) -> tuple[QueryDegrees, ...]:
    """Return the best degrees, one entry per combination of the other varied factors.

    Empty if no two variants differ only in the degree, or for other workloads.
    """
    facts = experiment.tpch
    if facts is None:
        return ()
    groups = _groups(experiment.variants)
    measured = {
        common: [one for one in _measured(experiment, facts, degrees) if one.is_enough]
        for common, degrees in groups.items()
    }
    compared = sum(one.may_have_workers for found in measured.values() for one in found)
    return tuple(
        QueryDegrees(
            common,
            tuple(sorted(set(degrees.values()))),
            compared,
            tuple(_analysed(one, compared) for one in measured[common]),
        )
        for common, degrees in groups.items()
    )


def _groups(variants: Sequence[Variant]) -> dict[str, dict[str, int]]:
    """Return the degrees of variants by name, per combination of server and other settings."""
    groups: dict[str, dict[str, int]] = defaultdict(dict)
    for variant in variants:
        degree = variant.settings.get(SETTING, "")
        if degree.isdecimal():
            others = [f"{name}={value}" for name, value in variant.settings.items() if name != SETTING]
            groups[", ".join(filter(None, (variant.server, *others)))][variant.name] = int(degree)
    return {
        common: degrees for common, degrees in groups.items() if len(set(degrees.values())) >= _LEAST_LEVELS
    }


def _measured(experiment: Experiment, facts: TpchFacts, degrees: Mapping[str, int]) -> Iterator[_Measured]:
    for workload in experiment.workloads:
        name = workload.removeprefix(PREFIX)
        if name in REFRESHES:  # they never have workers
            continue
        rates = _by_round(experiment, workload, THROUGHPUT, degrees)
        yield _Measured(
            name,
            [of_round for of_round in rates if len(of_round) >= _LEAST_LEVELS],
            _means(_by_round(experiment, workload, PLANNED_WORKERS, degrees)),
            _means(_by_round(experiment, workload, LAUNCHED_WORKERS, degrees)),
            {
                degree: facts.plans[variant][name].most_workers
                for variant, degree in degrees.items()
                if name in facts.plans.get(variant, {})
            },
        )


def _by_round(
    experiment: Experiment, workload: str, metric: str, degrees: Mapping[str, int]
) -> list[Mapping[int, float]]:
    """Return a metric by degree, round by round, without void blocks."""
    rounds: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for block in (one for one in experiment.blocks if one.workload == workload):
        for arm in block.arms:
            if arm.variant in degrees and metric in arm.values and not block.void_for(arm.variant):
                rounds[block.round][degrees[arm.variant]].append(arm.values[metric])
    return [{degree: fmean(found) for degree, found in of_round.items()} for of_round in rounds.values()]


def _means(rounds: Sequence[Mapping[int, float]]) -> dict[int, float]:
    degrees = sorted({degree for of_round in rounds for degree in of_round})
    return {degree: fmean(one[degree] for one in rounds if degree in one) for degree in degrees}


def _analysed(one: _Measured, compared: int) -> QueryDegree:
    alone = observe(one.rounds)
    together = (
        observe(one.rounds, level=1 - (1 - LEVEL) / (_ENDS * compared)).knee if one.may_have_workers else None
    )
    planned = one.counted or one.by_plan
    is_certain = together is not None and together.low == together.high
    is_for_a_query = one.name not in TPCH_RUNS and (any(planned.values()) or not planned)
    return QueryDegree(
        one.name,
        alone.levels,
        alone.best,
        alone.knee if one.may_have_workers else None,
        together,
        together.low if together and is_certain and is_for_a_query else None,
        planned,
        one.launched,
    )
