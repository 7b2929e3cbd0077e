"""``accelerate --allow-load``: measure the plan in place, on the running server.

The configuration as found and the plan alternate, in whole trials in random order. Every switch is an apply
or a revert with its receipts, with a restart where a setting needs one. With a single candidate there is no
selection, so the figures are unbiased and need no second measurement.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from pgdyno.accelerate.planning import plan_for
from pgdyno.accelerate.request import AccelerateRequest, Acceleration
from pgdyno.apply.host_state import this_host
from pgdyno.apply.session.access import ServerAccess
from pgdyno.base.errors import PermissionNotGivenError
from pgdyno.base.ports import Progress
from pgdyno.builds.switching.variant_switch import Switch
from pgdyno.host.probing.spinners import burstable_type
from pgdyno.measure.arenas.opening import open_attached_arena
from pgdyno.measure.awake import awake_record_of_attached
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.decisions.plan_decision import decide_plan
from pgdyno.measure.decisions.stopping import TimeNeeded, time_needed
from pgdyno.measure.design.schedule import alternating, workloads_by_server
from pgdyno.measure.evidence import document_of
from pgdyno.measure.experiment import ExperimentRun
from pgdyno.measure.records.new_experiment import Context
from pgdyno.model.experiments.experiment import Design, Experiment
from pgdyno.model.experiments.study import Study
from pgdyno.model.plans.plan import PLAN
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.attached import Attached
from pgdyno.store.experiments import open_store

_NOTE = (
    "measured on the running server itself: its CPU time includes all other work on it, and it is restarted "
    "between trials only if a setting requires it"
)
_SWITCH_S = 10.0  # assumed, for budgets only: a restart with its checkpoint, and copying the data set


def restarts_at_most(request: AccelerateRequest) -> int:
    """Return an upper bound on restarts: to the plan and back, per data set and round.

    One more brings the plan into force at the end.
    """
    groups = len(workloads_by_server([*request.conditions.workloads.values()]))
    return 2 * groups * _design(request).rounds + 1


def _design(request: AccelerateRequest) -> Design:
    """Return the design; its rounds are fixed beforehand, because each may restart the server."""
    needed = loaded_time(request)
    return replace(needed.design, rounds=max(needed.least_rounds, needed.rounds_within(request.budget_s)))


def loaded_time(request: AccelerateRequest) -> TimeNeeded:
    """Return the time to measure on the server itself, including loading every data set."""
    design = replace(alternating(request.conditions.design), is_isolated=False)
    workloads = tuple(request.conditions.workloads.values())
    data_sets = tuple({one.data_set.key: one.data_set for one in workloads}.values())
    return time_needed(workloads, design, 2, data_sets, _SWITCH_S)


def accelerate_loaded(
    attached: Attached,
    request: AccelerateRequest,
    access: ServerAccess,
    progress: Progress,
    *,
    allow_restart: bool,
    is_standby_order_kept: bool = False,
) -> Acceleration:
    """Measure on the running server whether its plan pays; restore the configuration as found.

    Raises: PermissionNotGivenError if the plan needs a restart that was not allowed; what measuring,
    apply and revert raise.
    """
    planned = plan_for(attached.subject, request.base, request.conditions, request.plan)
    if planned.plan.needs_restart and not allow_restart:
        raise PermissionNotGivenError(
            "measuring this plan on the server itself takes restarts, which were not allowed",
            hint="add --allow-restart and --restart-command, or leave out --allow-load to measure on copies",
        )
    study = Study(
        "accelerate-loaded",
        f"Is the server at {attached.target} faster with pgdyno's plan than as found?",
        (request.base, Variant(PLAN, {**request.base.settings, **planned.plan.values})),
        tuple(request.conditions.workloads),
        _design(request),
        notes=(_NOTE,),
    )
    terms = request.terms(planned.plan)
    host, server = document_of(attached.subject.host), document_of(attached.subject.server)
    context = Context(host, server, planned.plan, terms=terms)
    switch = Switch(access, request.base, planned.plan, allow_restart, is_standby_order_kept)
    experiment = _measure(study, attached, switch, request.conditions, progress, context)
    return Acceleration(planned.plan, decide_plan(experiment, PLAN, terms), experiment)


def _measure(
    study: Study,
    attached: Attached,
    switch: Switch,
    conditions: Conditions,
    progress: Progress,
    context: Context,
) -> Experiment:
    """Run the study on the server itself, in whole trials, one configuration at a time."""
    place = (attached.dsn, attached.data_directory, attached.installation)
    with open_attached_arena(*place, switch, progress) as arena, closing(open_store()) as store:
        run = ExperimentRun(arena, store, progress, conditions.workloads, is_resumable=False)
        host = this_host()
        awake = awake_record_of_attached(host, is_here=True)
        context = replace(context, awake=awake, burstable_type=burstable_type(host.tree))
        return run.run(study, context=context)
