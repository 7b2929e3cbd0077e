"""Switch a running server between variants by apply and revert, with receipts and checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pgdyno.apply.apply_plan import ApplyRequest, apply_plan
from pgdyno.apply.revert import RevertRequest, give_back
from pgdyno.apply.session.access import ServerAccess
from pgdyno.model.plans.journal import ApplyResult
from pgdyno.model.plans.plan import Plan
from pgdyno.model.variants.variant import Variant


@dataclass
class Switch:
    """A server that runs ``base`` at the beginning and at the end.

    ``plan`` has a line for each setting to change; a variant uses none or some of them, with its own values.
    Only this object's own apply is undone: another user may have applied other changes since. ``result``: of
    the apply in force. Restoring waits for another pgdyno's changes, at most ``lock_wait_s``; after that the
    configuration stays changed.
    """

    access: ServerAccess
    base: Variant
    plan: Plan
    allow_restart: bool
    is_standby_order_kept: bool = False
    lock_wait_s: float = 60.0
    result: ApplyResult | None = field(default=None, init=False)
    _applied: Mapping[str, str] = field(default_factory=dict, init=False)
    _apply_id: str | None = field(default=None, init=False)

    def to(self, variant: Variant) -> None:
        """Switch the server to a variant, through its original configuration, unless it already runs it.

        Raises: the errors of apply and revert.
        """
        wanted = {k: v for k, v in variant.settings.items() if self.base.settings.get(k) != v}
        if wanted == self._applied:
            return
        self.back()
        lines = tuple(
            replace(line, change=replace(line.change, value=wanted[line.change.key]))
            for line in self.plan.lines
            if line.change.key in wanted
        )
        request = ApplyRequest(
            Plan(lines, (), (), self.plan.memory_proof),
            allow_restart=self.allow_restart,
            is_standby_order_kept=self.is_standby_order_kept,
        )
        self._apply_id = request.apply_id  # set before any change, so that a failed apply is undone too
        self.result = apply_plan(self.access, request)
        self._applied = wanted

    def back(self) -> None:
        """Restore the server's original configuration.

        Raises: StillChangedError if someone else changed a setting during the measurement, or another pgdyno
        did not release the journal in time.
        """
        if self._apply_id is None:
            return
        request = RevertRequest(
            apply_id=self._apply_id,
            allow_restart=self.allow_restart,
            is_standby_order_kept=self.is_standby_order_kept,
        )
        give_back(self.access, request, self.lock_wait_s)
        self._applied, self._apply_id, self.result = {}, None, None
