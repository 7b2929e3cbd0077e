"""Compare pgdyno's configurations with every peer's, by workload. Pure.

Both run in the same blocks, so their ratio needs no baseline. The fastest peer is the one with the largest
ratio to the baseline. It is selected by the same figures that it is compared by, so chance favours it
(selection bias): the gain of pgdyno's configurations is underestimated, never overestimated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgdyno.measure.verdicts.analysis import contrast_intervals
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.step_record import PREFIX, TPCH_RUNS
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.plans.plan import (
    PLAN,
    SETTINGS_ALONE,
    WHOLE_STACK,
    WITH_HOST,
    left_out_per_application,
)
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.peers import load

_FEWEST_PEERS = 2  # with a single peer, the verdicts on both are enough


@dataclass(frozen=True)
class PeerEffects:
    """Throughput ratios of pgdyno's configurations to each peer's on one workload.

    ``ratios`` are by peer, the fastest first, then by configuration. ``left_out`` names peers and pairs that
    cannot be compared, because significantly more transactions failed on one side.
    """

    workload: str
    ratios: Mapping[str, Mapping[str, Interval]]
    left_out: tuple[str, ...] = ()

    @property
    def fastest(self) -> str:
        """The name of the fastest peer."""
        return next(iter(self.ratios))


def own_arms_of(experiment: Experiment) -> list[str]:
    """Return the names of pgdyno's configurations, in order."""
    return [one.name for one in experiment.variants if _is_own(one.name)]


def _is_own(name: str) -> bool:
    part = name.removeprefix(f"{WHOLE_STACK}-")
    return name in (PLAN, WHOLE_STACK, SETTINGS_ALONE) or bool(left_out_per_application(part))


def peers_of(experiment: Experiment) -> list[str]:
    """Return the names of the other configurations; empty if fewer than two are known peers'."""
    ours = {*own_arms_of(experiment), experiment.baseline}
    others = [one.name for one in experiment.variants if one.name not in ours]
    return others if len(load().keys() & set(others)) >= _FEWEST_PEERS and len(ours) > 1 else []


def added_to_peers(experiment: Experiment) -> list[Variant]:
    """Return the configurations other than the baseline, those of known peers and those of pgdyno."""
    with_host = (f"{name}{WITH_HOST}" for name in load())
    known = {*load(), *with_host, *own_arms_of(experiment), experiment.baseline}
    return [one for one in experiment.variants if one.name not in known]


def peer_effects(experiment: Experiment) -> tuple[PeerEffects, ...]:
    """Return the ratios on every workload with enough rounds; empty if no peers were measured."""
    peers, ours = peers_of(experiment), own_arms_of(experiment)
    found = (_effects(experiment, workload, peers, ours) for workload in reported(experiment) if peers)
    return tuple(one for one in found if one is not None)


def reported(experiment: Experiment) -> Sequence[str]:
    """Return all workloads; for TPC-H-like passes only the two runs, which cover all queries."""
    runs = [name for name in experiment.workloads if name.removeprefix(PREFIX) in TPCH_RUNS]
    return experiment.workloads if experiment.tpch is None else runs


def _effects(experiment: Experiment, workload: str, peers: list[str], ours: list[str]) -> PeerEffects | None:
    speeds = {peer: {peer: 1.0, experiment.baseline: -1.0} for peer in peers}
    pairs = {(peer, arm): f"{arm} over {peer}" for peer in peers for arm in ours}
    ratios = {name: {arm: 1.0, peer: -1.0} for (peer, arm), name in pairs.items()}
    known = contrast_intervals(experiment, workload, {**speeds, **ratios})
    fastest_first = sorted(known.keys() & speeds.keys(), key=lambda peer: -known[peer].point)
    if not fastest_first:
        return None
    missing = [name for (peer, _), name in pairs.items() if peer in known and name not in known]
    return PeerEffects(
        workload,
        {
            peer: {arm: known[pairs[peer, arm]] for arm in ours if pairs[peer, arm] in known}
            for peer in fastest_first
        },
        (*(peer for peer in peers if peer not in known), *missing),
    )
