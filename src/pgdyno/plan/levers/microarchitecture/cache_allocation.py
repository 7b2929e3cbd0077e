"""cache_allocation: a share of the last-level cache reserved for the server's instructions.

What it does:
    Creates a group in Linux's resctrl (/sys/fs/resctrl/pgdyno) for the postmaster and its processes. If the
    processor distinguishes code and data (CDP), their data may no longer fill the parts of the cache that can
    hold PostgreSQL's machine code; their code may fill all parts. Without CDP, other tasks are confined to a
    quarter of the cache instead, and the server has the rest exclusively. If the file system is not mounted,
    the plan only mounts it: the possible divisions are known afterwards, and the next advise plans one. The
    lever is planned only by name: --lever cache_allocation.

Why it helps:
    Scans and large sorts evict everything else from a cache shared by code and data. An instruction fetch
    from memory stalls a processor entirely; during a data access it can execute other instructions.

When it hurts:
    The part reserved for code is not available for data; a server that mostly reads memory has less cache.
    Without CDP all other programs on the machine, including local clients, share a quarter of the cache.
    Other programs' data may still evict code. The division ends with the postmaster: after a restart of the
    server it must be reverted and applied again.

How it is verified:
    The kernel's division is read back, and the group's tasks must be the server's.

How it is undone:
    The group is removed; its tasks return to the default group, which gets its former share. If pgdyno
    mounted the file system, it is unmounted, unless other groups exist by then. Pre-existing groups are never
    changed or removed; while others have groups, even only for monitoring, nothing is planned. After a kill,
    a group with a division other than the planned one may belong to another tool: it is kept, for you to
    rmdir. A reboot undoes everything.

Evidence:
    Not measured by pgdyno: no machine with such a processor was available. A full-stack study of PostgreSQL
    on a cloud server (2023) lists it among its levers, without a separate figure. The 10 MB for code are an
    upper bound: PostgreSQL 18 has 4 to 9 MB, depending on the build; a workload runs a small part of it.

References:
    https://docs.kernel.org/filesystems/resctrl.html
    https://www.intel.com/content/www/us/en/developer/articles/technical/introduction-to-cache-allocation-technology.html
    Arm, Memory System Resource Partitioning and Monitoring (MPAM), DDI 0598
"""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.base.facts import Unknown
from pgdyno.host.cache_allocation import (
    GROUP,
    OF_GROUP,
    OF_OTHERS,
    RESCTRL,
    TECHNOLOGIES,
    WITH_CDP,
    WITHOUT_CDP,
    CacheAllocation,
    ControlledCache,
    Division,
    division_of,
)
from pgdyno.model.plans.plan import CACHE_GROUP, CACHE_MOUNT
from pgdyno.plan.levers._contract import (
    MB,
    Change,
    Detected,
    Effect,
    Layer,
    Lever,
    PlanContext,
    PlanLine,
    Planned,
    Risk,
    State,
    format_bytes,
)

LEVER = Lever(
    name="cache_allocation",
    title="cache reserved for the server's instructions",
    layer=Layer.MICROARCHITECTURE,
    risk=Risk.SHARED,
    facts=("host.cpu.isa_features",),
    divides_caches=True,
    is_named_only=True,
)

_OURS = GROUP.removeprefix(f"{RESCTRL}/")
_CODE_BYTES = 10 * MB  # all of PostgreSQL's machine code; see Evidence
_AT_MOST = 4  # a quarter of the cache: arbitrary
_GROUPS = 2  # the default group and pgdyno's


def detect(ctx: PlanContext) -> Detected:
    """Return the divisible caches, and whether pgdyno's group contains processes."""
    found = _allocation(ctx)
    if isinstance(found, str):
        return Detected(State.ABSENT, found)
    if not found.is_mounted:
        return Detected(State.OFF, f"{', '.join(_technologies(ctx)) or 'MPAM'}; {RESCTRL} is not mounted")
    if _OURS in found.groups:
        state = State.ON if _OURS in found.occupied else State.PARTIAL
        inside = "" if state is State.ON else ", but contains no process"
        return Detected(state, f"{GROUP} has {_ours(found)}{inside}")
    return Detected(State.OFF, "; ".join(_described(name, one) for name, one in found.caches.items()))


def plan(ctx: PlanContext) -> Planned:
    """Divide the last-level cache, or mount the file system that shows the possible divisions."""
    found = _allocation(ctx)
    if isinstance(found, str):
        return LEVER.skip(f"not available: {found}")
    obstacle = _obstacle(ctx, found)
    if obstacle is not None:
        return LEVER.skip(obstacle)
    if not found.is_mounted:
        return _mounting(ctx)
    directory: str | None = ctx.fact("server.data_directory").or_none()
    if directory is None:
        return LEVER.skip(f"not available: {ctx.why_unknown(ctx.fact('server.data_directory'))}")
    return _dividing(ctx, found, directory)


def _allocation(ctx: PlanContext) -> CacheAllocation | str:
    """Return the caches as reported by the kernel, or why they are not available."""
    fact = ctx.fact("host.cache_allocation")
    if not isinstance(fact.value, Unknown):
        found: CacheAllocation = fact.value
        return found
    if ctx.host is None:
        return fact.value.reason
    return f"the processor or this kernel cannot divide caches ({fact.source}: {fact.value.reason})"


def _obstacle(ctx: PlanContext, found: CacheAllocation) -> str | None:
    """Return why nothing may be divided here; None if nothing prevents it."""
    if others := sorted(set(found.groups) - {_OURS}):
        return f"other groups already divide or monitor the caches: {', '.join(others)}"
    if _OURS in found.occupied:
        return f"{GROUP} has processes: {_ours(found)}"
    if _OURS in found.groups:
        return f"{GROUP} remains from a stopped server: pgdyno revert, or rmdir it, then plan again"
    if any(ctx.settings.guc(name).needs_restart for name in ctx.settings.planned):
        return "other planned changes restart the server, which ends a division: apply them first"
    return None


def _ours(found: CacheAllocation) -> str:
    return found.schemata.get(_OURS, "no readable division")


def _technologies(ctx: PlanContext) -> tuple[str, ...]:
    return tuple(name for name in TECHNOLOGIES if name in ctx.known("host.cpu.isa_features"))


def _mounting(ctx: PlanContext) -> Planned:
    """Plan to mount the file system, with CDP if the processor has it."""
    technologies = _technologies(ctx)
    if "cat_l3" not in technologies:
        return LEVER.skip(
            f"whether {RESCTRL} can divide the last-level cache is known only when it is mounted: "
            f"mount -t resctrl resctrl {RESCTRL}, then plan again",
        )
    value = WITH_CDP if "cdp_l3" in technologies else WITHOUT_CDP
    change = Change(LEVER.name, CACHE_MOUNT, RESCTRL, "not mounted", value, Effect.IMMEDIATE)
    reason = f"the processor has {', '.join(technologies)}; this shows the possible divisions of its cache"
    return (_line(change, f"{reason}, and the next advise plans one", f"umount {RESCTRL}"),)


def _dividing(ctx: PlanContext, found: CacheAllocation, directory: str) -> Planned:
    """Plan the group: divide between code and data, or between the server and others."""
    if {"L3CODE", "L3DATA"} <= found.caches.keys():
        return _by_code_and_data(ctx, found, directory)
    if "L3" not in found.caches:
        return LEVER.skip("not available: the last-level cache cannot be divided here")
    if "cdp_l3" in _technologies(ctx):
        return LEVER.skip(
            f"{RESCTRL} is mounted without cdp, which this processor supports: unmount it, then plan again",
        )
    return _by_server_and_others(found, directory)


def _by_code_and_data(ctx: PlanContext, found: CacheAllocation, directory: str) -> Planned:
    cache, l3_bytes = found.caches["L3DATA"], ctx.fact("host.cpu.l3_bytes").or_none()
    if l3_bytes is None:
        return LEVER.skip(f"not available: {ctx.why_unknown(ctx.fact('host.cpu.l3_bytes'))}")
    part_bytes = l3_bytes // cache.parts
    count = max(cache.least_parts, min(-(-_CODE_BYTES // part_bytes), cache.parts // _AT_MOST))
    kept = cache.end_without_devices(count)
    if kept is None or cache.groups_at_most < _GROUPS:
        return LEVER.skip(_too_few(cache))
    masks = {"L3CODE": cache.mask, "L3DATA": cache.mask & ~kept}
    share = f"{count} of {cache.parts} parts, {format_bytes(part_bytes)} each, are reserved for code"
    why = f"it has at most {format_bytes(_CODE_BYTES)}, and the server's data no longer evicts it"
    return (_group(masks, found, directory, f"{share}: {why}"),)


def _by_server_and_others(found: CacheAllocation, directory: str) -> Planned:
    cache = found.caches["L3"]
    count = max(cache.least_parts, cache.parts // _AT_MOST)
    theirs = cache.low_end(count) if cache.shared_parts & cache.low_end(count) else cache.high_end(count)
    if count >= cache.parts or cache.groups_at_most < _GROUPS:
        return LEVER.skip(_too_few(cache))
    reason = f"without CDP code cannot be separated: other tasks have {count} of {cache.parts} parts"
    return (
        _group({"L3": cache.mask & ~theirs}, found, directory, f"{reason}, the server all others"),
        _others(theirs, found, f"{reason}, and do not use the server's"),
    )


def _too_few(cache: ControlledCache) -> str:
    return (
        f"not available: too few parts or groups: the cache has {cache.parts} parts, of which devices fill "
        f"{cache.shared_parts.bit_count()}, and the processor supports {cache.groups_at_most} groups"
    )


def _group(masks: Mapping[str, int], found: CacheAllocation, directory: str, reason: str) -> PlanLine:
    numbers = {cache: _numbers(found, cache) for cache in masks}
    division = {cache: dict.fromkeys(numbers[cache], mask) for cache, mask in masks.items()}
    value = str(Division(division, directory))
    change = Change(LEVER.name, CACHE_GROUP, OF_GROUP, "no group", value, Effect.IMMEDIATE)
    return _line(change, reason, f"rmdir {GROUP}")


def _others(mask: int, found: CacheAllocation, reason: str) -> PlanLine:
    value = str(Division({"L3": dict.fromkeys(_numbers(found, "L3"), mask)}))
    now = found.schemata[""]
    change = Change(LEVER.name, CACHE_GROUP, OF_OTHERS, now, value, Effect.IMMEDIATE)
    return _line(change, reason, f"write {now} to {OF_OTHERS}")


def _numbers(found: CacheAllocation, cache: str) -> tuple[int, ...]:
    """Return the ids of a cache's instances, at least one per socket."""
    division = division_of(found.schemata.get("", ""))
    return () if division is None else tuple(division.masks.get(cache, ()))


def _line(change: Change, reason: str, manual_undo: str) -> PlanLine:
    return PlanLine(
        change=change,
        layer=LEVER.layer,
        reason=reason,
        evidence="Linux, Documentation/filesystems/resctrl.rst; reasoned, not measured",
        risk=LEVER.risk,
        undo=f"pgdyno revert; by hand: {manual_undo}; a reboot undoes it too",
    )


def _described(name: str, cache: ControlledCache) -> str:
    return f"{name} has {cache.parts} parts for {cache.groups_at_most} groups"
