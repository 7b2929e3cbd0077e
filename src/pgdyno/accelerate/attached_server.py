"""``accelerate`` for an attached server: measured, and applied if it pays.

The plan is measured on copies, or in place if allowed.

By default the running server is only inspected, never loaded. It is changed only if the plan is proven to
pay, and restarted only if its owner allows that. Obstacles to applying the plan are detected before
anything is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from pgdyno.accelerate.accelerate import accelerate
from pgdyno.accelerate.in_place import accelerate_loaded
from pgdyno.accelerate.planning import plan_for
from pgdyno.accelerate.request import AccelerateRequest, Acceleration
from pgdyno.accelerate.watch import Pace, require_counted, watch_after, watch_by_turns
from pgdyno.apply.apply_plan import ApplyRequest, apply_plan, preview_apply
from pgdyno.apply.session.access import ServerAccess
from pgdyno.base import numbers
from pgdyno.base.errors import UsageError
from pgdyno.base.facts import Unknown
from pgdyno.base.ports import Progress
from pgdyno.base.text import counted
from pgdyno.builds.switching.variant_switch import Switch
from pgdyno.measure.decisions.plan_decision import PlanState
from pgdyno.measure.decisions.watch_decision import Watched
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.likeness import LEAST_LIKENESS
from pgdyno.model.plans.journal import ApplyResult
from pgdyno.model.plans.plan import PLAN, Plan
from pgdyno.plan import formats
from pgdyno.plan.attached import Attached
from pgdyno.plan.engine.effective import EffectiveSettings, owner_of
from pgdyno.plan.inspection.start_check import StartCheck
from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.server import ConfigurationManager, Server
from pgdyno.profile.reading.statement_work import TrafficCounting
from pgdyno.profile.view.statements_text import where_time_goes

_AWAY_S = 5.0  # assumed time of a stop and a start; measured on idle machines: below 2 s
_WRITTEN_BYTES_PER_S = 200e6  # assumed write rate of a checkpoint
_FORMATS = {
    "Patroni": "patroni",
    "CloudNativePG": "cnpg",
    "Amazon RDS or Aurora": "rds",
    "Azure Database for PostgreSQL": "azure",
    "Google Cloud SQL": "cloudsql",
}
"""Format of the plan for each configuration manager; others get a file of settings."""


@dataclass(frozen=True)
class Permissions:
    """Permissions given by a running server's owner.

    ``is_standby_order_kept`` is the owner's statement, see apply.

    ``any_workload``: the plan may be applied even if it pays on a workload that is not the server's own.
    ``watch``: a plan with unknown tail latency may be tried, at this pace; None: it may not.
    """

    load: bool = False
    restart: bool = False
    any_workload: bool = False
    is_standby_order_kept: bool = False
    watch: Pace | None = None


@dataclass(frozen=True)
class AttachedAcceleration:
    """The result on an attached server.

    ``not_applied`` is the reason if nothing was applied.

    ``watched`` is the result of observing the server's own traffic, if that was requested and the tail
    latency was unknown. ``handed_over`` is the plan in the format of the configuration manager; empty: none.
    """

    acceleration: Acceleration
    applied: ApplyResult | None
    not_applied: str | None
    watched: Watched | None = None
    handed_over: str = ""


def accelerate_attached(
    attached: Attached,
    request: AccelerateRequest,
    access: ServerAccess,
    progress: Progress,
    permissions: Permissions,
    report: Callable[[str], None],
) -> AttachedAcceleration:
    """Measure, and apply the plan if it pays and its restart is allowed.

    ``report`` receives sentences on restarts, memory and owners, before measuring and before the change.
    A configuration managed by another tool is not changed: the plan is returned in that tool's format. A
    faster plan with unknown tail latency is also applied if watching is permitted.
    Raises: what ``accelerate``, ``apply_plan`` and watching raise.
    """
    if permissions.watch is not None:
        require_counted(access)
    server = attached.subject.server
    report(_where_time_goes(attached.dsn))
    if permissions.load:  # whole trials can also measure host-wide changes, interleaved servers cannot
        request = replace(request, plan=replace(request.plan, with_unmeasured=True))
    planned = plan_for(attached.subject, request.base, request.conditions, request.plan)
    for sentence in before_applying(planned.plan, server):
        report(sentence)
    manager = manager_of(server)
    if manager is None or permissions.load:
        _check_that_it_could_be_applied(planned.plan, access, permissions)
    if permissions.load:
        done = accelerate_loaded(
            attached,
            request,
            access,
            progress,
            allow_restart=permissions.restart,
            is_standby_order_kept=permissions.is_standby_order_kept,
        )
    else:
        done = accelerate(request, progress, report)
    return conclude(attached, done, access, progress, permissions, report)


def _where_time_goes(dsn: str) -> str:
    """Return the sentence on the running server's own statements, as counted since the last reset."""
    with closing(connect(dsn)) as connection:
        read = TrafficCounting.begin(connection).so_far()
    where = where_time_goes(read.statements)
    known = "; ".join(filter(None, (where, *read.remarks))) or "none was counted"
    return f"the server's own statements, since their last reset: {known}"


def conclude(
    attached: Attached,
    done: Acceleration,
    access: ServerAccess,
    progress: Progress,
    permissions: Permissions,
    report: Callable[[str], None],
) -> AttachedAcceleration:
    """Apply the measured plan, format it for the configuration manager, or return the reason for neither.

    Raises: what ``apply_plan`` and watching raise.
    """
    server = attached.subject.server
    manager = manager_of(server)
    reason = _reason_not_to_apply(done, permissions, manager)
    if reason is not None:
        is_handed_over = manager is not None and done.decision.pays and bool(done.plan.lines)
        written = for_manager(manager, done.plan, server) if manager is not None and is_handed_over else ""
        return AttachedAcceleration(done, None, reason, handed_over=written)
    for sentence in before_applying(done.plan, server):
        report(sentence)
    if permissions.watch is not None and not done.decision.pays:
        return _watched(attached, done, access, progress, permissions, permissions.watch)
    progress.step(f"applying the plan to {attached.target}")
    check = StartCheck(attached.installation, workspace())
    return AttachedAcceleration(done, apply_plan(access, _apply_request(done.plan, permissions, check)), None)


def _watched(
    attached: Attached,
    done: Acceleration,
    access: ServerAccess,
    progress: Progress,
    permissions: Permissions,
    pace: Pace,
) -> AttachedAcceleration:
    """Apply a plan with unknown tail latency while the server's own traffic is observed."""
    plan, base = done.plan, attached.base
    request = _apply_request(plan, permissions, StartCheck(attached.installation, workspace()))
    switch = Switch(access, base, plan, permissions.restart, permissions.is_standby_order_kept)
    variant = replace(base, name=PLAN, settings={**base.settings, **plan.values})
    preview_apply(access, request)  # checks that the server starts with the plan; a switch does not
    if plan.needs_restart:
        seen = watch_after(access, partial(switch.to, variant), progress, pace)
    else:
        seen = watch_by_turns(access, switch, variant, progress, pace)
    reason = None if seen.is_applied else f'its watch ended with "{seen.state}"'
    return AttachedAcceleration(done, switch.result, reason, seen)


def _apply_request(
    plan: Plan, permissions: Permissions, start_check: StartCheck | None = None
) -> ApplyRequest:
    return ApplyRequest(
        plan,
        allow_restart=permissions.restart,
        is_standby_order_kept=permissions.is_standby_order_kept,
        start_check=start_check,
    )


def _check_that_it_could_be_applied(plan: Plan, access: ServerAccess, permissions: Permissions) -> None:
    if permissions.restart and plan.needs_restart and access.restarter is None:
        raise UsageError(
            "the plan needs a restart, and pgdyno does not know how to restart this server",
            hint="--restart-command 'pg_ctlcluster 15 main restart', or the command that restarts it here",
        )
    preview_apply(access, _apply_request(plan, permissions))


def _reason_by_decision(state: PlanState, permissions: Permissions) -> str | None:
    is_watched = state is PlanState.TAIL_UNKNOWN and permissions.watch is not None
    if state is PlanState.PAYS or is_watched:
        return None
    way = "; --tail watch tries it on the server" if state is PlanState.TAIL_UNKNOWN else ""
    return f'it is applied only if it pays, and the decision is "{state}"{way}'


def _measured_on(experiment: Experiment) -> str:
    """Return the workloads, and how closely they resemble the server's own workload."""
    workloads, likenesses = " and ".join(experiment.workloads), experiment.likenesses
    if likenesses.keys() != set(experiment.workloads):
        return f"{workloads}, which is not this server's own workload"
    least = min(one.least for one in likenesses.values())
    how = "a replay" if least >= LEAST_LIKENESS else "an approximate replay"
    return f"{workloads}, {how} of the captured workload (likeness {least:.2f})"


def _reason_not_to_apply(
    done: Acceleration, permissions: Permissions, manager: ConfigurationManager | None = None
) -> str | None:
    if (reason := _reason_by_decision(done.decision.state, permissions)) is not None:
        return reason
    if not done.plan.lines:
        return "nothing needs to be changed"
    if manager is not None:
        return f"{manager.name} manages the configuration of this server; the plan is below, in its format"
    if not permissions.any_workload:
        gain = "pays" if done.decision.pays else "is faster"
        return f"it {gain} on {_measured_on(done.experiment)}; add --yes, or run pgdyno apply"
    if done.plan.needs_restart and not permissions.restart:
        return (
            "it needs a restart, which was not allowed; add --allow-restart to pgdyno apply or pgdyno "
            "accelerate"
        )
    return None


def before_applying(plan: Plan, server: Server) -> tuple[str, ...]:
    """Return sentences on restarts, on memory here and on standbys, and on owners of settings."""
    if not plan.lines:
        return ()
    return (_restart(plan, server), _memory(plan, server), *_owners(plan, server))


def manager_of(server: Server) -> ConfigurationManager | None:
    """Return the tool that manages a server's configuration; None if no such tool is known."""
    return next(iter(server.managers), None)


def for_manager(manager: ConfigurationManager, plan: Plan, server: Server) -> str:
    """Return the plan in the manager's format."""
    return formats.load(_FORMATS.get(manager.name, "conf")).render(plan, server)


def _restart(plan: Plan, server: Server) -> str:
    if not plan.needs_restart:
        return "Applying the plan takes a reload, no restart."
    dirty_bytes = EffectiveSettings(server).size_bytes("shared_buffers")
    longest_s = _AWAY_S + dirty_bytes / _WRITTEN_BYTES_PER_S
    return (
        f"Applying the plan takes one restart: about {_AWAY_S:.0f} s of downtime, up to "
        f"{longest_s:.0f} s if all of its shared_buffers ({numbers.size(dirty_bytes)}) must be written "
        "first. Both are estimates."
    )


def _memory(plan: Plan, server: Server) -> str:
    proof = plan.memory_proof
    if proof is None:
        return f"Memory: the limit is unknown, so the plan is not proven to fit. {_standbys(server)}"
    total, limit = numbers.size(proof.total_bytes), numbers.size(proof.limit_bytes)
    return f"Memory: at worst {total} of {limit} on this server. {_standbys(server)}"


def _standbys(server: Server) -> str:
    standbys = server.standbys.value
    if isinstance(standbys, Unknown):
        return f"It is unknown whether it has standbys: {standbys.reason}."
    if not standbys:
        return "It has no standbys."
    count = len(standbys)
    return (
        f"It has {counted(count, 'standby')}, which the plan does not change: with the same "
        f"settings, {'it needs' if count == 1 else 'each needs'} as much memory."
    )


def _owners(plan: Plan, server: Server) -> Iterator[str]:
    manager = manager_of(server)
    if manager is not None:
        yield (
            f"{manager.name} manages this configuration ({manager.evidence}): nothing is applied, and the "
            f"plan is printed in its format ({manager.how_to_change})."
        )
        return
    for name in plan.settings:
        owner = owner_of(server.settings[name]) if name in server.settings else None
        if owner is not None:
            yield f"{name} is set {owner}."
