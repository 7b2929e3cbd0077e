"""``pgdyno levers``: every lever of the catalogue, with its state on a host and server."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.base.errors import UsageError
from pgdyno.base.facts import Unknown
from pgdyno.base.text import did_you_mean
from pgdyno.model.plans.plan import Layer, LeverEntry, LeverFinding, PlanLine, Skipped
from pgdyno.plan import levers
from pgdyno.plan.engine.planner import PlanRequest, context_of, run_levers
from pgdyno.plan.engine.resources import Figures
from pgdyno.plan.inspection.inspect import Inspection
from pgdyno.plan.inspection.server_programs import probe_of
from pgdyno.plan.levers._contract import LeverModule, PlanContext


def choose_levers(name: str | None, layer: Layer | None) -> tuple[LeverModule, ...]:
    """Return the levers of that name and layer, sorted by layer and name; None: all.

    Raises: UsageError for an unknown name, or one that is not in this layer.
    """
    known = levers.load()
    if name is not None and name not in known:
        hint = f"{did_you_mean(name, known)}pgdyno levers lists all levers"
        raise UsageError(f'no lever "{name}"', hint=hint)
    if name is not None and layer not in (None, known[name].LEVER.layer):
        raise UsageError(
            f'lever "{name}" is not in layer {layer}', hint=f"it is in layer {known[name].LEVER.layer}"
        )
    layers = list(Layer)
    chosen = [
        module
        for module in known.values()
        if name in (None, module.LEVER.name) and layer in (None, module.LEVER.layer)
    ]
    return tuple(sorted(chosen, key=lambda one: (layers.index(one.LEVER.layer), one.LEVER.name)))


def describe_levers(
    chosen: Sequence[LeverModule], found: Inspection, figures: Figures
) -> tuple[LeverEntry, ...]:
    """Return the levers with their states; without a server, only their descriptions.

    Each lever sees the values planned by earlier levers of all layers. The levers are shown even if the whole
    plan would not fit into memory; only ``advise`` refuses such a plan.
    """
    if isinstance(found.inspected, Unknown):
        return tuple(_entry(module, None) for module in chosen)
    host = None if isinstance(found.host, Unknown) else found.host
    request = PlanRequest(figures, tuple(Layer), probe=probe_of(found.inspected), with_unmeasured=True)
    ctx = context_of(host, found.inspected.server, request)
    planned = run_levers(levers.load(), ctx, request)
    return tuple(_entry(module, _finding(module, ctx, planned.lines, planned.skipped)) for module in chosen)


def _finding(
    module: LeverModule, ctx: PlanContext, lines: Sequence[PlanLine], skipped: Sequence[Skipped]
) -> LeverFinding:
    name = module.LEVER.name
    reasons = [one.reason for one in skipped if one.lever == name]
    detected = module.detect(ctx)
    return LeverFinding(
        state=detected.state.value,
        detail=detected.detail,
        lines=tuple(line for line in lines if line.change.lever == name),
        left_alone=reasons[0] if reasons else None,
    )


def _entry(module: LeverModule, finding: LeverFinding | None) -> LeverEntry:
    lever = module.LEVER
    title, maturity = lever.title, lever.maturity.value
    return LeverEntry(lever.name, title, lever.layer, maturity, lever.risk, module.page, finding)
