"""Servers that ``accelerate`` compares: baseline, plan, plan without parts.

The plan without what pgdyno never applies stands beside the whole wherever there is room: many applications
gain nothing from that part. With ``--attribute`` the plan without each of its layers does, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgdyno.levers.engine.sharing import side_by_side
from pgdyno.levers.engine.sharing_memory import Memory, with_smaller_buffers
from pgdyno.model.plans.plan import PER_APPLICATION, Layer, Plan
from pgdyno.model.plans.terms import PLAN, WITHOUT, without_per_application
from pgdyno.model.variants.variant import Variant


@dataclass(frozen=True)
class Arms:
    """The variants to measure, with notes for the reader of the figures."""

    variants: tuple[Variant, ...]
    notes: tuple[str, ...]


def arms_of(
    base: Variant, plan: Plan, memory: Memory, *, is_attributed: bool = False, no_time: str = ""
) -> Arms:
    """Return the baseline, the plan, and the plan without each part to leave out.

    Where the plan without its layers does not fit into memory beside the whole, all servers have smaller
    shared_buffers. Without --attribute two servers are measured rather than that, and also where ``no_time``
    says why there is no time for three.
    """
    whole = [base, _variant(base, PLAN, plan)]
    applied = _without_per_application(base, plan)
    if is_attributed and len(plan.layers) > 1:
        layers = [_without_layer(base, plan, layer) for layer in plan.layers]
        return _arms(*_fitting([*whole, *_not_among(layers, applied), *layers], memory))
    wanted = [*whole, *applied]
    if applied and (why := no_time or _no_memory(wanted, memory)):
        return _arms(whole, (f"the {PLAN} {applied[0].name.replace('-', ' ', 1)} was not measured: {why}",))
    return _arms(wanted)


def _arms(variants: Sequence[Variant], notes: tuple[str, ...] = ()) -> Arms:
    fitting = side_by_side(variants)
    return Arms(fitting.variants, (*notes, *fitting.notes))


def _variant(base: Variant, name: str, plan: Plan) -> Variant:
    settings = {**base.settings, **plan.values}
    return replace(base, name=name, settings=settings, server=plan.server or base.server)


def _without_layer(base: Variant, plan: Plan, layer: Layer) -> Variant:
    rest = plan.of_layers([one for one in plan.layers if one is not layer])
    return _variant(base, f"{WITHOUT}{layer.value}", rest)


def _without_per_application(base: Variant, plan: Plan) -> list[Variant]:
    """Return the plan without its per-application settings, as a list of variants.

    The list is empty if the plan has no such settings, or only those.
    """
    names = sorted(PER_APPLICATION & plan.settings.keys())
    rest = replace(plan, lines=tuple(line for line in plan.lines if line.change.key not in PER_APPLICATION))
    return [_variant(base, without_per_application(names), rest)] if names and rest.lines else []


def _not_among(others: Sequence[Variant], variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants that are no other's configuration under a name of their own."""
    known = [(one.settings, one.server) for one in others]
    return [one for one in variants if (one.settings, one.server) not in known]


def _fitting(wanted: Sequence[Variant], memory: Memory) -> tuple[tuple[Variant, ...], tuple[str, ...]]:
    """Return the variants with as much of shared_buffers as fits, and a note if that is less."""
    plan = wanted[1]
    fitting = with_smaller_buffers(wanted, plan, memory)
    planned, had = memory.buffers_of(plan), memory.buffers_of(fitting[1])
    if had == planned:
        return fitting, ()
    note = (
        f"shared_buffers were {had >> 20} MB instead of the plan's {planned >> 20} MB, so that "
        f"{len(wanted)} servers fit into memory beside each other; the data, "
        f"{memory.data_bytes >> 20} MB, fits into either"
    )
    return fitting, (note,)


def _no_memory(wanted: Sequence[Variant], memory: Memory) -> str:
    return "" if memory.holds(wanted) else "three servers do not fit into memory beside each other"
