"""The main job on someone's running server: measured on scratch servers beside it, applied once if it pays.

The running server is looked at, never loaded. It is changed only if the plan is proven to pay, and restarted
only if its owner allows that.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.app import wiring
from pgdyno.app.accelerate import AccelerateRequest, Acceleration, accelerate
from pgdyno.app.apply import ApplyRequest, apply_plan
from pgdyno.app.attached import Attached
from pgdyno.journal.access import ServerAccess
from pgdyno.model.journal import ApplyResult
from pgdyno.model.plan import Plan
from pgdyno.model.ports import Progress


@dataclass(frozen=True)
class AttachedAcceleration:
    """What came out, and what was applied; ``not_applied`` says why nothing was."""

    acceleration: Acceleration
    applied: ApplyResult | None
    not_applied: str | None


def restarts_needed(plan: Plan) -> int:
    """Return how often applying the plan restarts the server."""
    return 1 if plan.needs_restart else 0


def accelerate_attached(
    attached: Attached,
    request: AccelerateRequest,
    access: ServerAccess,
    progress: Progress,
    *,
    allow_restart: bool,
) -> AttachedAcceleration:
    """Measure beside the server, and apply the plan if it pays and its restart is allowed.

    Raises: what ``accelerate`` and ``apply_plan`` raise.
    """
    done = accelerate(request, progress)
    reason = _reason_not_to_apply(done, allow_restart=allow_restart)
    if reason is not None:
        return AttachedAcceleration(done, None, reason)
    progress.step(f"applying the plan to {attached.target}")
    check = wiring.start_check(attached.installation.bin_directory)
    applied = apply_plan(access, ApplyRequest(done.plan, allow_restart=allow_restart, start_check=check))
    return AttachedAcceleration(done, applied, None)


def _reason_not_to_apply(done: Acceleration, *, allow_restart: bool) -> str | None:
    if not done.acceptance.is_accepted:
        return "it is not proven to pay"
    if not done.plan.lines:
        return "there is nothing to change"
    if done.plan.needs_restart and not allow_restart:
        return (
            f"it takes {restarts_needed(done.plan)} restart, which was not allowed; run pgdyno apply with "
            "--allow-restart, or accelerate with it"
        )
    return None
