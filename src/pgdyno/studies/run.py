"""Runs a bundled study by name, or an experiment file."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from pgdyno.accelerate.planning import builds_to_choose, inspect_scratch, plan_for
from pgdyno.apply.host_state import HostState, this_host
from pgdyno.base.errors import SettingError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.host.files.kernel_files import read_kernel_files
from pgdyno.host.files.tree import Tree
from pgdyno.host.host import HugePagePool
from pgdyno.host.kernel_file import choices_in
from pgdyno.host.machine.memory import inspect_memory
from pgdyno.measure.arenas.arena import Passes
from pgdyno.measure.bundled_study import (
    BundledStudy,
    IoSupport,
    Machine,
    PageSupport,
    Pool,
    Sizing,
    StudyContext,
)
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.decisions.stopping import minimum_rounds
from pgdyno.measure.design.isolation import split_cpus
from pgdyno.measure.design.phase import require_writing
from pgdyno.measure.measure import measure
from pgdyno.measure.records.new_experiment import Context, tpch_facts
from pgdyno.model.experiments.experiment import Experiment, Phase
from pgdyno.model.experiments.study import SERVER_FACTOR, Study, cross, on_servers, unique_names
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.plans.plan import Layer
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.planner import PlanRequest
from pgdyno.plan.engine.resources import Figures
from pgdyno.plan.explain_degree import check_statement, never_with_workers
from pgdyno.postgres.planner.sql_text import first_word
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import initialise
from pgdyno.postgres.process.io_uring import io_uring_obstacle
from pgdyno.postgres.process.local_machine import (
    available_memory_bytes,
    may_change_host,
    online_cpus,
    workspace,
)
from pgdyno.postgres.process.registry import no_installation
from pgdyno.store.experiment_file import read_experiment_file
from pgdyno.studies.bundled import load as bundled_studies
from pgdyno.studies.bundled.parallel_degree import QUERY, WRITES
from pgdyno.studies.bundled.peers import BENCHMARK
from pgdyno.studies.peer_machine import with_room_for_wal
from pgdyno.studies.peers_context import peers_context
from pgdyno.studies.variant_settings import installation_of, leave_out_unknown, require_preset_durability
from pgdyno.workload.workload_choice import find_workloads

_NEVER_WITH_WORKERS = frozenset({"insert", "update", "delete", "merge"})
_TRANSPARENT = "/sys/kernel/mm/transparent_hugepage"
_CHOICES = (f"{_TRANSPARENT}/enabled", f"{_TRANSPARENT}/shmem_enabled")
_SINCE = 15  # shared_memory_size_in_huge_pages


def listing() -> list[tuple[str, str]]:
    """Return the name and title of every bundled study."""
    return [(name, bundled.title) for name, bundled in bundled_studies().items()]


def find_study(name: str, given: Mapping[str, tuple[str, ...]] | None = None) -> BundledStudy:
    """Return a bundled study; with --benchmark it has the loads of that benchmark.

    Raises: UsageError for an unknown name.
    """
    known = bundled_studies()
    if name not in known:
        raise UsageError(
            f'no study or file "{name}"',
            hint=f"known: {', '.join(known)}; see pgdyno run --list",
        )
    bundled = known[name]
    benchmark = BENCHMARK.read((given or {}).get(BENCHMARK.name, ())) if bundled.takes(BENCHMARK) else None
    return bundled if benchmark is None else bundled.with_loads_of(known[benchmark])


def sized(bundled: BundledStudy, requested: Sizing) -> Sizing:
    """Return the requested size, completed with this machine and the study's loads.

    Raises: UsageError for an unknown workload, or a query that cannot be measured.
    """
    for option in bundled.options:
        requested.of(option)
    _check_query(requested.of(QUERY), may_write=requested.of(WRITES))
    unknown = [name for name in requested.chosen if name not in bundled.loads]
    if unknown and not bundled.takes_workloads:
        raise UsageError(
            f'this study has no workload "{unknown[0]}"', hint=f"choose from {', '.join(bundled.loads)}"
        )
    # A study that measures no bundled workloads has its own loads, and selects among them itself.
    measured = requested.chosen if bundled.measures and requested.chosen else bundled.measures
    return replace(
        requested,
        machine=Machine(len(online_cpus()), available_memory_bytes()),
        loads=tuple(find_workloads(measured).values()),
        rounds=minimum_rounds(bundled.design),
    )


def _check_query(query: str | None, *, may_write: bool) -> None:
    """Refuse writing statements by their first word; others fail when run. Raises: UsageError."""
    if query is None:
        if may_write:
            raise UsageError("--writes requires --query", hint="give your query with --query")
        return
    check_statement(query)
    word = first_word(query)
    if word in _NEVER_WITH_WORKERS:
        raise never_with_workers(word.upper())
    if word == "create" and not may_write:
        raise UsageError(
            "the query writes", hint="with --writes the query may write; each execution is rolled back"
        )


def run_file(path: Path, conditions: Conditions, scale: int | None, progress: Progress) -> Experiment:
    """Run the experiment in a TOML file, which defines design and workloads.

    Raises: UsageError for a whole checkpoint cycle of read-only workloads; errors of measuring.
    """
    study = read_experiment_file(path)
    workloads = find_workloads(study.workloads, (), scale)
    if study.design.phase is Phase.CYCLE:
        require_writing(workloads.values())
    own = replace(conditions, workloads=workloads, design=study.design)
    return measure(study, own, progress)


def run_bundled(
    name: str,
    conditions: Conditions,
    factors: Mapping[str, Sequence[str]],
    progress: Progress,
    sizing: Sizing | None = None,
) -> Experiment:
    """Run a bundled study; ``factors`` replaces its variants by their combinations.

    The factor ``server`` varies the PostgreSQL installation; as the only factor it keeps the study's own
    variants. Settings of the requested size apply to all variants, except those that a factor varies.
    """
    size = sizing or Sizing()
    bundled = find_study(name, size.given)
    if factors and (bundled.needs_page_support or bundled.needs_peers):
        varied = "the pages" if bundled.needs_page_support else "whole configurations"
        raise UsageError(f"the study {name} varies {varied} itself", hint="leave out --factor")
    preset = bundled.settings(size)
    baseline = Variant("default", preset)
    if bundled.needs_peers:
        context = peers_context(baseline, conditions, size, progress)
        settings = context.configurations.values()
        roomy = with_room_for_wal(conditions.workloads, bundled, size, settings)
        conditions = replace(conditions, workloads=roomy)
    elif bundled.needs_plan:
        subject = inspect_scratch(baseline, conditions, Figures(), progress)
        builds = builds_to_choose(conditions) if Layer.COMPILER in bundled.layers else None
        request = PlanRequest(
            layers=bundled.layers,
            may_change_host=may_change_host(),
            builds=builds,
            with_unmeasured=True,  # the study measures it, in trials
        )
        context = plan_for(subject, baseline, conditions, request).study_context
    else:
        context = StudyContext(
            baseline,
            tuple(conditions.workloads),
            conditions.design,
            sizing=size,
            factors=factors,
            io=_io_support(conditions, factors) if bundled.needs_io_support else (),
            pages=_page_support(conditions, preset) if bundled.needs_page_support else None,
        )
    if context.servers:  # the whole stack includes other builds
        conditions = replace(conditions, accepts_builds=True)
    study = bundled.study(context)
    if factors:
        variants = unique_names(_varied(study, factors, baseline))
        study = replace(study, variants=variants, question=_question(study, factors))
        require_preset_durability(study.variants, preset)
    known = leave_out_unknown(study, preset, factors, conditions.installation)
    conditions = replace(conditions, passes=_passes(bundled))
    return measure(known, conditions, progress, _recorded(bundled, context.sizing, conditions, factors))


def _recorded(
    bundled: BundledStudy, size: Sizing, conditions: Conditions, factors: Mapping[str, Sequence[str]]
) -> Context | None:
    """Return the options that the experiment records; without any, it is repeated as a plain comparison."""
    if bundled.workloads is None:
        options = bundled.recorded_options(size)
        return Context(options=options) if options else None
    accepted = {"accept": ""} if conditions.accepts_builds else {}
    if any(workload.cell for workload in conditions.workloads.values()):
        return Context(options={**bundled.grid_options(size), **accepted}, factors=tuple(factors))
    scale = _scale_options(conditions.workloads) if bundled.takes_scale else {}
    options = {**bundled.recorded_options(size), **scale, **accepted}
    return Context(options=options, factors=tuple(factors))


def _scale_options(workloads: Mapping[str, Workload]) -> dict[str, str]:
    facts = tpch_facts([*workloads.values()])
    return {} if facts is None else {"scale": facts.scale}


def _varied(study: Study, factors: Mapping[str, Sequence[str]], baseline: Variant) -> tuple[Variant, ...]:
    """Return the study's own variants on every server if only servers vary, else all combinations.

    A study that has inspected every server already assigns its variants to servers.
    """
    if set(factors) == {SERVER_FACTOR} and all(variant.server for variant in study.variants):
        return study.variants
    if set(factors) == {SERVER_FACTOR} and len(study.variants) > 1:
        return on_servers(study.variants, factors[SERVER_FACTOR])
    return cross(factors, baseline)


def _question(study: Study, factors: Mapping[str, Sequence[str]]) -> str:
    """Return the study's question; with factors, a question for the best level is replaced."""
    varied = [name for name, values in factors.items() if len(values) > 1]
    if not (varied and study.is_adaptive):
        return study.question
    return f"What {'does' if len(varied) == 1 else 'do'} {' and '.join(varied)} change, at every level?"


def _passes(bundled: BundledStudy) -> Passes | None:
    """Return the passes that measure a study's steps; None if it has no steps."""
    if bundled.passes is None:
        return None
    return cast("Passes", importlib.import_module(bundled.passes).PASSES())


def _page_support(conditions: Conditions, settings: Mapping[str, str]) -> PageSupport:
    return find_page_support(conditions.installation or no_installation(), settings)


def _io_support(conditions: Conditions, factors: Mapping[str, Sequence[str]]) -> tuple[IoSupport, ...]:
    servers = factors.get(SERVER_FACTOR) or (None,)
    found = {server: _io_support_of(server, conditions) for server in dict.fromkeys(servers)}
    return tuple(found[server] for server in servers)


def _io_support_of(server: str | None, conditions: Conditions) -> IoSupport:
    named = Variant("", server=server)
    installation = installation_of(named, conditions.installation) or no_installation()
    return find_io_support(installation, is_isolated=conditions.design.is_isolated, named=server)


def find_io_support(installation: Installation, *, is_isolated: bool, named: str | None = None) -> IoSupport:
    """Return whether io_uring works, by trying it on a temporary data directory.

    ``is_isolated``: the load generator has its own CPUs. ``named`` is the server's name in variants.
    Raises: ServerStartError if the data directory cannot be created.
    """
    place = workspace()
    with place.scratch() as scratch:
        data_directory = scratch / "io-uring"
        initialise(installation, place.account, data_directory)
        obstacle = io_uring_obstacle(installation, place.account, data_directory)
    cpus = cpus_of_server(online_cpus(), is_isolated=is_isolated)
    return IoSupport(installation.title, installation.major, cpus, obstacle, named)


def cpus_of_server(online: tuple[int, ...], *, is_isolated: bool) -> int:
    """Return the number of online CPUs that a server gets."""
    return len(split_cpus(online, is_wanted=is_isolated).server)


def find_page_support(installation: Installation, settings: Mapping[str, str]) -> PageSupport:
    """Return the huge pages that a server with these settings needs, and try to reserve them.

    Raises: UsageError for a server that does not report the number; PrivilegeError for an ordinary user, who
    cannot reserve any; OwnershipError, LockHeldError, RefusedError, StorageError if nothing may be changed.
    """
    if installation.major < _SINCE:
        raise UsageError(
            f"{installation.title} does not report how many huge pages it needs",
            hint=f"measure with PostgreSQL {_SINCE} or later",
        )
    tree = Tree(Path("/"))
    found = inspect_memory(tree).huge_pages.or_else({})
    needed = _pages_needed(installation, settings, found)
    pools = {size_bytes: _pool(size_bytes, pool, needed[size_bytes]) for size_bytes, pool in found.items()}
    texts = read_kernel_files(tree, _CHOICES)
    choices = {path: choices_in(text) for path, fact in texts.items() if (text := fact.or_none()) is not None}
    return PageSupport(_tried(this_host(), pools), choices)


def _pool(size_bytes: int, found: HugePagePool, needed: int) -> Pool:
    """Return a pool with room for a server: pages in use, including surplus pages, are not free for it."""
    in_use, present = found.total - (found.free - found.reserved), found.total - found.surplus
    path = f"/sys/kernel/mm/hugepages/hugepages-{size_bytes // 1024}kB/nr_hugepages"
    return Pool(path, present, max(present, in_use + needed))


def _tried(state: HostState, pools: Mapping[int, Pool]) -> dict[int, Pool]:
    """Reserve all pages at once and release them; the largest size, the scarcest, first."""
    tried: dict[int, Pool] = {}
    for size_bytes, pool in sorted(pools.items(), reverse=True):
        had = [one for one in tried.values() if one.obstacle is None]
        wanted = {one.path: str(one.wanted) for one in (*had, pool)}
        state.check(wanted)
        try:
            with state.holding(wanted):
                tried[size_bytes] = pool
        except SettingError as error:
            tried[size_bytes] = replace(pool, obstacle=f"{error.message} ({error.detail})")
    return tried


def _pages_needed(
    installation: Installation, settings: Mapping[str, str], sizes_bytes: Iterable[int]
) -> dict[int, int]:
    """Return the number of pages of each size that a server needs."""
    place = workspace()
    with place.scratch() as scratch:
        data_directory = scratch / "huge-pages"
        initialise(installation, place.account, data_directory)
        return {
            size_bytes: installation.huge_pages_needed(place.account, data_directory, settings, size_bytes)
            for size_bytes in sizes_bytes
        }
