"""The space of a search: that of the plan, restricted to values that three servers side by side can have.

Values that are refused even alone are removed. A value is judged as the only difference from the plan, where
searches begin; if the plan itself is refused, from the original configuration. The plan's own values are
never removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pgdyno.accelerate.planning import Planned
from pgdyno.base.errors import DurabilityError, MemoryProofError
from pgdyno.host.cpu_idling import idling_files
from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.plan import Layer, Plan
from pgdyno.model.tuning.tuning import Dimension, OwnerLimits, Point, Space, at_point
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.durability import LOCKED_SETTINGS
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.memory_proof import check_memory_proof, memory_proof, shared_memory_bytes
from pgdyno.plan.engine.search_space import space_in_place, space_of
from pgdyno.plan.engine.sharing import Memory, side_by_side, with_smaller_buffers
from pgdyno.plan.levers import load as load_levers
from pgdyno.postgres.process.local_machine import available_memory_bytes
from pgdyno.postgres.server import Server
from pgdyno.profile.bounds import gains_by_lever
from pgdyno.profile.records.profile_record import TransactionProfile
from pgdyno.tune.search.searching import WhyNot


@dataclass(frozen=True)
class Searched:
    """A space, and its plan; ``why_not`` returns why a point is not tried, empty if it may be.

    ``first`` are points to try right after the plan.
    """

    plan: Plan
    space: Space
    notes: tuple[str, ...]
    why_not: Callable[[Point], str]
    memory: Memory
    first: tuple[Point, ...] = ()


def searched_space(
    planned: Planned,
    base: Variant,
    layers: Sequence[Layer],
    data_bytes: int,
    profiles: Sequence[TransactionProfile],
) -> Searched:
    """Return the space of a search; values shared by all servers of a machine are left unchanged."""
    server = planned.subject.server
    memory = _memory(server, data_bytes)
    plan, notes = _fitting(_shareable(planned.plan, base), base, memory)
    left = [
        line for line in (*planned.plan.lines, *planned.plan.unmeasured) if line.change.key not in plan.values
    ]
    if left:
        names = ", ".join(display_name(line.change.key) for line in left)
        notes = (*notes, f"left as found, because the machine has one value for all servers: {names}")
    space = space_of(plan, server, layers, load_levers(), gains_by_lever(profiles))

    def why_not(point: Point) -> str:
        return _why_not(space.whole(point), planned, base, memory)

    offered, refused = triable(space, why_not)
    never = (f"never tried, {display_name(one.key)} = {one.value}: {one.reason}" for one in refused)
    return Searched(plan, offered, (*notes, *never), why_not, memory)


def searched_in_place(planned: Planned, limits: OwnerLimits, *, may_restart: bool) -> Searched:
    """Return the space of a search on the planned server itself, within its owner's limits."""
    server, resources = planned.subject.server, planned.subject.resources
    whole = space_of(planned.plan, server, (Layer.APPLICATION,), load_levers(), {})
    reachable = space_in_place(whole, server, may_restart=may_restart)
    found = memory_proof(EffectiveSettings(server), resources)

    def refusal(settings: Point) -> str:
        proof = memory_proof(EffectiveSettings(server, settings), resources)
        if proof is None or found is None:
            return _why_refused(settings, planned)
        over = limits.over_memory_at_worst(proof.total_bytes, found.total_bytes)
        return over or _why_refused(settings, planned)

    reason = refusal(reachable.space.kept)
    space = replace(reachable.space, kept={}) if reason else reachable.space

    def why_not(point: Point) -> str:
        return refusal(space.whole(point))

    offered, refused = triable(space, why_not)
    notes = [
        *_left(reachable.left_out, "not brought into force by a reload"),
        *_left(reachable.per_application, "for one application's statements, not for a whole server"),
        *(
            f"left as found, {display_name(key)}: it is set {place}"
            for key, place in reachable.of_others.items()
        ),
        *_left(reachable.space.kept if reason else (), reason),
        *(f"never tried, {display_name(one.key)} = {one.value}: {one.reason}" for one in refused),
    ]
    return Searched(planned.plan, offered, tuple(notes), why_not, _memory(server, 0))


def _left(keys: Iterable[str], reason: str) -> tuple[str, ...]:
    """Return a note that keys are left as found; empty without keys."""
    names = ", ".join(map(display_name, keys))
    return (f"left as found, {names}: {reason}",) if names else ()


def _memory(server: Server, data_bytes: int) -> Memory:
    def settings(variant: Variant) -> EffectiveSettings:
        return EffectiveSettings(server, {k: v for k, v in variant.gucs.items() if k in server.settings})

    return Memory(
        available_memory_bytes(),
        data_bytes,
        size_of=lambda variant: shared_memory_bytes(settings(variant)),
        buffers_of=lambda variant: settings(variant).size_bytes("shared_buffers"),
    )


def _shareable(plan: Plan, base: Variant) -> Plan:
    """Return the plan without values that cannot differ between interleaved servers."""
    whole = replace(base, name="plan", settings={**base.settings, **plan.values})
    return plan.without_keys({*side_by_side([base, whole]).as_found, *idling_files(plan.values)})


def _fitting(plan: Plan, base: Variant, memory: Memory) -> tuple[Plan, tuple[str, ...]]:
    """Return the plan with shared_buffers reduced so that three servers fit into memory."""
    whole = replace(base, name="plan", settings={**base.settings, **plan.values})
    fitting = with_smaller_buffers([base, whole, whole], whole, memory)[1]
    if fitting.settings == whole.settings:
        return plan, ()
    lines = tuple(
        replace(
            line, change=replace(line.change, value=fitting.settings.get(line.change.key, line.change.value))
        )
        for line in plan.lines
    )
    note = (
        f"shared_buffers are {memory.buffers_of(fitting) >> 20} MB instead of the plan's "
        f"{memory.buffers_of(whole) >> 20} MB, so that three servers fit into memory together"
    )
    return replace(plan, lines=lines), (note,)


def _why_not(point: Point, planned: Planned, base: Variant, memory: Memory) -> str:
    """Return why a point is not tried: it does not fit into memory, or could lose commits; else empty."""
    server = planned.subject.server
    settings = {key: value for key, value in point.items() if key in server.settings}
    variant = at_point(base, "point", point)
    if not LOCKED_SETTINGS & settings.keys() and not memory.holds([base, variant, variant]):
        return "three servers with it do not fit into memory"
    return _why_refused(settings, planned)


def _why_refused(settings: Mapping[str, str], planned: Planned) -> str:
    """Return why even a single server does not get these settings; else empty."""
    server, resources = planned.subject.server, planned.subject.resources
    if locked := LOCKED_SETTINGS & settings.keys():
        return f"it affects durability: {', '.join(sorted(locked))}"
    proof = memory_proof(EffectiveSettings(server, settings), resources)
    try:
        if proof is not None:
            check_memory_proof(proof, EffectiveSettings(server, settings), resources)
    except (MemoryProofError, DurabilityError) as error:
        return error.message
    return ""


@dataclass(frozen=True)
class RefusedValue:
    """A removed value, with the reason."""

    key: str
    value: str
    reason: str


def triable(space: Space, why_not: WhyNot) -> tuple[Space, tuple[RefusedValue, ...]]:
    """Return the space without values that are refused alone, and the refused values."""
    start = {} if why_not(space.plan) else space.plan
    refused = {
        (one.key, value): reason
        for one in space.dimensions
        for value in one.values
        if value != one.planned and (reason := why_not({**start, one.key: value}))
    }

    def left(one: Dimension) -> Dimension:
        return replace(one, values=tuple(value for value in one.values if (one.key, value) not in refused))

    dimensions = tuple(one for one in map(left, space.dimensions) if one.values)
    found = tuple(RefusedValue(key, value, reason) for (key, value), reason in refused.items())
    return replace(space, dimensions=dimensions), found
