"""``pgdyno run loop`` on a real server: functions are compiled for it, made in its database, and counted."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_home import pgdyno
from tests.fix_rounds import WHATEVER_ELSE_RUNS

from pgdyno.base.errors import InstallationError
from pgdyno.cli.output import Lines
from pgdyno.host.cpu_idling import AS_BOOTED_GIVEN
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.loop_library import LoopSources, compile_library
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.measure.bundled_study import Machine, Sizing, StudyContext
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.measure import measure
from pgdyno.model.experiments.experiment import Design, Experiment
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.connection.control_connection import ControlConnection
from pgdyno.postgres.process.registry import embedded
from pgdyno.studies.bundled import loop as study_file
from pgdyno.workload.bundled import load as bundled_workloads

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(
        all(shutil.which(name) is None for name in ("cc", "gcc", "clang")), reason="not installed: gcc"
    ),
]
SELECT = bundled_workloads()["pgbench-select"]
SMALL = replace(SELECT, data_set=replace(SELECT.data_set, scale=1))
TINY = Sizing(machine=Machine(2, 1 << 30), loads=(SMALL,), clients=2)
CELLS = study_file.workloads(TINY)
DEFAULT = Variant("default")
DEBIANS_HEADERS = Path("/usr/include/postgresql/15/server/postgres.h")


AGGREGATE = bundled_workloads()["pgbench-aggregate"]
OWN = study_file.workloads(
    replace(
        TINY,
        given={"tables": ("own",)},
        loads=(replace(AGGREGATE, data_set=replace(AGGREGATE.data_set, scale=1)),),
    )
)
"""Sums, by sessions that each have tables of their own."""
LEVELS = ("client", "c-loop", "plpgsql-loop")
_FETCHED = """
SELECT schemaname, idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'pgbench_accounts' ORDER BY 1
"""
_READ = "SELECT schemaname, idx_scan FROM pg_stat_user_tables WHERE relname = 'pgbench_accounts' ORDER BY 1"


def _sql(name: str) -> str:
    statement = {**CELLS, **OWN}[name].statement
    assert statement is not None
    return statement.sql


def measured_once(cells: Mapping[str, Workload]) -> Experiment:
    design = replace(
        study_file.STUDY.design,
        rounds=1,
        block_s=0.4,
        slice_s=0.4,
        warmup_s=0.1,
        thresholds=WHATEVER_ELSE_RUNS,
    )
    context = StudyContext(Variant("default"), tuple(cells), design, sizing=TINY)
    return measure(
        study_file.study(context), Conditions(embedded(), cells, design, as_booted=AS_BOOTED_GIVEN), Lines()
    )


@pytest.fixture(scope="module")
def measured(home: Path, pg18_bin: Path) -> Experiment:
    return measured_once(CELLS)


@contextmanager
def small_arena() -> Iterator[ScratchArena]:
    with open_scratch_arena(embedded(), [DEFAULT], Lines(), is_isolated=False) as arena:
        yield arena


@contextmanager
def started(arena: ScratchArena, name: str = "client-1") -> Iterator[Arm]:
    data_set = {**CELLS, **OWN}[name].data_set
    arena.restore([DEFAULT], [0], data_set)
    with arena.arms([DEFAULT], [0], data_set) as (arm,):
        yield arm


def test_every_load_is_counted_by_execution_and_metered_on_both_sides(measured: Experiment) -> None:
    blocks = {block.workload: block.arms[0] for block in measured.blocks}
    assert sorted(blocks) == sorted(CELLS)
    for name, arm in blocks.items():
        executions = CELLS[name].executions
        assert arm.transactions > 0 or executions > 1, name  # on a busy machine none of the long ones ends
        assert arm.transactions % executions == 0, name
        assert arm.values["throughput_tps"] > 0
        assert arm.values["server_cpu_us_per_transaction"] > 0
        assert ("latency_ms_p50" in arm.values) == (executions == 1), name


def test_nothing_was_written_to_the_servers_installation(measured: Experiment, home: Path) -> None:
    (library,) = (home / "extensions").iterdir()
    assert library.name.startswith("pgdyno_loop-pg18.")
    assert library.stat().st_mode & 0o777 == 0o755
    for place in (embedded().bin_directory.parent, home / "installations"):
        assert not list(place.rglob("pgdyno_loop*"))


def test_a_server_that_starts_has_the_functions_again_and_the_library_is_kept(measured: Experiment) -> None:
    with small_arena() as arena:
        library = arena.loops.ensure(arena.installation)
        compiled_ns = library.stat().st_mtime_ns
        with started(arena) as arm, arm.connect() as connection:
            connection.execute("SET search_path = public")  # as loads have it, and control sessions do not
            for name, session in (("c-loop-1", {}), ("one-query-1", CELLS["one-query-1"].session_settings)):
                for setting, value in session.items():
                    connection.execute("SELECT set_config(%s, %s, false)", (setting, value))
                assert connection.execute(_sql(name).encode()).fetchone() is not None
            plan = connection.execute(b"EXPLAIN " + _sql("one-query-1").encode()).fetchall()
            assert any("Index Scan using pgbench_accounts_pkey" in line for (line,) in plan)
            assert connection.execute("SELECT loop FROM pgdyno_loop.loop_keys(3, 5) AS loop").fetchone()
        assert arena.loops.ensure(arena.installation) == library
        assert library.stat().st_mtime_ns == compiled_ns


def test_sums_on_own_tables_are_counted_by_execution(home: Path, pg18_bin: Path) -> None:
    measured = measured_once(OWN)
    blocks = {block.workload: block.arms[0] for block in measured.blocks}
    assert sorted(blocks) == sorted(OWN)
    for name, arm in blocks.items():
        assert arm.transactions % OWN[name].executions == 0, name
        assert arm.values["throughput_tps"] > 0
    assert {cell.load for cell in measured.cells.values() if cell.clients == 2} == {
        f"{issuer}, aggregate, 2 own tables" for issuer in ("client", "C loop", "PL/pgSQL loop")
    }


def test_a_session_reads_a_thousand_rows_for_each_sum_and_only_its_own(home: Path, pg18_bin: Path) -> None:
    with small_arena() as arena, started(arena, "client-aggregate-own-1") as arm:
        with arm.connect() as connection:
            connection.execute("SET search_path = client_2")
            one_query = OWN["one-query-aggregate-own-1"]
            for name, value in one_query.session_settings.items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))
            for sql, rows in (
                ("SELECT pgdyno_loop.exec_aggregate_in_loop(3)", 3000),
                ("SELECT pgdyno_loop.exec_aggregate_in_loop_plpgsql(3)", 3000),
                ("SELECT pgdyno_loop.exec_query_in_loop(3)", 3),
                (_sql(one_query.name), 200_000),
            ):
                assert rows_read(connection, sql) == {"client_1": 0, "client_2": rows}, sql
        for issuer in LEVELS:
            before = scans(arm, at_least={})
            arena.loads.run_alone(arm, OWN[f"{issuer}-aggregate-own-2"], Design(), 0.3)
            more = {schema: count + 1 for schema, count in before.items()}
            after = scans(arm, at_least=more)
            assert more.keys() == {"client_1", "client_2"}
            assert all(after[schema] >= count for schema, count in more.items()), issuer


def rows_read(connection: ControlConnection, sql: str) -> dict[str, int]:
    """Return the accounts that a statement reads by their index, by schema."""
    with connection.transaction():
        before, _, after = (connection.execute(one.encode()).fetchall() for one in (_FETCHED, sql, _FETCHED))
    return {str(schema): ended - began for (schema, began), (_, ended) in zip(before, after, strict=True)}


def scans(arm: Arm, at_least: Mapping[str, int]) -> Mapping[str, int]:
    """Return scans of the accounts by schema, once ended sessions have told theirs, or a minute later."""
    for _ in range(600):
        found = {str(schema): int(count or 0) for schema, count in arm.rows(_READ)}
        if all(found[schema] >= count for schema, count in at_least.items()):
            break
        time.sleep(0.1)
    return found


def test_a_library_of_another_version_is_refused_in_the_servers_words(
    measured: Experiment, tmp_path: Path
) -> None:
    with small_arena() as arena:
        library = arena.loops.ensure(arena.installation)
        kept = library.read_bytes()
        library.write_bytes(of_another_version(arena, tmp_path))
        try:
            with pytest.raises(InstallationError) as caught, started(arena):
                pass
        finally:
            library.write_bytes(kept)
    title = arena.installation.title
    assert caught.value.message == f"{title} rejects the functions that loop inside the server"
    assert caught.value.detail == (
        f'incompatible library "{library}": version mismatch; Server is version 18, library is version 17.'
    )
    assert caught.value.hint == f'remove "{library}" to have them compiled again'


def of_another_version(arena: ScratchArena, directory: Path) -> bytes:
    """Compile with the server's headers, in which the version is another one."""
    pg_config = arena.installation.program("pg_config")
    headers = directory / "headers"
    shutil.copytree(subprocess.check_output([pg_config, "--includedir-server"], text=True).strip(), headers)
    configuration = headers / "pg_config.h"
    text = configuration.read_text()
    configuration.write_text(text.replace("#define PG_VERSION_NUM 18", "#define PG_VERSION_NUM 17"))
    LoopSources.find().write(directory)
    compile_library(directory, headers, directory / "library", list)
    return (directory / "library").read_bytes()


@pytest.mark.skipif(DEBIANS_HEADERS.exists(), reason="postgresql-server-dev-15 is installed")
def test_a_server_without_headers_is_refused_before_anything_is_loaded(home: Path, pg15_bin: Path) -> None:
    refused = pgdyno("run", "loop", "--pg-bin", str(pg15_bin), "--blocks", "1")
    assert refused.returncode == 1
    assert "ERROR:  the functions that loop inside the server cannot be compiled for PostgreSQL 15." in (
        refused.stderr
    )
    assert f"DETAIL:  missing: {DEBIANS_HEADERS}" in refused.stderr
    assert "HINT:  apt-get install postgresql-server-dev-15" in refused.stderr
    assert not list((home / "datasets").glob("pg15*pgbench-40"))
