"""The planner: order, checks, refusals, and what it says beside the plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fix_settings import (
    GB,
    MAJORS,
    MB,
    host_of,
    reference_figures,
    restarted,
    server_of,
    set_by,
    settings_of,
)

from pgdyno.base.errors import DurabilityError, MemoryProofError, SettingError
from pgdyno.base.facts import Fact, unknown
from pgdyno.model.plans.plan import REFUSED_ABOVE, Effect, Finding, Layer, Plan, Risk
from pgdyno.plan import levers
from pgdyno.plan.engine.durability import check_found
from pgdyno.plan.engine.memory_proof import PLANNED_BELOW
from pgdyno.plan.engine.planner import PlanRequest, make_plan
from pgdyno.plan.engine.resources import Figures, StorageKind
from pgdyno.plan.levers import _in_order
from pgdyno.plan.levers._contract import (
    Lever,
    Maturity,
    Need,
    PlanContext,
    PlanLine,
    Skipped,
)
from pgdyno.plan.view.plan_text import plan_text
from pgdyno.postgres.server import SettingOverride, Standby


def fake(name: str, key: str, value: str, **metadata: Any) -> Any:
    """Return a lever that always sets one setting to one value."""
    lever = Lever(
        name=name,
        title=name,
        layer=metadata.pop("layer", Layer.APPLICATION),
        risk=Risk.SAFE,
        maturity=Maturity.PREVIEW,
        settings=metadata.pop("settings", (key,)),
        **metadata,
    )

    def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
        line = lever.propose(ctx, key, value, reason="a test", evidence="none")
        return (line,) if line is not None else Skipped(name, "already there")

    return SimpleNamespace(LEVER=lever, plan=plan)


def skip_reasons(plan: Plan) -> dict[str, str]:
    return {skipped.lever: skipped.reason for skipped in plan.skipped}


def test_the_reference_host_gets_what_a_dba_would_recognise() -> None:
    plan = make_plan(host_of(), server_of(18))
    assert plan.settings == {
        "checkpoint_timeout": "15min",
        "effective_cache_size": "18GB",
        "random_page_cost": "1.1",
        "shared_buffers": "6GB",
        "maintenance_work_mem": "1536MB",
        "autovacuum_work_mem": "384MB",
        "max_wal_size": "16GB",
        "min_wal_size": "4GB",
        "work_mem": "24MB",
    }
    assert plan.needs_restart
    assert [line.change.key for line in plan.lines if line.change.effect is Effect.RESTART] == [
        "shared_buffers"
    ]
    assert plan.memory_proof is not None
    assert plan.memory_proof.share < PLANNED_BELOW


def test_stated_figures_give_the_same_plan_as_the_same_host() -> None:
    remote = server_of(18, is_colocated=False)
    stated = make_plan(None, remote, PlanRequest(figures=reference_figures()))
    assert stated.settings == make_plan(host_of(), server_of(18)).settings


def test_without_any_figures_only_what_needs_none_is_planned() -> None:
    plan = make_plan(None, server_of(15, is_colocated=False, data_bytes=None))
    assert plan.settings == {"checkpoint_timeout": "15min", "jit": "off"}
    assert skip_reasons(plan)["shared_buffers"] == "no host was inspected; state it with --ram"
    assert plan.memory_proof is None


def test_a_setting_of_a_later_major_is_skipped_by_name() -> None:
    assert skip_reasons(make_plan(host_of(), server_of(15)))["io_method"] == (
        "PostgreSQL 15.18 has no io_method"
    )


def test_levers_see_what_was_planned_before() -> None:
    lower = make_plan(host_of(), server_of(18), PlanRequest(figures=Figures(connections=500)))
    more = make_plan(host_of(), server_of(18), PlanRequest(figures=Figures(connections=20)))
    assert lower.settings["max_connections"] == "503"
    assert "work_mem" not in lower.settings
    assert more.settings["work_mem"] == "64MB"


def test_what_servers_in_turns_cannot_differ_in_is_listed_apart() -> None:
    request = PlanRequest(layers=tuple(Layer))
    plan = make_plan(host_of(), server_of(18), request)
    unmeasured = {line.change.lever for line in plan.unmeasured}
    assert {"swappiness", "sched_autogroup", "cpu_governor"} <= unmeasured
    assert not unmeasured & {line.change.lever for line in plan.lines}
    assert "huge_page_pool" in {line.change.lever for line in plan.lines}
    whole = make_plan(host_of(), server_of(18), dataclasses.replace(request, with_unmeasured=True))
    assert whole.unmeasured == ()
    assert {line.change.key for line in whole.lines} == {
        line.change.key for line in (*plan.lines, *plan.unmeasured)
    }
    named = make_plan(host_of(), server_of(18), PlanRequest(named=("swappiness",)))
    assert [line.change.key for line in named.lines] == ["/proc/sys/vm/swappiness"]
    assert "Not measured, and left as found: " in plan_text(plan)
    assert "Not measured" not in plan_text(whole)


def test_only_the_layers_asked_for_are_planned() -> None:
    plan = make_plan(host_of(), server_of(18), PlanRequest(layers=(Layer.SYSTEM,)))
    assert {line.layer for line in plan.lines} == {Layer.SYSTEM}
    assert plan.settings == {}
    none = make_plan(host_of(), server_of(18), PlanRequest(layers=(Layer.MICROARCHITECTURE,)))
    assert (none.lines, {one.lever for one in none.skipped}) == ((), {"cache_allocation"})


def test_what_cannot_fit_is_refused_with_the_number_of_connections_that_would() -> None:
    with pytest.raises(MemoryProofError) as caught:
        make_plan(host_of(memory_bytes=1 * GB), server_of(18))
    assert caught.value.message.startswith("the worst case of 2.32\xa0GB is 232\xa0% of the 1\xa0GB")
    assert caught.value.hint is not None
    assert "--connections" in caught.value.hint


def test_with_that_number_it_fits() -> None:
    figures = Figures(connections=12)
    plan = make_plan(host_of(memory_bytes=1 * GB), server_of(18), PlanRequest(figures=figures))
    assert plan.settings["max_connections"] == "15"
    assert plan.memory_proof is not None
    assert plan.memory_proof.share <= REFUSED_ABOVE


def test_a_value_the_server_would_reject_is_a_fault_and_not_clamped() -> None:
    broken = {"broken": fake("broken", "shared_buffers", "1kB")}
    with pytest.raises(SettingError) as caught:
        make_plan(host_of(), server_of(18), levers=broken)
    assert str(caught.value) == (
        'lever "broken" planned a value that this server would not accept: '
        '1kB is outside the valid range for parameter "shared_buffers"\n'
        "DETAIL:  the server accepts 16 8kB .. 1073741823 8kB\n"
        "HINT:  this is a bug in pgdyno; plan without this lever and report it"
    )


def test_a_lever_that_reaches_for_the_durability_lock_is_stopped() -> None:
    broken = {"cheat": fake("cheat", "fsync", "off")}
    with pytest.raises(SettingError, match='"fsync" is not a setting this lever may change'):
        make_plan(host_of(), server_of(18), levers=broken)


def test_a_lever_that_leaves_its_settings_is_stopped() -> None:
    broken = {"stray": fake("stray", "work_mem", "8MB", settings=("jit",))}
    with pytest.raises(SettingError, match='"work_mem" is not a setting this lever may change'):
        make_plan(host_of(), server_of(18), levers=broken)


def test_a_lever_that_uses_an_undeclared_fact_is_stopped() -> None:
    careless = fake("careless", "work_mem", "8MB")
    careless.plan = lambda ctx: [ctx.memory_bytes]
    with pytest.raises(LookupError, match=r"does not declare in LEVER\.needs"):
        make_plan(None, server_of(18), levers={"careless": careless})


def test_of_two_levers_in_conflict_the_first_wins() -> None:
    pair = {
        "first": fake("first", "work_mem", "8MB"),
        "second": fake("second", "temp_buffers", "16MB", conflicts=("first",)),
    }
    plan = make_plan(host_of(), server_of(18), levers=pair)
    assert plan.settings == {"work_mem": "8MB"}
    assert skip_reasons(plan) == {"second": 'excluded by lever "first", which is in the plan'}


def test_a_missing_need_skips_with_the_facts_reason() -> None:
    pair = {"hungry": fake("hungry", "work_mem", "8MB", needs=(Need.MEMORY,))}
    plan = make_plan(None, server_of(18), levers=pair)
    assert skip_reasons(plan) == {"hungry": "no host was inspected; state it with --ram"}


def test_order_follows_dependencies_then_layers_then_names() -> None:
    unordered = {
        "b": fake("b", "work_mem", "8MB"),
        "a": fake("a", "work_mem", "8MB", order_after=MappingProxyType({"c": "a test"})),
        "c": fake("c", "work_mem", "8MB", layer=Layer.HARDWARE),
        "d": fake("d", "work_mem", "8MB", layer=Layer.SYSTEM),
    }
    assert _in_order(unordered) == ["b", "d", "c", "a"]


def test_the_catalogue_is_read_only() -> None:
    with pytest.raises(TypeError):
        levers.load()["new"] = fake("new", "jit", "off")  # type: ignore[index]


def test_an_unsafe_server_is_reported_loudly_and_never_improved_on() -> None:
    unsafe = server_of(18, changes={"fsync": "off", "full_page_writes": "off"})
    plan = make_plan(host_of(), unsafe)
    assert [finding.severity for finding in plan.findings] == ["danger", "danger"]
    assert [finding.message for finding in plan.findings] == [
        "fsync is off: a crash of the machine can destroy the whole cluster",
        "full_page_writes is off: a crash during a write can leave torn pages that recovery cannot repair",
    ]
    assert plan.findings[0].hint == (
        "pgdyno does not change it; unless intended: ALTER SYSTEM SET fsync = on"
    )
    assert plan.lines == make_plan(host_of(), server_of(18)).lines  # neither repaired nor made use of
    with pytest.raises(DurabilityError, match="the server at db1 may lose data as it is set up now"):
        check_found(unsafe, "db1")


sizes_bytes = st.integers(min_value=256, max_value=2 << 20).map(lambda megabytes: megabytes * MB)
figures = st.builds(
    Figures,
    memory_bytes=sizes_bytes,
    cpu_count=st.integers(1, 256).map(float),
    storage=st.sampled_from(StorageKind),
    data_bytes=st.integers(0, 1 << 44),
    free_disk_bytes=st.integers(0, 1 << 44),
    connections=st.none() | st.integers(1, 5000),
)


@settings(deadline=None, max_examples=100)
@given(st.sampled_from(MAJORS), figures)
def test_whatever_the_host_the_plan_fits_or_is_refused_and_settles_at_once(
    major: int, stated: Figures
) -> None:
    server = server_of(major, is_colocated=False)
    request = PlanRequest(figures=stated)
    try:
        plan = make_plan(None, server, request)
    except MemoryProofError:
        return
    assert plan.memory_proof is not None
    assert plan.memory_proof.share <= REFUSED_ABOVE
    assert make_plan(None, restarted(server, plan.settings), request).lines == ()
    for name, value in plan.settings.items():
        server.settings[name].check(value)


def findings(plan: Plan, word: str) -> list[Finding]:
    return [finding for finding in plan.findings if word in finding.message]


def test_settings_of_roles_and_databases_that_mask_the_plan_are_findings() -> None:
    overrides = (
        SettingOverride("app", None, "work_mem", "8MB"),
        SettingOverride(None, "sales", "random_page_cost", "3"),
        SettingOverride("app", "sales", "jit", "on"),
        SettingOverride("app", "sales", "work_mem", "2MB"),
        SettingOverride(None, None, "work_mem", "3MB"),
    )
    server = dataclasses.replace(server_of(18), overrides=Fact(overrides, "pg_db_role_setting"))
    found = findings(make_plan(host_of(), server), "overrides the planned")
    assert [finding.message for finding in found] == [
        'work_mem = 8MB is set for role "app" and overrides the planned 24MB there',
        'random_page_cost = 3 is set for database "sales" and overrides the planned 1.1 there',
        'work_mem = 2MB is set for role "app" in database "sales" and overrides the planned 24MB there',
        "work_mem = 3MB is set for all roles and overrides the planned 24MB there",
    ]
    assert [finding.hint for finding in found] == [
        'remove it with ALTER ROLE "app" RESET work_mem',
        'remove it with ALTER DATABASE "sales" RESET random_page_cost',
        'remove it with ALTER ROLE "app" IN DATABASE "sales" RESET work_mem',
        "remove it with ALTER ROLE ALL RESET work_mem",
    ]


def test_hidden_overrides_are_said_to_be_unknown() -> None:
    server = dataclasses.replace(server_of(18), overrides=unknown("needs pg_monitor", "pg_db_role_setting"))
    [finding] = findings(make_plan(host_of(), server), "not known")
    assert finding.severity == "note"
    assert finding.message == "per-role and per-database settings are not known: needs pg_monitor"


def test_values_from_the_command_line_are_planned_with_a_warning() -> None:
    gucs = set_by(settings_of(18), {"shared_buffers": "1GB"}, source="command line")
    plan = make_plan(host_of(), server_of(18, settings=gucs))
    [line] = [line for line in plan.lines if line.change.key == "shared_buffers"]
    assert line.reason.endswith(". The present value was set on the server's command line")
    [finding] = findings(plan, "shared_buffers is set on the server's command line")
    assert finding.message.endswith("which overrides all configuration files")


@pytest.mark.parametrize("is_standby", [True, False])
def test_in_a_replicated_cluster_the_order_of_servers_is_a_finding(*, is_standby: bool) -> None:
    server = dataclasses.replace(
        server_of(18),
        is_in_recovery=is_standby,
        standbys=Fact(() if is_standby else (Standby("s1", "streaming", "async"),), "pg_stat_replication"),
    )
    large = host_of(memory_bytes=256 * GB, cpus=64)
    [finding] = findings(make_plan(large, server), "replicated cluster")
    assert finding.message.endswith("the plan changes max_worker_processes")
    assert finding.hint == "raise these on the standbys first and lower them on the primary first"


def test_what_else_a_restart_would_bring_is_a_finding() -> None:
    gucs = settings_of(18)
    gucs["max_wal_senders"] = dataclasses.replace(gucs["max_wal_senders"], pending_restart=True)
    [finding] = findings(make_plan(host_of(), server_of(18, settings=gucs)), "pending restart")
    assert finding.message == "changed in a configuration file, pending restart: max_wal_senders"


def test_a_server_that_forbids_alter_system_is_a_finding() -> None:
    server = server_of(18, changes={"allow_alter_system": "off"})
    [finding] = findings(make_plan(host_of(), server), "allow_alter_system")
    assert finding.hint == "add the planned settings there: pgdyno advise --format conf"


@pytest.mark.parametrize(("major", "word"), [(14, "has best-effort support"), (19, "is not supported yet")])
def test_majors_outside_the_tested_ones_work_with_a_warning(major: int, word: str) -> None:
    server = dataclasses.replace(server_of(min(major, 18)), version_num=major * 10_000)
    plan = make_plan(host_of(), server)
    assert plan.lines
    assert [finding.severity for finding in findings(plan, word)] == ["warning"]
