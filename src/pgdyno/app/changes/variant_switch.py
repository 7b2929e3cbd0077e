"""Switch a running server between variants by apply and revert, with receipts and checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pgdyno.app.changes.apply import ApplyRequest, apply_plan
from pgdyno.journal.revert import RevertRequest, revert
from pgdyno.journal.session.access import ServerAccess
from pgdyno.model.errors import StillChangedError
from pgdyno.model.plans.journal import ApplyResult
from pgdyno.model.plans.plan import Plan
from pgdyno.model.variants.variant import Variant


@dataclass
class Switch:
    """A server that runs ``base`` when it is found, and is left with it.

    ``plan`` says how each setting is changed; a variant uses some of its lines, with values of its own, or
    none. What is undone is its own apply: somebody may have applied something else meanwhile. ``result`` is
    of the apply that is in force.
    """

    access: ServerAccess
    base: Variant
    plan: Plan
    allow_restart: bool
    is_standby_order_kept: bool = False
    result: ApplyResult | None = field(default=None, init=False)
    _applied: Mapping[str, str] = field(default_factory=dict, init=False)
    _apply_id: str | None = field(default=None, init=False)

    def to(self, variant: Variant) -> None:
        """Bring the server to a variant, over its own configuration; nothing is done if it runs that already.

        Raises: what apply and revert raise.
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
        self._apply_id = request.apply_id  # before anything is changed: whatever comes is to be undone
        self.result = apply_plan(self.access, request)
        self._applied = wanted

    def back(self) -> None:
        """Restore the server's original configuration.

        Raises: StillChangedError if somebody else has changed a setting meanwhile.
        """
        if self._apply_id is None:
            return
        request = RevertRequest(
            apply_id=self._apply_id,
            allow_restart=self.allow_restart,
            is_standby_order_kept=self.is_standby_order_kept,
        )
        result = revert(self.access, request)
        if not result.is_complete:
            raise StillChangedError(
                "the server was changed by others while it was measured",
                detail="the settings that they changed were left to them",
                hint="pgdyno status shows them; "
                "pgdyno revert --drifted=overwrite restores the original values",
            )
        self._applied, self._apply_id, self.result = {}, None, None
