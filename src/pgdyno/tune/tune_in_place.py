"""Tune a running server in place: search, shorten the answer, prove it, restore the configuration.

Configurations alternate on the server itself, in whole trials in random order, in databases of pgdyno. Every
change is an apply or a revert with its receipts: ``pgdyno revert`` restores the configuration after a kill at
any time. The space has settings that a reload brings into force; others only if the owner allows restarts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from pgdyno.accelerate.planning import plan_for
from pgdyno.apply.apply_plan import ApplyRequest, preview_apply
from pgdyno.apply.host_state import this_host
from pgdyno.apply.session.access import ServerAccess
from pgdyno.base.errors import UsageError
from pgdyno.base.ports import Progress
from pgdyno.builds.switching.variant_switch import Switch
from pgdyno.host.probing.spinners import burstable_type
from pgdyno.measure.arenas.attached_arena import AttachedArena
from pgdyno.measure.arenas.limited_load import LimitedLoads
from pgdyno.measure.arenas.load_capacity import require_room
from pgdyno.measure.arenas.opening import open_attached_arena
from pgdyno.measure.awake import awake_record_of_attached
from pgdyno.measure.evidence import document_of
from pgdyno.measure.experiment import ExperimentRun
from pgdyno.measure.records.new_experiment import Context
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.study import Study
from pgdyno.model.plans.plan import Plan
from pgdyno.model.tuning.tuning import TUNED, OverLimitError, OwnerLimits, Trial, TrialState, Tuning
from pgdyno.plan.attached import Attached
from pgdyno.plan.engine.search_space import lines_in_place
from pgdyno.plan.inspection.start_check import StartCheck
from pgdyno.plan.levers import load as load_levers
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.store.experiments import open_store
from pgdyno.store.tunings import load_tuning, save_tuning
from pgdyno.tune.budget import IncumbentOverLimitError, RoundsInPlace, design_in_place
from pgdyno.tune.earlier_configurations import earlier_configurations, warm_start
from pgdyno.tune.search.race import ONE_AFTER_THE_OTHER
from pgdyno.tune.searched_space import searched_in_place
from pgdyno.tune.trial_rounds import DEFAULT
from pgdyno.tune.tune_request import TuneRequest, begun_search, unfinished
from pgdyno.tune.tuner import Listener, Tuned, Tuner, disturbance_notes, searches

_NOTE = (
    "measured on the running server itself, one configuration at a time: its CPU time includes all "
    "other work on it"
)


@dataclass(frozen=True)
class Allowed:
    """Permissions given by the server's owner, in addition to load.

    ``is_standby_order_kept`` is the owner's statement, see apply.
    """

    limits: OwnerLimits
    restart: bool = False
    is_standby_order_kept: bool = False


def tune_in_place(
    attached: Attached,
    request: TuneRequest,
    access: ServerAccess,
    progress: Progress,
    listener: Listener,
    allowed: Allowed,
) -> Tuned:
    """Search on the running server, prove the answer there, and restore the original configuration.

    Raises: UsageError if nothing can be searched, or if no restart command is known; RefusedError for a
    standby, or if the server exceeds a limit as found; what planning, measuring, apply and revert raise.
    """
    began = time.monotonic()
    server = attached.subject.server
    require_room(attached.dsn, _most_clients(request))
    planned = plan_for(attached.subject, request.base, request.conditions, request.plan)
    searched = searched_in_place(planned, allowed.limits, may_restart=allowed.restart)
    if not searched.space.dimensions:
        raise UsageError(
            "nothing to search",
            detail="no setting that a reload brings into force has other values to try here",
            hint="--maintenance-window also searches settings that take a restart",
        )
    plan = Plan(
        lines_in_place(searched.space, planned.plan, server, load_levers()), (), (), planned.plan.memory_proof
    )
    _require_appliable(access, plan, allowed, attached)
    begin = warm_start(searched.space, earlier_configurations(request), server, progress)
    searched = replace(searched, first=begin.points)
    switch = Switch(access, request.base, plan, allowed.restart, allowed.is_standby_order_kept)
    tuning = begun_search(request, searched.space, (_NOTE, *searched.notes, *begin.notes))
    save_tuning(searches(), tuning)
    place = (attached.dsn, attached.data_directory, attached.installation)
    exempt = frozenset({DEFAULT, request.base.name})
    limited = partial(LimitedLoads.of, limits=allowed.limits, exempt=exempt)
    with open_attached_arena(*place, switch, progress, limited) as arena:
        for workload in request.conditions.workloads.values():
            arena.load(request.base, workload.data_set)
        rounds = RoundsInPlace(
            arena,
            request.base,
            searched.space,
            request.conditions.workloads,
            design_in_place(request.conditions.design, allowed.limits),
            progress,
            expected_noise=ONE_AFTER_THE_OTHER,
            restore=switch.back,
        )
        if allowed.limits.is_any:
            progress.step("checking that the server is within the limits in its original configuration")
            rounds.require_found_within_limits()
        searched = replace(searched, why_not=rounds.why_not(searched.why_not))
        tuner = Tuner(request, searched, rounds, listener, began)
        proof = _Proof(attached, request, rounds, arena, began)
        tuning, experiment = _answered(tuner, tuning, listener, proof.measured)
        tuning = replace(tuning, notes=(*tuning.notes, *disturbance_notes(rounds.disturbed)))
        save_tuning(searches(), tuning)
    return Tuned(tuning, planned.plan, experiment)


def _answered(
    tuner: Tuner, tuning: Tuning, listener: Listener, prove: Callable[[Tuning], Experiment]
) -> tuple[Tuning, Experiment | None]:
    """Search until an answer stays within the limits in its proof too, or no answer is left."""
    while True:
        try:
            tuning = tuner.shortened(tuner.searched(tuning))
            save_tuning(searches(), tuning)
            if not tuning.answer:
                return tuning, None
            listener.answered(tuning)
            experiment = prove(tuning)
        except (IncumbentOverLimitError, OverLimitError) as error:
            kept = unfinished(load_tuning(searches(), tuning.id))
            tuning = without_winner(replace(kept, notes=tuning.notes, answer={}), str(error))
            save_tuning(searches(), tuning)
            listener.tried(next(one for one in reversed(tuning.trials) if one.reason == str(error)))
        else:
            tuning = replace(tuning, experiment=experiment.id)
            save_tuning(searches(), tuning)
            return tuning, experiment


def without_winner(tuning: Tuning, reason: str) -> Tuning:
    """Return a search without its winner, which exceeded a limit later: the previous winner replaces it."""
    winner = tuning.winner

    def judged(trial: Trial) -> Trial:
        return replace(trial, state=TrialState.OVER_LIMIT, reason=reason) if trial == winner else trial

    return replace(tuning, trials=tuple(map(judged, tuning.trials)), removals=())


@dataclass(frozen=True)
class _Proof:
    """Measures an answer again, until the budget is spent; ``began`` is the start of the search."""

    attached: Attached
    request: TuneRequest
    rounds: RoundsInPlace
    arena: AttachedArena
    began: float

    def measured(self, tuning: Tuning) -> Experiment:
        """Return the experiment with the original configuration and the answer. Raises: OverLimitError."""
        host, subject = this_host(), self.attached.subject
        study = Study(
            "tune-in-place",
            f"Is the server at {self.attached.target} faster with the searched configuration ({tuning.id})?",
            (self.request.base, self.rounds.variant(TUNED, tuning.answer)),
            tuning.workloads,
            self.rounds.design,
            notes=tuning.notes,
        )
        context = Context(
            document_of(subject.host),
            document_of(subject.server),
            awake=awake_record_of_attached(host, is_here=True),
            burstable_type=burstable_type(host.tree),
        )
        left_s = max(0.0, self.request.budget_s - (time.monotonic() - self.began))
        workloads, progress = self.request.conditions.workloads, self.rounds.progress
        with closing(open_store()) as store:
            run = ExperimentRun(self.arena, store, progress, workloads, is_resumable=False)
            try:
                return run.run(study, budget_s=left_s, context=context)
            except OverLimitError as error:
                self.rounds.restore()
                self.rounds.record_over_limit(tuning.answer, error.reason)
                raise OverLimitError(error.variant, f"in the proof of the answer {error.reason}") from error


def _require_appliable(access: ServerAccess, plan: Plan, allowed: Allowed, attached: Attached) -> None:
    """Refuse changes that cannot be made or undone, before anything is measured.

    Settings that take a restart are tried on a scratch server first, which has to start with them.
    """
    if plan.needs_restart and access.restarter is None:
        raise UsageError(
            "--maintenance-window allows restarts, but pgdyno does not know how to restart this server",
            hint="--restart-command 'pg_ctlcluster 15 main restart', or the command that restarts it here",
        )
    request = ApplyRequest(
        plan,
        allow_restart=allowed.restart,
        is_standby_order_kept=allowed.is_standby_order_kept,
        start_check=StartCheck(attached.installation, workspace()) if plan.needs_restart else None,
    )
    preview_apply(access, request)


def _most_clients(request: TuneRequest) -> int:
    workloads = request.conditions.workloads.values()
    return max(one.clients or request.conditions.design.clients for one in workloads)
