"""Makes the configurations of ``run peers``: every peer's, those the user adds, and pgdyno's own plan.

All are made for one machine: with the memory that is stated, or the share of each server in what is available
here, and the CPUs and storage that there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from pgdyno.app.local_machine import available_memory_bytes, may_change_host, open_store, workspace
from pgdyno.app.measuring.conditions import Conditions
from pgdyno.app.planning.idling import without_idling
from pgdyno.app.planning.known_builds import known_builds
from pgdyno.app.planning.peer_facts import peer_facts
from pgdyno.app.planning.planning import inspect_scratch, plan_for
from pgdyno.experiments.peers import load
from pgdyno.experiments.peers._contract import PeerFacts
from pgdyno.experiments.peers.comparable import SPARE_CONNECTIONS
from pgdyno.experiments.peers.configured import configured_peers
from pgdyno.levers.engine.effective import EffectiveSettings
from pgdyno.levers.engine.planner import PlanRequest
from pgdyno.levers.engine.resources import Figures
from pgdyno.levers.engine.sharing import side_by_side
from pgdyno.levers.engine.sharing_memory import MEMORY_SHARE
from pgdyno.model import numbers
from pgdyno.model.errors import MemoryProofError, ServerError, UsageError
from pgdyno.model.plans.plan import PER_APPLICATION, Layer, Plan
from pgdyno.model.plans.terms import PLAN, WHOLE_STACK, without_per_application
from pgdyno.model.ports import Progress
from pgdyno.model.servers.server import Server
from pgdyno.model.variants.variant import Variant
from pgdyno.studies._contract import Sizing, StudyContext
from pgdyno.studies.peers import LEAST_BYTES, MEMORY, STUDY, VARIANT

_MOST_OF_OURS = 4  # the plan and the whole stack, each with and without what suits some applications alone
_LARGEST_SHARE = 1 / 3  # of memory, that a configuration gives shared_buffers: Cloud SQL's; the usual is 1/4
_STEP_BYTES = 64 << 20
_RESERVED = 3  # superuser_reserved_connections by default, which max_connections contains
_NO_TUNED = (
    "TuneD's profile is not compared: it sets the whole machine, which has one value of each; "
    "pgdyno run tuned-vs-default alternates whole trials for it"
)
_NO_BUILD = (
    "no newer build of this PostgreSQL is here, so that the plan is compared on the same programs alone"
)


def memory_for_each(available_bytes: int, servers: int) -> int:
    """Return the memory of the machine that configurations are made for, such that all servers fit.

    Were each of them to take the largest share as shared_buffers, they would just fill what interleaved
    servers may have; mostly it is less. The rest is for the data in the page cache, and for backends.
    """
    each_bytes = MEMORY_SHARE * available_bytes / servers / _LARGEST_SHARE
    return int(each_bytes) // _STEP_BYTES * _STEP_BYTES


def peers_context(
    baseline: Variant, conditions: Conditions, sizing: Sizing, progress: Progress
) -> StudyContext:
    """Inspect a scratch server, and return every configuration for it, with notes for the reader.

    Raises: UsageError for more memory than there is, or a name that is taken; what planning raises.
    """
    sizing = _as_recorded(sizing, conditions.resume)
    memory_bytes, available_bytes = _memory(baseline, sizing)
    clients = _clients(conditions)
    figures = Figures(memory_bytes=memory_bytes, connections=clients + SPARE_CONNECTIONS)
    subject = inspect_scratch(baseline, conditions, figures, progress)
    facts = peer_facts(subject.server, subject.resources)
    if facts is None:
        raise ServerError("how many CPUs the server may use is not known, and every rule asks for that")
    plan = plan_for(subject, baseline, conditions, _request(figures, conditions)).plan
    ours = own_arms(baseline, plan if conditions.as_booted else without_idling(plan))
    told = replace(facts, connections=clients + SPARE_CONNECTIONS + _RESERVED)
    peers = configured_peers(subject.server, told, clients)
    theirs = [Variant(name, settings) for name, settings in peers.settings.items()]
    fitting = side_by_side([baseline, *_on(baseline, theirs), *ours, *_on(baseline, sizing.of(VARIANT))])
    first, *rest = fitting.variants
    notes = (
        *_machine_notes(told, None if sizing.of(MEMORY) else available_bytes),
        *_notes_on_data(fitting.variants, subject.server, conditions),
        *peers.notes,
        _NO_TUNED,
        *((_NO_BUILD,) if plan.server is None else ()),
        *fitting.notes,
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
    """Return the plan on the same programs, and the whole stack if the plan chooses others.

    Each stands there a second time without what suits only some applications.
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


def _request(figures: Figures, conditions: Conditions) -> PlanRequest:
    """Return the request for everything that this user may change, as ``accelerate`` asks for it."""
    may_change = may_change_host()
    of_the_machine = (Layer.SYSTEM, Layer.HARDWARE)
    layers = tuple(one for one in STUDY.layers if may_change or one not in of_the_machine)
    installation = conditions.installation
    builds = None if installation is None else known_builds(workspace(), installation.bin_directory)
    return PlanRequest(figures, layers, may_change_host=may_change, builds=builds)


def _clients(conditions: Conditions) -> int:
    return max(one.clients or conditions.design.clients for one in conditions.workloads.values())


def _memory(baseline: Variant, sizing: Sizing) -> tuple[int, int]:
    """Return the memory to make configurations for, and the available memory.

    Raises: UsageError if that is less, or for a further configuration with a name that is taken;
    MemoryProofError if no server's share is enough.
    """
    added, available_bytes = sizing.of(VARIANT), available_memory_bytes()
    without = without_per_application(sorted(PER_APPLICATION))
    ours = (PLAN, without, WHOLE_STACK, f"{WHOLE_STACK}-{without}")
    _require_unique([baseline.name, *load(), *ours, *(one.name for one in added)])
    servers = len(load()) + _MOST_OF_OURS + len(added)
    memory_bytes = sizing.of(MEMORY) or memory_for_each(available_bytes, servers)
    if memory_bytes > available_bytes:
        asked, there = numbers.size(memory_bytes), numbers.size(available_bytes)
        raise UsageError(f"--memory {asked} is more than the {there} that are available here")
    if memory_bytes < LEAST_BYTES:
        raise MemoryProofError(
            f"{servers} servers beside each other would have {numbers.size(memory_bytes)} of memory each",
            detail=f"{numbers.size(available_bytes)} are available, and every rule needs 1 GB",
            hint="with --memory 1GB they take turns in whole trials where they do not fit beside each other",
        )
    return memory_bytes, available_bytes


def _on(baseline: Variant, variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants with the baseline's settings below their own."""
    return [
        replace(one, settings={**baseline.settings, **one.settings}, server=one.server or baseline.server)
        for one in variants
    ]


def _require_unique(names: Sequence[str]) -> None:
    taken = next((name for name in names if names.count(name) > 1), None)
    if taken is not None:
        raise UsageError(f'two configurations are called "{taken}"', hint="give the --variant another name")


def _machine_notes(facts: PeerFacts, available_bytes: int | None) -> Iterator[str]:
    share = (
        ""
        if available_bytes is None
        else f": each server's share of the {numbers.size(available_bytes)} that are available here"
    )
    cpus = "1 CPU" if facts.cpus == 1 else f"{facts.cpus} CPUs"
    machine = f"{numbers.size(facts.memory_bytes)} of memory, {cpus} and {facts.storage} storage"
    asked = f", and for max_connections = {facts.connections} where its rule asks for that"
    yield f"every configuration is made for a machine with {machine}{share}{asked}"


def _notes_on_data(variants: Sequence[Variant], server: Server, conditions: Conditions) -> Iterator[str]:
    """Say into whose shared_buffers the data do not fit."""
    data_bytes = max(one.data_set.size_bytes for one in conditions.workloads.values())
    names = [one.name for one in variants if _buffers_bytes(server, one.gucs) < data_bytes]
    if names:
        yield (
            f"the data, {numbers.size(data_bytes)}, do not fit into shared_buffers of {', '.join(names)}; "
            "they are read from the page cache there"
        )


def _buffers_bytes(server: Server, settings: Mapping[str, str]) -> int:
    known = {name: value for name, value in settings.items() if name in server.settings}
    return EffectiveSettings(server, known).size_bytes("shared_buffers")


def _as_recorded(sizing: Sizing, resumed: str | None) -> Sizing:
    """Return the sizing with the memory of the experiment that is resumed, if no other is stated.

    The share of what is available would be another one by now.
    """
    if resumed is None or MEMORY.name in sizing.given:
        return sizing
    with closing(open_store()) as store:
        recorded = store.load(resumed).options.get(MEMORY.name)
    return sizing if recorded is None else replace(sizing, given={**sizing.given, MEMORY.name: (recorded,)})


def _recorded(sizing: Sizing, memory_bytes: int) -> Sizing:
    """Return the sizing with the memory that was chosen, to be stored with the experiment."""
    return replace(sizing, given={**sizing.given, MEMORY.name: (f"{memory_bytes >> 20}MB",)})
