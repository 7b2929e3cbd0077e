"""The main job: inspect → plan → noise floor → measure → measure the winner afresh → keep or revert.

facts      a server of the user's kind on the workloads' data, and what its host has
plan       levers/ on those facts; checked against the live server, with a memory proof
noise      the baseline against itself: an A/A experiment, where arms take turns
trial      baseline, plan and pgtune's configuration side by side; a plan of several layers is built up
           between the baseline and itself, one layer after the other; in parts where layers need another
           machine than those before
fresh      the same on new instances and new random numbers, if the trial promises a gain: a winner is
           never reported with the figures that made it win
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pgdyno.app.evidence import document_of
from pgdyno.app.experiment import Context
from pgdyno.app.known_builds import known_builds
from pgdyno.app.measure import Conditions, measure
from pgdyno.app.parts import measure_in_parts, runs_of
from pgdyno.app.planning import Subject, inspect_scratch, plan_for
from pgdyno.app.wiring import workspace
from pgdyno.experiments.acceptance import THROUGHPUT, Acceptance, accept, promises
from pgdyno.experiments.replication import blocks_per_round, expectations
from pgdyno.levers.planner import PlanRequest
from pgdyno.levers.sharing import not_shareable
from pgdyno.model.awake import idling_files
from pgdyno.model.builds import KnownBuild
from pgdyno.model.experiment import Design, Experiment, NoiseFloor
from pgdyno.model.plan import Plan
from pgdyno.model.ports import Progress
from pgdyno.model.study import Study
from pgdyno.model.variant import Variant
from pgdyno.model.verdict import Verdict
from pgdyno.studies import configurations, noise_floor
from pgdyno.studies._contract import PGTUNE, PLAN

_NOISE_ROUNDS, _NOISE_BLOCKS = 2, 2  # the fewest that give an interval; nothing is decided by it
_TRIAL_SHARE = 0.4  # of the time that is left after the noise floor; the fresh measurement gets the rest
_SHORT_BUDGET_S = 1200.0
_NO_NOISE_FLOOR = (
    "no noise floor was measured: what this plan changes on the machine takes whole trials, of which two "
    "identical variants would need as many as the plan itself"
)
DEFAULT_WORKLOADS = ("sysbench-read-only", "sysbench-read-write")


@dataclass(frozen=True)
class AccelerateRequest:
    """What to accelerate: ``base`` is the configuration as found, on scratch servers of ``conditions``.

    ``subject`` is the running server that is planned for; None plans for a scratch server itself.
    """

    conditions: Conditions
    base: Variant
    budget_s: float
    max_loss: float = 0.05
    plan: PlanRequest = field(default_factory=PlanRequest)
    subject: Subject | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Acceleration:
    """What came out. ``experiment`` holds the figures that count; ``earlier`` how the winner was found.

    ``layers`` are the configurations that lead from the baseline to the plan, which is the last of them.
    """

    plan: Plan
    acceptance: Acceptance
    experiment: Experiment
    earlier: tuple[Experiment, ...]
    layers: tuple[str, ...] = (PLAN,)

    @property
    def trial(self) -> Experiment:
        """The experiment in which all configurations ran side by side."""
        names = set(self.layers)
        experiments = (*reversed(self.earlier), self.experiment)
        return next(one for one in experiments if names <= {variant.name for variant in one.variants})

    @property
    def layer_verdicts(self) -> tuple[Verdict, ...]:
        """What is said of every layer against the baseline, in the trial.

        Where it was measured in parts, of every layer against the one before, and then of the whole plan.
        """
        parts = self.experiment.parts
        steps = tuple(verdict for part in parts for verdict in part.verdicts)
        judged = self.experiment if parts else self.trial
        return (*steps, *(verdict for verdict in judged.verdicts if verdict.variant in self.layers))


def accelerate(request: AccelerateRequest, progress: Progress) -> Acceleration:
    """Measure whether the plan for a server pays, on scratch servers. Nothing outside them is changed.

    Raises: MemoryProofError and SettingError from planning; whatever measuring raises.
    """
    deadline = time.monotonic() + request.budget_s
    if request.subject is None:
        subject = inspect_scratch(request.base, request.conditions, request.plan.figures, progress)
        plan = replace(request.plan, builds=_builds(request.conditions))
    else:
        subject, plan = request.subject, request.plan
    planned = plan_for(subject, request.base, request.conditions, plan)
    context = Context(document_of(subject.host), document_of(subject.server), planned.plan)

    layers = (*planned.study_context.layers, PLAN)
    conditions = replace(
        request.conditions, accepts_builds=planned.plan.server is not None, is_resumable=False
    )
    if not conditions.as_booted and idling_files(planned.plan.values):  # all its parts then, alike
        conditions = replace(conditions, as_booted="the plan sets itself how CPUs idle")

    study = configurations.study(planned.study_context)
    study = replace(study, name="accelerate", notes=(*request.notes, *study.notes))
    path = (study.baseline, *layers)
    is_in_parts = len(runs_of(study, path)) > 1

    def run(study: Study, share: float | None, context: Context) -> Experiment:
        def within(study: Study, budget_s: float | None) -> Experiment:
            return measure(study, replace(conditions, budget_s=budget_s), progress, context)

        budget_s = None if share is None else share * max(0.0, deadline - time.monotonic())
        if is_in_parts:
            return measure_in_parts(study, path, budget_s, within)
        return within(study, budget_s)

    if len(layers) > 1 and request.budget_s < _SHORT_BUDGET_S:
        study = without_peer(study)
    earlier: tuple[Experiment, ...] = ()
    if not_shareable(study.variants):
        study = replace(study, notes=(*study.notes, _NO_NOISE_FLOOR))
    else:
        earlier = (run(_short(noise_floor.study(planned.study_context)), None, context),)
        context = replace(context, noise_floor=_noise_floor(earlier[0].verdicts))
    trial = run(study, _TRIAL_SHARE, context)
    if not promises(trial.verdicts, PLAN, max_loss=request.max_loss, parts=trial.parts):
        rejected = accept(trial.verdicts, PLAN, max_loss=request.max_loss, parts=trial.parts)
        return Acceleration(planned.plan, rejected, trial, earlier, layers)
    kept = path if is_in_parts else (study.baseline, PLAN)
    fresh = run(_afresh(study, trial, kept, deadline - time.monotonic()), 1.0, context)
    confirmed = accept(fresh.verdicts, PLAN, max_loss=request.max_loss, parts=fresh.parts)
    return Acceleration(planned.plan, confirmed, fresh, (*earlier, trial), layers)


def _builds(conditions: Conditions) -> tuple[KnownBuild, ...] | None:
    """Return what scratch servers could be run by instead."""
    if conditions.installation is None:
        return None
    return known_builds(workspace(), conditions.installation.bin_directory)


def without_peer(study: Study) -> Study:
    """Return the study without pgtune's configuration, whose time the layers of the plan take."""
    note = (
        f"{PGTUNE} is left out: the plan's layers take its time; --budget {_SHORT_BUDGET_S / 60:g}m has room"
    )
    return replace(
        study,
        variants=tuple(variant for variant in study.variants if variant.name != PGTUNE),
        notes=(*(one for one in study.notes if not one.startswith(PGTUNE)), note),
    )


def design_for(budget_s: float) -> Design:
    """Return a design whose rounds are short enough that a small budget holds the five a verdict needs."""
    return replace(Design(), blocks_per_round=1) if budget_s < _SHORT_BUDGET_S else Design()


def _short(study: Study) -> Study:
    design = replace(study.design, rounds=_NOISE_ROUNDS, blocks_per_round=_NOISE_BLOCKS)
    return replace(study, design=design)


def _afresh(study: Study, trial: Experiment, kept: Sequence[str], left_s: float) -> Study:
    """Return the same comparison of ``kept`` alone; the figures of peers in the trial go into the notes.

    The time is spent on rounds and blocks as the trial's variance suggests.
    """
    left_s = max(0.0, left_s)
    blocks = blocks_per_round(trial, PLAN, left_s)
    peers = tuple(
        f"in {trial.id}, {verdict.variant} on {verdict.workload}, throughput: {verdict.reason}"
        for verdict in trial.verdicts
        if verdict.metric == THROUGHPUT and verdict.variant != PLAN
    )
    return replace(
        study,
        name="accelerate-fresh",
        variants=tuple(v for v in study.variants if v.name in kept),
        design=replace(study.design, seed=study.design.seed + 1, blocks_per_round=blocks),
        notes=(
            *study.notes,
            f"measured afresh on new instances; the plan was chosen by {trial.id}",
            *peers,
            *expectations(trial, PLAN, blocks, left_s),
        ),
    )


def _noise_floor(verdicts: tuple[Verdict, ...]) -> tuple[NoiseFloor, ...]:
    """Return what an A/A experiment says about the noise, where it could say anything."""
    return tuple(
        NoiseFloor(
            workload=v.workload,
            metric=v.metric,
            ratio=v.effect,
            interval=(v.interval.low, v.interval.high),
            sd_between_rounds=v.components.between_rounds,
            sd_within_rounds=v.components.within_rounds,
        )
        for v in verdicts
        if v.effect is not None and v.interval is not None and v.components is not None
    )
