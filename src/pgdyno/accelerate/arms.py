"""Servers that ``accelerate`` compares: baseline, plan, plan without parts.

If memory and time allow, the plan is also measured without the settings that pgdyno never applies: many
applications gain nothing from these. With ``--attribute`` each layer, or each lever, is measured alone and
left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pgdyno.measure.design.parts import Attribute, PlanPart, notes_on_parts, parts_of, taken_apart
from pgdyno.model.plans.plan import PER_APPLICATION, PLAN, Plan, without_per_application
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.search_space import line_key, with_pages_joined
from pgdyno.plan.engine.sharing import Memory, side_by_side, with_smaller_buffers


@dataclass(frozen=True)
class Attributed:
    """A request to measure parts of the plan: the kind of parts, and the largest possible gain per lever."""

    kind: Attribute
    worth: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Arms:
    """The variants to measure, with notes for the report."""

    variants: tuple[Variant, ...]
    notes: tuple[str, ...]


def arms_of(
    base: Variant, plan: Plan, memory: Memory, *, attributed: Attributed | None = None, no_time: str = ""
) -> Arms:
    """Return the baseline, the plan, and the plan without each part to leave out.

    With ``attributed``, all servers get smaller shared_buffers if they do not fit into memory together.
    Without it, the third server is dropped instead; also if ``no_time`` gives a reason why there is no time
    for three.
    """
    whole = _variant(base, PLAN, plan)
    applied = _without_per_application(base, plan)
    parts = () if attributed is None else _parts(base, plan, attributed)
    if attributed is not None and len(parts) > 1:
        apart = taken_apart(base, whole, parts)
        known = [(one.settings, one.server) for one in apart]
        others = [one for one in applied if (one.settings, one.server) not in known]
        fitting, notes = _fitting([base, whole, *others, *apart], memory)
        return _arms(fitting, (*notes, *notes_on_parts(parts, attributed.worth)))
    notes = () if attributed is None else notes_on_parts(parts, attributed.worth)
    wanted = [base, *applied, whole]
    if applied and (why := no_time or _no_memory(wanted, memory)):
        return _arms(
            [base, whole],
            (*notes, f"the {PLAN} {applied[0].name.replace('-', ' ', 1)} was not measured: {why}"),
        )
    return _arms(wanted, notes)


def _parts(base: Variant, plan: Plan, attributed: Attributed) -> tuple[PlanPart, ...]:
    as_found = side_by_side([base, _variant(base, PLAN, plan)]).as_found
    lines = plan.without_keys(as_found).lines
    if attributed.kind is Attribute.LAYERS:
        order = {layer.value: -float(place) for place, layer in enumerate(plan.layers)}
        return parts_of({line_key(line): line.layer.value for line in lines}, order)
    levers = with_pages_joined({line_key(line): line.change.lever for line in lines})
    return parts_of(levers, attributed.worth)


def _arms(variants: Sequence[Variant], notes: tuple[str, ...] = ()) -> Arms:
    fitting = side_by_side(variants)
    return Arms(fitting.variants, (*notes, *fitting.notes))


def _variant(base: Variant, name: str, plan: Plan) -> Variant:
    settings = {**base.settings, **plan.values}
    return replace(base, name=name, settings=settings, server=plan.server or base.server)


def _without_per_application(base: Variant, plan: Plan) -> list[Variant]:
    """Return the plan without its per-application settings, as a list of variants.

    The list is empty if the plan has no such settings, or only those.
    """
    names = sorted(PER_APPLICATION & plan.settings.keys())
    rest = plan.without_keys(PER_APPLICATION)
    return [_variant(base, without_per_application(names), rest)] if names and rest.lines else []


def _fitting(wanted: Sequence[Variant], memory: Memory) -> tuple[tuple[Variant, ...], tuple[str, ...]]:
    """Return the variants with as much of shared_buffers as fits, and a note if that is less than planned."""
    plan = wanted[1]
    fitting = with_smaller_buffers(wanted, plan, memory)
    return fitting, note_on_buffers(plan, fitting[wanted.index(plan)], len(wanted), memory)


def note_on_buffers(whole: Variant, had: Variant, servers: int, memory: Memory) -> tuple[str, ...]:
    """Return a note if shared_buffers were reduced to fit all servers into memory; else nothing."""
    planned_bytes, had_bytes = memory.buffers_of(whole), memory.buffers_of(had)
    if had_bytes == planned_bytes:
        return ()
    note = (
        f"shared_buffers were {had_bytes >> 20} MB instead of the {whole.name}'s {planned_bytes >> 20} MB, "
        f"so that {servers} servers fit into memory together; the data, "
        f"{memory.data_bytes >> 20} MB, fits into either"
    )
    return (note,)


def _no_memory(wanted: Sequence[Variant], memory: Memory) -> str:
    return "" if memory.holds(wanted) else "three servers do not fit into memory together"
