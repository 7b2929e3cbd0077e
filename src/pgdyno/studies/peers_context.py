"""Makes the configurations of ``run peers``: every peer's, the user's additional ones, and pgdyno's plan.

All are made for the same machine: with the memory given by the user, or each server's share of the available
memory, and with this host's CPUs and storage. In passes over steps, servers run one after another: each has
all of the memory, and the machine is set up for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from pgdyno.accelerate.planning import builds_to_choose, inspect_scratch, plan_for
from pgdyno.base.errors import ServerError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.measure.bundled_study import Sizing, StudyContext
from pgdyno.measure.conditions import Conditions
from pgdyno.model.plans.plan import (
    PER_APPLICATION,
    PLAN,
    SETTINGS_ALONE,
    WHOLE_STACK,
    WITH_HOST,
    Layer,
    Plan,
    without_per_application,
)
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.memory_proof import shared_memory_bytes
from pgdyno.plan.engine.planner import PlanRequest
from pgdyno.plan.engine.resources import Figures
from pgdyno.plan.engine.sharing import SideBySide, note_on_unmeasured, side_by_side
from pgdyno.plan.levers.system.huge_page_pool import ESTIMATE_MARGIN
from pgdyno.plan.peers import load
from pgdyno.plan.peers.comparable import SPARE_CONNECTIONS, configured_peers
from pgdyno.plan.subject import peer_facts, without_idling
from pgdyno.postgres.process.local_machine import may_change_host
from pgdyno.postgres.server import Server
from pgdyno.store.experiments import open_store
from pgdyno.studies.bundled.peers import MEMORY, STUDY, VARIANT
from pgdyno.studies.peer_machine import load_of, machine_memory, machine_notes, notes_on_data

_OF_THE_HOST = (Layer.SYSTEM, Layer.HARDWARE)
_WITH_HOST_LAYER = "pgtune"  # in our runs the fastest peer, or indistinguishable from it
_POOL = re.compile(r"/hugepages-(\d+)kB/nr_hugepages$")
_EQUAL_TERMS = (
    f"{SETTINGS_ALONE} has the plan's settings without its host layer, and {_WITH_HOST_LAYER}{WITH_HOST} has "
    f"{_WITH_HOST_LAYER}'s settings with it: they separate the gain of the settings from that of the host"
)
_RESERVED = 3  # default of superuser_reserved_connections, which count in max_connections
_NO_TUNED = (
    "TuneD's profile is not compared, because it sets the whole machine for all servers; "
    "pgdyno run tuned-vs-default measures it in alternating whole trials"
)
_NO_BUILD = "no newer build of this PostgreSQL is installed: the plan is compared only on the same programs"


def peers_context(
    baseline: Variant, conditions: Conditions, sizing: Sizing, progress: Progress
) -> StudyContext:
    """Inspect a scratch server, and return every configuration for it, with notes for the reader.

    Raises: UsageError for more memory than available, or a duplicate name; errors of planning.
    """
    added = sizing.of(VARIANT)
    _require_no_settings(baseline)
    _require_other_names(baseline, added)
    sizing = _as_recorded(sizing, conditions.resume)
    demand = load_of(conditions)
    memory_bytes, available_bytes = machine_memory(sizing, demand)
    figures = Figures(
        memory_bytes=memory_bytes,
        data_bytes=demand.made_bytes,
        connections=demand.clients + SPARE_CONNECTIONS,
    )
    subject = inspect_scratch(baseline, conditions, figures, progress)
    facts = peer_facts(subject.server, subject.resources)
    if facts is None:
        raise ServerError("the number of CPUs of the server is unknown, and every rule needs it")
    request = _request(figures, conditions, with_unmeasured=demand.in_passes)
    plan = plan_for(subject, baseline, conditions, request).plan
    plan = plan if conditions.as_booted else without_idling(plan)
    ours = own_arms(baseline, plan)
    connections = demand.clients + SPARE_CONNECTIONS + _RESERVED
    given = replace(facts, connections=connections, purpose=demand.purpose)
    peers = configured_peers(subject.server, given, demand.clients)
    settings, pages = with_huge_pages(plan, subject.server, peers.settings)
    theirs = [Variant(name, values) for name, values in settings.items()]
    mixed = on_equal_terms(baseline, plan, subject.server, settings)
    variants = (baseline, *_on(baseline, theirs), *ours, *mixed, *_on(baseline, added))
    fitting = SideBySide(variants, ()) if demand.in_passes else side_by_side(variants)
    first, *rest = fitting.variants
    notes = (
        *machine_notes(given, demand, None if sizing.of(MEMORY) else available_bytes),
        *notes_on_data(fitting.variants, subject.server, demand.data_bytes),
        *peers.notes,
        *pages,
        *((_EQUAL_TERMS,) if mixed else ()),
        _NO_TUNED,
        *((_NO_BUILD,) if plan.server is None else ()),
        *fitting.notes,
        *note_on_unmeasured(line.change.key for line in plan.unmeasured),
    )
    return StudyContext(
        first,
        tuple(conditions.workloads),
        conditions.design,
        {one.name: one.settings for one in rest},
        notes,
        _recorded(sizing, memory_bytes),
        servers={one.name: one.server for one in rest if one.server is not None},
    )


def own_arms(baseline: Variant, plan: Plan) -> list[Variant]:
    """Return the plan on the same programs, and the whole stack if the plan chooses other programs.

    Each has a second arm without the settings that suit only some applications.
    """
    same = replace(plan, lines=tuple(one for one in plan.lines if one.layer is not Layer.COMPILER))
    programs = {PLAN: baseline.server, **({WHOLE_STACK: plan.server} if plan.server is not None else {})}
    arms = []
    for name, server in programs.items():
        settings = {**baseline.settings, **same.values}
        arms.append(replace(baseline, name=name, settings=settings, server=server))
        if held := sorted(PER_APPLICATION & same.settings.keys()):
            rest = {key: value for key, value in settings.items() if key not in held}
            without = without_per_application(held)
            arms.append(
                replace(arms[-1], name=without if name == PLAN else f"{name}-{without}", settings=rest)
            )
    return arms


def on_equal_terms(
    baseline: Variant, plan: Plan, server: Server, peers: Mapping[str, Mapping[str, str]]
) -> list[Variant]:
    """Return two arms that separate the settings' gain from the host's; empty without a host layer.

    One has the plan's settings without that layer, the other the usually fastest peer with it, with as many
    huge pages as this peer needs.
    """
    lines = [one for one in plan.lines if one.layer in _OF_THE_HOST and one.change.key in plan.values]
    host = {one.change.key: one.change.value for one in lines}
    if not host:
        return []
    ours = {
        line.change.key: line.change.value
        for line in plan.lines
        if line.layer is Layer.APPLICATION and line.change.key not in PER_APPLICATION
    }
    found = [replace(baseline, name=SETTINGS_ALONE, settings={**baseline.settings, **ours})]
    theirs = peers.get(_WITH_HOST_LAYER)
    if theirs is not None:
        pool = _pool(plan, server, theirs)
        pages = {"huge_pages": "try"} if pool else {}
        settings = {**baseline.settings, **theirs, **pages, **host, **pool}
        found.append(replace(baseline, name=f"{_WITH_HOST_LAYER}{WITH_HOST}", settings=settings))
    return found


def with_huge_pages(
    plan: Plan, server: Server, peers: Mapping[str, Mapping[str, str]]
) -> tuple[dict[str, Mapping[str, str]], list[str]]:
    """Reserve huge pages for peers with huge_pages = on if the plan reserves some for its server.

    Otherwise such a peer's server would not start: its huge_pages is set to off, with a note.
    """
    found, notes = dict(peers), []
    for name, settings in peers.items():
        if settings.get("huge_pages") != "on":
            continue
        pool = _pool(plan, server, settings)
        found[name] = {**settings, **pool}
        if not pool:
            found[name] = {**settings, "huge_pages": "off"}
            notes.append(f"{name} runs without huge pages: only root can reserve them, and the plan has none")
    return found, notes


def _pool(plan: Plan, server: Server, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the pool of huge pages for a server with these settings; empty if the plan has no pool."""
    size_bytes = shared_memory_bytes(EffectiveSettings(server, settings)) * (1 + ESTIMATE_MARGIN)
    pools = filter(None, map(_POOL.search, plan.values))
    return {one.string: str(math.ceil(size_bytes / (int(one[1]) << 10))) for one in pools}


def _request(figures: Figures, conditions: Conditions, *, with_unmeasured: bool) -> PlanRequest:
    """Return a request for everything that this user may change, like that of ``accelerate``.

    Passes can also measure changes of the whole machine: each server has the machine to itself.
    """
    may_change = may_change_host()
    layers = tuple(one for one in STUDY.layers if may_change or one not in _OF_THE_HOST)
    return PlanRequest(
        figures,
        layers,
        may_change_host=may_change,
        builds=builds_to_choose(conditions),
        with_unmeasured=with_unmeasured,
    )


def _require_no_settings(baseline: Variant) -> None:
    """Refuse a benchmark size with its own configuration. Raises: UsageError."""
    if baseline.settings:
        raise UsageError(
            "this size of the benchmark has its own configuration, which peers would not replace",
            detail=f"it sets {', '.join(baseline.settings)}",
            hint="leave out --preset, and give the size with --rows and --clients",
        )


def _on(baseline: Variant, variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants on top of the baseline's settings."""
    return [
        replace(one, settings={**baseline.settings, **one.settings}, server=one.server or baseline.server)
        for one in variants
    ]


def _require_other_names(baseline: Variant, added: Sequence[Variant]) -> None:
    """Refuse additional configurations with names already in use. Raises: UsageError."""
    without = without_per_application(sorted(PER_APPLICATION))
    ours = (PLAN, without, WHOLE_STACK, f"{WHOLE_STACK}-{without}")
    mixed = (SETTINGS_ALONE, f"{_WITH_HOST_LAYER}{WITH_HOST}")
    names = [baseline.name, *load(), *ours, *mixed, *(one.name for one in added)]
    taken = next((name for name in names if names.count(name) > 1), None)
    if taken is not None:
        raise UsageError(f'two configurations have the name "{taken}"', hint="rename the --variant")


def _as_recorded(sizing: Sizing, resumed: str | None) -> Sizing:
    """Return the sizing with the memory of the resumed experiment, unless --memory is given.

    The share of the memory available now would differ.
    """
    if resumed is None or MEMORY.name in sizing.given:
        return sizing
    with closing(open_store()) as store:
        recorded = store.load(resumed).options.get(MEMORY.name)
    return sizing if recorded is None else replace(sizing, given={**sizing.given, MEMORY.name: (recorded,)})


def _recorded(sizing: Sizing, memory_bytes: int) -> Sizing:
    """Return the sizing with the chosen memory, which the experiment stores."""
    return replace(sizing, given={**sizing.given, MEMORY.name: (f"{memory_bytes >> 20}MB",)})
