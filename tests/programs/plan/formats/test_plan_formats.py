"""Formats: what they look like, and that PostgreSQL reads from them exactly what was planned."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion
from tests.fix_servers import RealServer
from tests.fix_settings import GB, host_of, server_of, set_by, settings_of

from pgdyno.base.errors import SettingError
from pgdyno.model.plans.plan import Change, Effect, Layer, Plan, PlanLine, Risk
from pgdyno.plan import formats
from pgdyno.plan.engine.planner import PlanRequest, make_plan
from pgdyno.plan.engine.resources import Figures
from pgdyno.plan.formats import conf, sql

FORMATS = {name: formats.load(name) for name in formats.names()}
every_format = pytest.mark.parametrize("name", FORMATS)


def reference_plan() -> Plan:
    return make_plan(host_of(), server_of(18))


def one_line_plan(name: str, value: str, reason: str = "a test") -> Plan:
    change = Change("test", "setting", name, "old", value, Effect.RELOAD)
    line = PlanLine(change, Layer.APPLICATION, reason, "none", Risk.SAFE, "pgdyno revert")
    return Plan((line,), (), (), None)


@pytest.mark.parametrize("name", ["conf", "json", "sql"])
def test_the_reference_plan_looks_like_this(name: str, snapshot: SnapshotAssertion) -> None:
    assert FORMATS[name].render(reference_plan(), server_of(18)) == snapshot


@every_format
def test_an_empty_plan_is_still_a_valid_document(name: str, snapshot: SnapshotAssertion) -> None:
    assert FORMATS[name].render(Plan((), (), (), None), server_of(18)) == snapshot


@every_format
def test_every_format_ends_with_a_newline_and_is_found_by_its_name(name: str) -> None:
    assert FORMATS[name].FORMAT.name == name
    assert FORMATS[name].render(reference_plan(), server_of(18)).endswith("\n")


def test_the_bundled_formats_are_found_by_walking_the_package() -> None:
    assert formats.names() == (
        "ansible", "aurora", "azure", "cloudsql", "cnpg", "conf", "crunchy", "json", "patroni", "rds", "sql",
        "sysctl", "systemd", "terraform", "tuned", "udev", "zalando",
    )  # fmt: skip


def test_the_command_lists_the_formats_without_importing_them() -> None:
    program = "import sys, pgdyno.cli.advise; print(*(one for one in sys.modules if 'plan.formats.' in one))"
    imported = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert imported.stdout.split() == ["pgdyno.plan.formats._contract"]


@pytest.mark.parametrize("name", ["conf", "sql"])
def test_every_line_that_is_no_statement_is_a_comment(name: str) -> None:
    text = FORMATS[name].render(reference_plan(), server_of(18))
    comment = {"conf": "#", "sql": "--"}[name]
    statements = [line for line in text.splitlines() if line and not line.startswith(comment)]
    reloads = 1 if name == "sql" else 0
    assert len(statements) == len(reference_plan().settings) + reloads


@pytest.mark.parametrize(("name", "comment"), [("conf", "# "), ("sql", "-- ")])
@given(reason=st.text(max_size=300))
def test_no_reason_escapes_its_comment(name: str, comment: str, reason: str) -> None:
    text = FORMATS[name].render(one_line_plan("work_mem", "8MB", reason), server_of(18))
    lines = [line for line in text.split("\n") if line]
    prefixes = (comment, comment.strip(), "work_mem =", "ALTER SYSTEM", "SELECT pg_reload_conf")
    assert all(line.startswith(prefixes) for line in lines)
    assert "\r" not in text


def test_conf_quotes_as_the_configuration_file_is_read() -> None:
    assert conf.quoted("it's a \\ test") == "'it''s a \\\\ test'"


def test_sql_quotes_independently_of_standard_conforming_strings() -> None:
    assert sql.quoted("it's") == "'it''s'"
    assert sql.quoted("a\\b'c") == "E'a\\\\b''c'"


def test_sql_quotes_a_name_that_needs_it() -> None:
    text = sql.render(one_line_plan('My.odd"name', "1"), server_of(18))
    assert """ALTER SYSTEM SET "My"."odd""name" = '1';""" in text


def test_sql_gives_the_elements_of_a_list_one_by_one() -> None:
    text = sql.render(
        one_line_plan("shared_preload_libraries", 'pg_stat_statements, "my-lib"'), server_of(18)
    )
    assert "ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements', 'my-lib';" in text
    plain = sql.render(one_line_plan("log_destination", "stderr, jsonlog"), server_of(18))
    assert "ALTER SYSTEM SET log_destination = 'stderr, jsonlog';" in plain


def test_sql_refuses_what_alter_system_cannot_store() -> None:
    with pytest.raises(SettingError, match='cannot set "shared_preload_libraries" to an empty list'):
        sql.render(one_line_plan("shared_preload_libraries", ""), server_of(18))


def test_changes_of_other_layers_are_not_in_a_postgresql_file() -> None:
    plan = one_line_plan("vm.nr_hugepages", "100")
    other = dataclasses.replace(plan.lines[0].change, kind="sysctl")
    mixed = dataclasses.replace(plan, lines=(dataclasses.replace(plan.lines[0], change=other),))
    assert "nr_hugepages" not in conf.render(mixed, server_of(18))
    assert "nr_hugepages" not in sql.render(mixed, server_of(18))


def test_json_has_everything_a_program_needs() -> None:
    plan = make_plan(
        host_of(), server_of(18, changes={"fsync": "off"}), PlanRequest(figures=Figures(connections=50))
    )
    document = json.loads(FORMATS["json"].render(plan, server_of(18)))
    assert document["schema_version"] == 1
    assert document["settings"] == plan.settings
    assert document["needs_restart"] is True
    assert document["findings"][0]["severity"] == "danger"
    assert [line["key"] for line in document["lines"]] == list(plan.settings)
    assert {"current", "value", "effect", "reason", "evidence", "risk", "undo", "lever", "layer"} <= set(
        document["lines"][0]
    )
    proof = document["memory_proof"]
    assert proof["total_bytes"] == sum(item["size_bytes"] for item in proof["items"])
    assert proof["limit_bytes"] == 24 * GB


def test_json_of_a_plan_without_a_known_limit_has_no_proof() -> None:
    plan = make_plan(None, server_of(18, is_colocated=False))
    assert json.loads(FORMATS["json"].render(plan, server_of(18)))["memory_proof"] is None


def expected(plan: Plan) -> dict[str, str]:
    """Return the planned values in the server's base units."""
    gucs = set_by(settings_of(18), plan.settings)
    return {name: gucs[name].setting for name in plan.settings}


@pytest.mark.server
def test_postgres_starts_from_the_conf_and_reads_what_was_planned(scratch_pg18: RealServer) -> None:
    plan = reference_plan()
    scratch_pg18.append_configuration("include 'pgdyno.conf'\n")
    snippet = scratch_pg18.data_directory / "pgdyno.conf"
    snippet.write_text(conf.render(plan, server_of(18)), encoding="utf-8")
    scratch_pg18.stop()
    for name, value in plan.settings.items():
        read = scratch_pg18.run("postgres", "-D", str(scratch_pg18.data_directory), "-C", name).stdout
        assert settings_of(18)[name].check(read.strip()) == settings_of(18)[name].check(value), name


@pytest.mark.server
def test_psql_runs_the_script_and_the_server_holds_what_was_planned(scratch_pg18: RealServer) -> None:
    plan = reference_plan()
    script = scratch_pg18.directory / "plan.sql"
    script.write_text(sql.render(plan, server_of(18)), encoding="utf-8")
    where = ("-h", str(scratch_pg18.socket_directory), "-p", str(scratch_pg18.port), "-U", "postgres")
    scratch_pg18.run("psql", *where, "-v", "ON_ERROR_STOP=1", "-f", str(script), "postgres")
    rows = scratch_pg18.execute(
        "SELECT name, setting, error FROM pg_file_settings WHERE sourcefile LIKE '%postgresql.auto.conf'"
    )
    gucs = settings_of(18)
    assert {name: gucs[name].check(value) for name, value, _ in rows} == expected(plan)
    auto_conf = Path(scratch_pg18.data_directory / "postgresql.auto.conf").read_text(encoding="utf-8")
    assert "shared_buffers = '6GB'" in auto_conf


@pytest.mark.server
def test_the_server_reads_a_list_from_the_script_as_it_was_meant(scratch_pg18: RealServer) -> None:
    script = scratch_pg18.directory / "plan.sql"
    plan = one_line_plan("search_path", '"Odd, name", public')
    script.write_text(sql.render(plan, server_of(18)), encoding="utf-8")
    where = ("-h", str(scratch_pg18.socket_directory), "-p", str(scratch_pg18.port), "-U", "postgres")
    scratch_pg18.run("psql", *where, "-v", "ON_ERROR_STOP=1", "-f", str(script), "postgres")
    [(value,)] = scratch_pg18.execute("SELECT setting FROM pg_file_settings WHERE name = 'search_path'")
    assert value == '"Odd, name", public'


@pytest.mark.server
def test_odd_values_come_back_unchanged_from_conf_and_sql(scratch_pg18: RealServer) -> None:
    value = 'it\'s a \\ "test" # -- €'
    plan = one_line_plan("cluster_name", value)
    scratch_pg18.append_configuration(conf.render(plan, server_of(18)))
    scratch_pg18.restart()
    from_conf = scratch_pg18.execute("SELECT setting FROM pg_file_settings WHERE name = 'cluster_name'")
    assert from_conf == [(value,)]
    script = scratch_pg18.directory / "plan.sql"
    script.write_text(sql.render(one_line_plan("application_name", value), server_of(18)), encoding="utf-8")
    where = ("-h", str(scratch_pg18.socket_directory), "-p", str(scratch_pg18.port), "-U", "postgres")
    scratch_pg18.run("psql", *where, "-v", "ON_ERROR_STOP=1", "-f", str(script), "postgres")
    from_sql = scratch_pg18.execute("SELECT setting FROM pg_file_settings WHERE name = 'application_name'")
    assert from_sql == [(value,)]
