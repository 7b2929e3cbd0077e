"""Settings as they are with planned values, where they were set, and what roles and databases raise."""

from __future__ import annotations

import dataclasses

import pytest
from tests.fix_settings import MB, server_of, set_by, settings_of

from pgdyno.base.facts import Fact
from pgdyno.plan.engine.effective import (
    EffectiveSettings,
    largest_override,
    own_sessions,
    owner_of,
    scope_of,
    with_largest_overrides,
)
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.server import SettingOverride

FRESH = settings_of(18)


def with_overrides(*overrides: SettingOverride) -> EffectiveSettings:
    server = dataclasses.replace(server_of(), overrides=Fact(overrides, "pg_db_role_setting"))
    return EffectiveSettings(server)


def test_a_planned_value_stands_in_the_units_of_the_server() -> None:
    settings = EffectiveSettings(server_of()).plus({"shared_buffers": "1GB"}).plus({"work_mem": "6MB"})
    assert settings.text("shared_buffers") == "131072"  # pages of 8 kB
    assert settings.size_bytes("work_mem") == 6 * MB
    assert settings.display("shared_buffers") == "1GB"
    assert settings.number("max_connections") == 100
    assert not settings.has("no_such_setting")
    with pytest.raises(KeyError):
        settings.guc("no_such_setting")


@pytest.mark.parametrize(
    ("guc", "place"),
    [
        (FRESH["work_mem"], None),
        (FRESH["shared_buffers"], None),  # initdb writes its choice into postgresql.conf
        (
            set_by(FRESH, {"work_mem": "8MB"}, sourcefile="/d/postgresql.conf", sourceline=7)["work_mem"],
            "in /d/postgresql.conf, line 7",
        ),
        (
            set_by(FRESH, {"work_mem": "8MB"}, sourcefile="/d/postgresql.auto.conf")["work_mem"],
            "by ALTER SYSTEM (postgresql.auto.conf)",
        ),
        (
            set_by(FRESH, {"work_mem": "8MB"})["work_mem"],
            "in a configuration file (which one is hidden from this role)",
        ),
        (set_by(FRESH, {"jit": "off"}, source="database")["jit"], "for this database (ALTER DATABASE)"),
        (set_by(FRESH, {"jit": "off"}, source="interactive")["jit"], 'by "interactive"'),
    ],
)
def test_where_a_value_was_set(guc: Guc, place: str | None) -> None:
    assert owner_of(guc) == place


def test_only_overrides_above_the_servers_value_raise_it() -> None:
    app = SettingOverride("app", None, "work_mem", "64MB", connection_limit=10)
    report = SettingOverride("report", "shop", "work_mem", "1GB", connection_limit=2)
    small = SettingOverride(None, "shop", "work_mem", "64kB")
    settings = with_overrides(app, small, report)
    assert largest_override(settings) == report
    assert with_largest_overrides(settings).display("work_mem") == "1GB"
    sessions = own_sessions(settings)
    assert sessions is not None
    assert (sessions.count, sessions.owners) == (12, 'role "app", role "report" in database "shop"')
    assert sessions.workers == 24  # max_parallel_workers_per_gather is 2
    assert own_sessions(with_overrides(small)) is None
    assert largest_override(with_overrides(small)) is None


def test_sessions_without_a_limit_are_as_many_as_connections() -> None:
    everyone = SettingOverride(None, None, "hash_mem_multiplier", "4")
    sessions = own_sessions(with_overrides(everyone, SettingOverride("app", None, "work_mem", "64MB")))
    assert sessions is not None
    assert (sessions.count, sessions.owners) == (100, 'all roles, role "app"')
    assert scope_of(SettingOverride(None, "shop", "jit", "off")) == 'database "shop"'
