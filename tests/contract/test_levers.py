"""What every lever must do, whichever layer it is in: rules in ``plan/levers/_contract.py``."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections import Counter
from contextlib import nullcontext as does_not_raise
from pathlib import Path

import pytest
from tests.fix_settings import (
    MAJORS,
    MB,
    host_of,
    restarted,
    server_of,
    settings_of,
    with_files,
)

from pgdyno.base.facts import Fact
from pgdyno.host.host import Host
from pgdyno.host.kernel_file import COUPLED
from pgdyno.model.plans.plan import HOST_KINDS, SETTING, Layer, Plan
from pgdyno.plan import levers
from pgdyno.plan.engine.durability import LOCKED_SETTINGS
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.planner import PlanRequest, make_plan, plan_one
from pgdyno.plan.engine.resources import Figures, proven_host, resources_of
from pgdyno.plan.levers._contract import (
    HEADINGS,
    Check,
    LeverModule,
    Maturity,
    PlanContext,
    PlanLine,
    Skipped,
    State,
    matches,
)
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.server import Server

LEVERS = levers.load()
GB = 1024 * MB
every_lever = pytest.mark.parametrize("name", LEVERS)
every_file = pytest.mark.parametrize(
    "name", [name for name, one in LEVERS.items() if not isinstance(one, Check)]
)


def names_with(*fields: str) -> list[str]:
    """Return the levers of which one of these fields says something."""
    return [name for name, one in LEVERS.items() if any(getattr(one.LEVER, field) for field in fields)]


every_major = pytest.mark.parametrize("major", MAJORS)

# Hosts and servers that make most levers plan something: large data, many CPUs, values set by people.
SITUATIONS = {
    "reference": (host_of(), {}),
    "large": (host_of(memory_bytes=256 * GB, cpus=64, free_disk_bytes=2048 * GB), {}),
    "small": (host_of(memory_bytes=2 * GB, cpus=1, free_disk_bytes=3 * GB), {}),
    "rotating": (host_of(is_rotational=True), {}),
    "spoilt": (
        host_of(),
        {
            "checkpoint_completion_target": "0.5",
            "huge_pages": "on",
            "max_wal_size": "64MB",
            "wal_buffers": "64kB",
            "work_mem": "2GB",
        },
    ),
}
every_situation = pytest.mark.parametrize("situation", SITUATIONS)


def situation_of(situation: str, major: int) -> tuple[Host, Server]:
    host, changes = SITUATIONS[situation]
    return host, server_of(major, changes=changes, data_bytes=200 * GB, has_jit=True)


def context(host: Host | None, server: Server, connections: int | None = 50) -> PlanContext:
    return PlanContext(
        settings=EffectiveSettings(server),
        resources=resources_of(host, server, Figures()),
        connections=connections,
        host=proven_host(host, server),
    )


def lines_of(module: LeverModule, ctx: PlanContext) -> tuple[PlanLine, ...]:
    outcome = plan_one(module, ctx)
    return () if isinstance(outcome, Skipped) else outcome


def test_there_are_levers_and_their_names_are_unique() -> None:
    files = {path.stem for path in _lever_files()}
    assert files <= LEVERS.keys()
    assert all(isinstance(LEVERS[name], Check) for name in LEVERS.keys() - files)


def _lever_files() -> list[Path]:
    root = Path(levers.__file__).parent
    found = [path for layer in Layer for path in (root / layer).glob("*.py")]
    return [path for path in found if not path.name.startswith(("_", "checked_"))]


@every_file
def test_docstring_has_the_headings_in_order(name: str) -> None:
    documentation = LEVERS[name].page
    positions = [documentation.find(f"\n{heading}:\n") for heading in HEADINGS]
    assert -1 not in positions, f"{name} lacks one of {HEADINGS}"
    assert positions == sorted(positions)


@pytest.mark.parametrize("name", [name for name, one in LEVERS.items() if isinstance(one, Check)])
def test_a_check_says_what_is_wanted_and_who_says_so(name: str) -> None:
    check = LEVERS[name]
    assert isinstance(check, Check)
    assert not (check.LEVER.settings)
    assert not (check.LEVER.files)
    assert check.page.startswith(f"{name}: {check.LEVER.title}; checked, never changed.\n\nWanted:\n    ")
    assert all(f"\n    {source}" in check.page for source in check.sources)
    assert check.sources


@every_file
def test_layer_is_the_package_it_lies_in(name: str) -> None:
    layers = [path.parent.name for path in _lever_files() if path.stem == name]
    assert layers == [LEVERS[name].LEVER.layer], f"{name}: a lever is named like its file"


@every_file
def test_imports_only_nouns_and_the_contract(name: str) -> None:
    path = next(path for path in _lever_files() if path.stem == name)
    imported = [
        node.module or ""
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
    ]
    ours = {module for module in imported if module.startswith("pgdyno")}
    shared = f"pgdyno.plan.levers.{path.parent.name}._"  # what several levers of a layer have in common
    allowed = ("pgdyno.base", "pgdyno.model", "pgdyno.plan.levers._contract", shared)
    nouns = re.compile(r"pgdyno\.(host|postgres)\.\w+")  # beside the rooms that read them
    assert all(one.startswith(allowed) or nouns.fullmatch(one) for one in ours), ours


@pytest.mark.parametrize("name", names_with("order_after", "conflicts"))
def test_levers_it_names_exist(name: str) -> None:
    lever = LEVERS[name].LEVER
    assert set(lever.order_after) | set(lever.conflicts) <= set(LEVERS)
    assert all(lever.order_after.values()), "an order needs a reason"


def test_levers_come_after_those_they_wait_for() -> None:
    position = {name: place for place, name in enumerate(LEVERS)}
    late = [
        (name, first)
        for name, module in LEVERS.items()
        for first in module.LEVER.order_after
        if position[first] > position[name]
    ]
    assert not late


def test_each_setting_and_file_belongs_to_one_lever() -> None:
    owners = Counter(
        name for module in LEVERS.values() for name in (*module.LEVER.settings, *module.LEVER.files)
    )
    assert [name for name, count in owners.items() if count > 1] == []


@every_lever
def test_it_says_what_it_may_touch(name: str) -> None:
    lever = LEVERS[name].LEVER
    touched = (lever.settings, lever.files, lever.reads, lever.process, lever.facts)
    assert any(touched) or lever.chooses_server
    assert all(path.startswith(("/proc/", "/sys/", "/dev/cpu/")) for path in (*lever.files, *lever.reads))


@pytest.mark.parametrize("name", names_with("facts"))
def test_the_facts_that_it_names_are_facts(name: str) -> None:
    ctx = context(host_of(), server_of())
    assert all(isinstance(ctx.fact(fact), Fact) for fact in LEVERS[name].LEVER.facts)


@pytest.mark.parametrize("name", names_with("facts"))
def test_facts_that_are_unknown_make_it_not_available_with_the_reason(name: str) -> None:
    module, ctx = LEVERS[name], context(None, server_of())
    assert module.detect(ctx).state is State.ABSENT
    outcome = plan_one(module, ctx)
    assert isinstance(outcome, Skipped)
    assert outcome.reason.startswith("not available: ")


REPORTS = [name for name, module in LEVERS.items() if not module.LEVER.settings and not module.LEVER.files]


@pytest.mark.parametrize("name", REPORTS)
@every_situation
def test_a_lever_that_may_touch_nothing_says_what_it_found(name: str, situation: str) -> None:
    host, server = situation_of(situation, 18)
    for ctx in (context(host, server), context(None, server)):
        outcome = plan_one(LEVERS[name], ctx)
        assert isinstance(outcome, Skipped)
        assert outcome.reason


@pytest.mark.parametrize("name", names_with("files"))
def test_of_coupled_files_it_changes_one(name: str) -> None:
    files = LEVERS[name].LEVER.files
    assert not {COUPLED[path] for path in files if path in COUPLED} & set(files)


@pytest.mark.parametrize("name", names_with("moves_with"))
def test_settings_move_with_others_of_their_lever_that_vary_by_themselves(name: str) -> None:
    lever = LEVERS[name].LEVER
    assert {*lever.moves_with, *lever.moves_with.values()} <= set(lever.settings)
    assert not lever.moves_with.keys() & set(lever.moves_with.values())


@pytest.mark.parametrize("name", names_with("settings"))
def test_settings_exist_in_at_least_one_major(name: str) -> None:
    known = {setting for major in MAJORS for setting in settings_of(major)}
    assert set(LEVERS[name].LEVER.settings) <= known


@pytest.mark.parametrize("name", names_with("settings"))
def test_may_not_touch_the_durability_lock(name: str) -> None:
    assert not set(LEVERS[name].LEVER.settings) & LOCKED_SETTINGS


@every_situation
@every_major
def test_plans_are_accepted_by_the_server_and_stay_in_their_settings(major: int, situation: str) -> None:
    host, server = situation_of(situation, major)
    for module in LEVERS.values():
        for line in lines_of(module, context(host, server)):
            key = line.change.key
            if line.change.kind in HOST_KINDS:
                assert any(matches(key, pattern) for pattern in module.LEVER.files)
                assert key in host.kernel_files
            else:
                assert line.change.kind == SETTING
                assert key in module.LEVER.settings
                assert key not in LOCKED_SETTINGS
                server.settings[key].check(line.change.value)


NEVER_PLANNED = {
    "huge_page_pool": "follows shared_buffers of a server that has been restarted; these have 128 MB",
    "io_combine_limit": "only lets a raised limit take effect; these have the default",
    "sched_batch": "plans for scratch servers, and these are none",
}
"""Levers that change nothing in any of these situations, with the reason: tests/unit/levers has others."""


def test_each_lever_that_is_no_preview_plans_something_somewhere() -> None:
    finished = {name for name, module in LEVERS.items() if module.LEVER.maturity is not Maturity.PREVIEW}
    planning = {
        name
        for name, module in LEVERS.items()
        for major in MAJORS
        for situation in SITUATIONS
        if lines_of(module, context(*situation_of(situation, major)))
    }
    assert sorted(finished - planning) == sorted(NEVER_PLANNED)


@every_situation
@every_major
def test_every_line_says_why_from_where_and_how_to_undo(major: int, situation: str) -> None:
    host, server = situation_of(situation, major)
    for module in LEVERS.values():
        for line in lines_of(module, context(host, server)):
            assert line.reason
            assert line.evidence
            assert line.undo.startswith("pgdyno revert")
            assert line.change.current
            assert line.change.lever == module.LEVER.name
            assert line.layer is module.LEVER.layer


@every_situation
@every_major
def test_planning_is_deterministic_and_changes_nothing(major: int, situation: str) -> None:
    host, server = situation_of(situation, major)
    ctx = context(host, server)
    before = dataclasses.replace(ctx)
    assert [plan_one(module, ctx) for module in LEVERS.values()] == [
        plan_one(module, ctx) for module in LEVERS.values()
    ]
    assert ctx == before


@every_situation
@every_major
def test_a_server_that_has_the_plan_needs_no_other(major: int, situation: str) -> None:
    host, server = situation_of(situation, major)
    request = PlanRequest(figures=Figures(connections=20), layers=tuple(Layer))
    first = make_plan(host, server, request)
    assert first.lines
    changed = with_files(host, files_of(first))
    again = make_plan(changed, restarted(server, first.settings), request).lines
    changing = [line.change.lever for line in again]
    assert not changing, "on a server that has the plan it changes more: is a lever missing in order_after?"


def files_of(plan: Plan) -> dict[str, str]:
    return {change.key: change.value for change in plan.host_changes}


def least(guc: Guc) -> set[str]:
    """Return the smallest value that a setting takes, and 0 if it takes that."""
    if guc.vartype not in {"integer", "real"} or guc.min_val is None or guc.is_read_only:
        return set()
    return {guc.min_val, "0"} if float(guc.min_val) <= 0 else {guc.min_val}


@pytest.mark.parametrize("major", [MAJORS[0], MAJORS[-1]])
def test_a_setting_that_is_zero_or_least_is_no_stumbling_block(major: int) -> None:
    host, server = situation_of("large", major)
    for guc in server.settings.values():
        for value in least(guc):
            gucs = {**server.settings, guc.name: dataclasses.replace(guc, setting=value)}
            ctx = context(host, dataclasses.replace(server, settings=gucs))
            with does_not_raise():
                for module in LEVERS.values():
                    plan_one(module, ctx)


@every_major
def test_unknown_facts_skip_a_lever_with_the_reason(major: int) -> None:
    ctx = context(None, server_of(major, data_bytes=None, is_colocated=False))
    needing = [module for module in LEVERS.values() if module.LEVER.needs]
    assert needing
    for module in needing:
        outcome = plan_one(module, ctx)
        assert isinstance(outcome, Skipped), module.LEVER.name
        assert outcome.reason


@every_lever
def test_detect_tells_a_fresh_cluster_from_a_changed_one(name: str) -> None:
    for major in MAJORS:
        fresh = LEVERS[name].detect(context(None, server_of(major)))
        assert fresh.state in (State.OFF, State.ABSENT, State.UNKNOWN)
        assert fresh.detail


@pytest.mark.parametrize("name", names_with("watched"))
def test_files_that_the_host_lacks_make_it_not_available_with_the_reason(name: str) -> None:
    module = LEVERS[name]
    ctx = context(dataclasses.replace(host_of(), kernel_files={}), server_of())
    assert module.detect(ctx).state is State.ABSENT
    outcome = plan_one(module, ctx)
    assert isinstance(outcome, Skipped)
    assert outcome.reason.startswith("not available: ")


def planned_files(name: str) -> dict[str, str]:
    """Return the files that a lever changes on the reference host, with a server that is large for it."""
    server = server_of(changes={"shared_buffers": "4GB"})
    lines = lines_of(LEVERS[name], context(host_of(), server))
    return {line.change.key: line.change.value for line in lines if line.change.kind in HOST_KINDS}


@pytest.mark.parametrize("name", [name for name in LEVERS if planned_files(name)])
def test_detect_sees_that_its_own_plan_was_carried_out(name: str) -> None:
    module, host, server = LEVERS[name], host_of(), server_of(changes={"shared_buffers": "4GB"})
    assert module.detect(context(host, server)).state in (State.OFF, State.PARTIAL)
    assert module.detect(context(with_files(host, planned_files(name)), server)).state is State.ON
