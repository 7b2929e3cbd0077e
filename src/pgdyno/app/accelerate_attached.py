"""``accelerate`` for someone's running server: measured beside it, or on it if allowed; applied if it pays.

By default the running server is looked at, never loaded. It is changed only if the plan is proven to pay,
and restarted only if its owner allows that. Whatever would keep the plan from being applied is found before
anything is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pgdyno.app import wiring
from pgdyno.app.accelerate import AccelerateRequest, Acceleration, accelerate
from pgdyno.app.accelerate_loaded import accelerate_loaded
from pgdyno.app.apply import ApplyRequest, apply_plan, preview_apply
from pgdyno.app.attached import Attached
from pgdyno.app.before_applying import before_applying, for_manager, manager_of
from pgdyno.app.planning import plan_for
from pgdyno.app.start_check import StartCheck
from pgdyno.journal.access import ServerAccess
from pgdyno.model.errors import UsageError
from pgdyno.model.journal import ApplyResult
from pgdyno.model.plan import Plan
from pgdyno.model.ports import Progress
from pgdyno.model.server import ConfigurationManager


@dataclass(frozen=True)
class Permissions:
    """What the owner of a running server allows. ``is_standby_order_kept`` is their word, see apply.

    ``any_workload``: the plan may be applied although the workload that it pays on is not the server's.
    """

    load: bool = False
    restart: bool = False
    any_workload: bool = False
    is_standby_order_kept: bool = False


@dataclass(frozen=True)
class AttachedAcceleration:
    """What came out, and what was applied; ``not_applied`` says why nothing was.

    ``handed_over`` is the plan as whoever manages the server's configuration writes it; empty: nobody does.
    """

    acceleration: Acceleration
    applied: ApplyResult | None
    not_applied: str | None
    handed_over: str = ""


def accelerate_attached(
    attached: Attached,
    request: AccelerateRequest,
    access: ServerAccess,
    progress: Progress,
    permissions: Permissions,
    say: Callable[[str], None],
) -> AttachedAcceleration:
    """Measure, and apply the plan if it pays and its restart is allowed.

    ``say`` is told what applying takes, before measuring and again before the change. A configuration that
    somebody else manages is not changed: the plan is written down for them.
    Raises: what ``accelerate`` and ``apply_plan`` raise.
    """
    server = attached.subject.server
    planned = plan_for(attached.subject, request.base, request.conditions, request.plan)
    for sentence in before_applying(planned.plan, server):
        say(sentence)
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
        done = accelerate(request, progress)
    reason = _reason_not_to_apply(done, permissions, manager)
    if reason is not None:
        is_handed_over = manager is not None and done.decision.pays and bool(done.plan.lines)
        written = for_manager(manager, done.plan, server) if manager is not None and is_handed_over else ""
        return AttachedAcceleration(done, None, reason, written)
    for sentence in before_applying(done.plan, server):
        say(sentence)
    progress.step(f"applying the plan to {attached.target}")
    check = wiring.start_check(attached.installation.bin_directory)
    return AttachedAcceleration(done, apply_plan(access, _apply_request(done.plan, permissions, check)), None)


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
            hint="--restart-command 'pg_ctlcluster 15 main restart', or whatever restarts it here",
        )
    preview_apply(access, _apply_request(plan, permissions))


def _reason_not_to_apply(
    done: Acceleration, permissions: Permissions, manager: ConfigurationManager | None = None
) -> str | None:
    if not done.decision.pays:
        return f'it is applied only if it pays, and the answer is "{done.decision.state}"'
    if not done.plan.lines:
        return "there is nothing to change"
    if manager is not None:
        return f"{manager.name} manages the configuration of this server; the plan is below, as it takes it"
    if not permissions.any_workload:
        workloads = " and ".join(done.experiment.workloads)
        return f"it pays on {workloads}, which is not this server's own work; add --yes, or run pgdyno apply"
    if done.plan.needs_restart and not permissions.restart:
        return (
            "it takes one restart, which was not allowed; run pgdyno apply with --allow-restart, or "
            "accelerate with it"
        )
    return None
