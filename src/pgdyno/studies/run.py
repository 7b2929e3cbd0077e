"""Runs a bundled study by name, or an experiment file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pgdyno.accelerate.planning import inspect_scratch, plan_for
from pgdyno.base.errors import UsageError
from pgdyno.base.ports import Progress
from pgdyno.builds.known_builds import builds_to_choose
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.decisions.stopping import minimum_rounds
from pgdyno.measure.design.phase import require_writing
from pgdyno.measure.measure import measure
from pgdyno.measure.records.new_experiment import Context, tpch_facts
from pgdyno.model.experiments.bundled_study import (
    BundledStudy,
    IoSupport,
    Machine,
    PageSupport,
    Sizing,
    StudyContext,
)
from pgdyno.model.experiments.experiment import Experiment, Phase
from pgdyno.model.experiments.study import SERVER_FACTOR, Study, cross, on_servers, unique_names
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.plans.plan import Layer
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.degrees.explain_degree import check_statement, never_with_workers
from pgdyno.plan.engine.planner import PlanRequest
from pgdyno.plan.engine.resources import Figures
from pgdyno.postgres.planner.sql_text import first_word
from pgdyno.postgres.process.installations import none_named
from pgdyno.postgres.process.local_machine import available_memory_bytes, may_change_host, online_cpus
from pgdyno.store.experiment_file import read_experiment_file
from pgdyno.studies.bundled import load as bundled_studies
from pgdyno.studies.bundled.parallel_degree import QUERY, WRITES
from pgdyno.studies.bundled.peers import BENCHMARK
from pgdyno.studies.io_support import find_io_support
from pgdyno.studies.page_support import find_page_support
from pgdyno.studies.peer_machine import with_room_for_wal
from pgdyno.studies.peers_context import peers_context
from pgdyno.studies.variant_settings import installation_of, leave_out_unknown, require_preset_durability
from pgdyno.workload.workload_choice import find_workloads

_NEVER_WITH_WORKERS = frozenset({"insert", "update", "delete", "merge"})


def listing() -> list[tuple[str, str]]:
    """Return the name and title of every bundled study."""
    return [(name, bundled.title) for name, bundled in bundled_studies().items()]


def find_study(name: str, given: Mapping[str, tuple[str, ...]] | None = None) -> BundledStudy:
    """Return a bundled study; one that takes benchmarks has the loads of the one that was given.

    Raises: UsageError for an unknown name.
    """
    known = bundled_studies()
    if name not in known:
        raise UsageError(
            f'no study "{name}", and no file of that name',
            hint=f"known: {', '.join(known)}; see pgdyno run --list",
        )
    bundled = known[name]
    benchmark = BENCHMARK.read((given or {}).get(BENCHMARK.name, ())) if bundled.takes(BENCHMARK) else None
    return bundled if benchmark is None else bundled.with_loads_of(known[benchmark])


def sized(bundled: BundledStudy, asked: Sizing) -> Sizing:
    """Return the requested size, completed by the study's own grid.

    Raises: UsageError for a workload that it does not have, and a query that cannot be measured.
    """
    for option in bundled.options:
        asked.of(option)
    _check_query(asked.of(QUERY), may_write=asked.of(WRITES))
    unknown = [name for name in asked.chosen if name not in bundled.loads]
    if unknown and not bundled.takes_workloads:
        raise UsageError(
            f'this study has no workload "{unknown[0]}"', hint=f"choose from {', '.join(bundled.loads)}"
        )
    # A study that measures none of the bundled ones has loads of its own, which it chooses among itself.
    measured = asked.chosen if bundled.measures and asked.chosen else bundled.measures
    return replace(
        asked,
        machine=Machine(len(online_cpus()), available_memory_bytes()),
        loads=tuple(find_workloads(measured).values()),
        rounds=minimum_rounds(bundled.design),
    )


def _check_query(query: str | None, *, may_write: bool) -> None:
    """Refuse writing statements by their first word; others are found when run. Raises: UsageError."""
    if query is None:
        if may_write:
            raise UsageError("--writes is about a query of yours", hint="name it with --query")
        return
    check_statement(query)
    word = first_word(query)
    if word in _NEVER_WITH_WORKERS:
        raise never_with_workers(word.upper())
    if word == "create" and not may_write:
        raise UsageError(
            "the query writes", hint="with --writes a query of yours may write; each execution is rolled back"
        )


def run_file(path: Path, conditions: Conditions, scale: int | None, progress: Progress) -> Experiment:
    """Run the experiment in a TOML file; its design and workloads hold.

    Raises: UsageError for a whole checkpoint cycle of workloads that only read; what measuring raises.
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

    A factor called ``server`` varies the PostgreSQL that runs; alone, it keeps the study's own variants.
    Settings that belong to the size asked for are those of all variants, except where a factor varies them.
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
    if context.servers:  # other builds are what the whole stack is about
        conditions = replace(conditions, accepts_builds=True)
    study = bundled.study(context)
    if factors:
        variants = unique_names(_varied(study, factors, baseline))
        study = replace(study, variants=variants, question=_question(study, factors))
        require_preset_durability(study.variants, preset)
    known = leave_out_unknown(study, preset, factors, conditions.installation)
    return measure(known, conditions, progress, _asked(bundled, context.sizing, conditions, factors))


def _asked(
    bundled: BundledStudy, size: Sizing, conditions: Conditions, factors: Mapping[str, Sequence[str]]
) -> Context | None:
    """Return the options that the experiment records; studies without any repeat as plain comparisons."""
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
    """Return the option that asks for this scale again."""
    facts = tpch_facts([*workloads.values()])
    return {} if facts is None else {"scale": facts.scale}


def _varied(study: Study, factors: Mapping[str, Sequence[str]], baseline: Variant) -> tuple[Variant, ...]:
    """Return the study's own variants on every server if only servers vary, else all combinations.

    A study that has looked at every server says itself which of its variants work on which.
    """
    if set(factors) == {SERVER_FACTOR} and all(variant.server for variant in study.variants):
        return study.variants
    if set(factors) == {SERVER_FACTOR} and len(study.variants) > 1:
        return on_servers(study.variants, factors[SERVER_FACTOR])
    return cross(factors, baseline)


def _question(study: Study, factors: Mapping[str, Sequence[str]]) -> str:
    """Return the study's question; not that for the best level, which is one about a single variant."""
    varied = [name for name, values in factors.items() if len(values) > 1]
    if not (varied and study.is_adaptive):
        return study.question
    return f"What {'does' if len(varied) == 1 else 'do'} {' and '.join(varied)} change, at every level?"


def _page_support(conditions: Conditions, settings: Mapping[str, str]) -> PageSupport:
    return find_page_support(conditions.installation or none_named(), settings)


def _io_support(conditions: Conditions, factors: Mapping[str, Sequence[str]]) -> tuple[IoSupport, ...]:
    """Look at every server that is measured."""
    servers = factors.get(SERVER_FACTOR) or (None,)
    found = {server: _io_support_of(server, conditions) for server in dict.fromkeys(servers)}
    return tuple(found[server] for server in servers)


def _io_support_of(server: str | None, conditions: Conditions) -> IoSupport:
    named = Variant("", server=server)
    installation = installation_of(named, conditions.installation) or none_named()
    return find_io_support(installation, is_isolated=conditions.design.is_isolated, named=server)
