"""Variants that change the schema of their copies: steps, costs, failures, answers and verdicts."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fix_captured import workload
from tests.fix_home import Run, pgdyno
from tests.fix_progress import Remembered
from tests.fix_servers import running_server, wait_until
from tests.shop import buying

from pgdyno.base.errors import SchemaChangeError, ServerCrashedError, StorageError
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedStatement,
    CapturedTransaction,
    ColumnValue,
)
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.dump import COPY_ROLE
from pgdyno.postgres.process.network import can_leave_network
from pgdyno.postgres.process.registry import choose_installation, embedded
from pgdyno.postgres.statement_counts import Seen
from pgdyno.store.workload_file import write_workload_file
from pgdyno.workload.bundled import load as bundled_workloads
from pgdyno.workload.workload_choice import captured_workload

pytestmark = pytest.mark.server
STATEMENTS = {
    "orders-of": ("SELECT id, state FROM orders WHERE customer_id = $1", ColumnValue("public.customers.id")),
    "latest-of": (
        "SELECT id FROM orders WHERE customer_id = $1 ORDER BY state LIMIT 2",
        ColumnValue("public.customers.id"),
    ),
    "customer": ("SELECT email FROM customers WHERE id = $1", ColumnValue("public.customers.id")),
}
FUNCTIONS = """
CREATE FUNCTION disk_full(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
    RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
END $$;
CREATE FUNCTION wal_full(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
    RAISE LOG 'could not write to file: No space left on device (test)'; PERFORM pg_sleep(60); RETURN 1;
END $$;
CREATE FUNCTION slow(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
    RAISE LOG 'some work (test)'; PERFORM pg_sleep(60); RETURN 1;
END $$
"""
LOGGED = "(test)"  # in what these functions log
SHORT = ("--clients", "1", "--blocks", "2", "--block", "2s")


@pytest.fixture(scope="module")
def shop_file(tmp_path_factory: pytest.TempPathFactory, pg18_bin: Path) -> Path:
    """The shop's workload, and beside it the copy of its database, without an index on orders' customer."""
    place = tmp_path_factory.mktemp("shop")
    with running_server(pg18_bin, "") as server:
        buying.make(server.dsn)
        server.execute("DROP INDEX orders_customer_id_idx")
        server.execute(FUNCTIONS)
        dump = server.directory / "shop.dump"
        where = (f"--host={server.socket_directory}", f"--port={server.port}", "--username=postgres")
        server.run("pg_dump", "--format=custom", f"--file={dump}", *where, "postgres")
        shutil.copyfile(dump, place / "shop.dump")
    kinds = tuple(
        CapturedTransaction(1.0, (CapturedCall(name, 1.0, (key,)),)) for name, (_, key) in STATEMENTS.items()
    )
    seen = Seen(1, 1.0, 1, 1, 0)
    texts = tuple(CapturedStatement(name, sql, seen) for name, (sql, _) in STATEMENTS.items())
    write_workload_file(
        place / "shop.toml", replace(workload(), name="shop", statements=texts, transactions=kinds)
    )
    return place / "shop.toml"


@pytest.fixture
def shop(shop_file: Path) -> Workload:
    """The shop's workload."""
    return captured_workload(shop_file)


def compared(file: Path, home: Path, *variants: str) -> Run:
    place = {"PGDYNO_HOME": str(home), "PGDYNO_AS_BOOTED": "1"}
    command = ("compare", *variants, "--workload", str(file), "--embedded", "--unlike", *SHORT, "--json")
    return pgdyno(*command, **place)


@contextmanager
def opened(
    *variants: Variant, progress: Remembered | None = None, programs: Path | None = None
) -> Iterator[ScratchArena]:
    server = choose_installation(is_embedded=False, bin_directory=programs) if programs else embedded()
    with open_scratch_arena(server, variants, progress or Remembered(), is_isolated=False) as arena:
        yield arena


def rows(arena: ScratchArena, variant: Variant, workload: Workload, sql: str) -> list[Any]:
    """Return the rows of a query on a fresh copy of the variant's data."""
    arena.restore([variant], [0], workload.data_set)
    with arena.arms([variant], [0], workload.data_set) as (arm,):
        found = arm.rows(sql)
    arena.discard([variant], [0], workload.data_set)
    return found


def kept(home: Path) -> list[str]:
    """Return the names of data directories with a changed schema."""
    return sorted(one.name for one in (home / "datasets").glob("*-sql*"))


def test_an_index_is_made_once_and_each_statement_has_a_verdict(
    shop_file: Path, home: Path, tmp_path: Path
) -> None:
    sql = "-- what is missing\nCREATE INDEX by_customer\n  ON orders (customer_id);\n"
    (tmp_path / "orders.sql").write_text(sql)
    broken = "broken:sql='CREATE INDEX a ON orders (id); DROP INDEX nowhere'"
    done = compared(
        shop_file, home, "default", f"idx:jit=off,sql={tmp_path}/orders.sql", "twice:sql=VACUUM", broken
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    none, idx, twice = found["schema_changes"]
    assert (none["variant"], none["statements"]) == ("default", [])
    assert none["made_bytes"] == none["dropped_bytes"] == none["wal_bytes"] == 0
    assert (idx["variant"], idx["workload"]) == ("idx", "shop")
    assert idx["statements"] == ["CREATE INDEX by_customer ON orders (customer_id)"]
    # 2,000 keys with five rows each: a posting list has 8 bytes of header, a key of 8 and 6 bytes a row.
    assert 2000 * (8 + 8 + 5 * 6) < idx["made_bytes"] < 3 * 2000 * (8 + 8 + 5 * 6)
    assert idx["dropped_bytes"] == 0
    assert idx["wal_bytes"] > idx["made_bytes"] / 2  # all pages of it, without their free space
    assert idx["time_s"] > 0
    assert twice["statements"] == ["VACUUM"]
    plans = {(one["statement"], one["variant"]): one["shapes"] for one in found["plans"]}
    assert plans["orders-of", "default"] == [["Seq Scan on orders (filter (orders.customer_id = ?))"]]
    assert plans["orders-of", "twice"] == plans["orders-of", "default"]
    assert "by public.orders USING btree (customer_id)" in str(plans["orders-of", "idx"])
    verdicts = {(one["variant"], one["statement"]) for one in found["statements"]}
    assert {(arm, name) for arm in ("idx", "twice") for name in STATEMENTS} <= verdicts
    assert "answers to 3 statements of shop were compared on all servers before measuring" in found["notes"]
    assert not [note for note in found["notes"] if "otherwise" in note]
    assert {one["name"] for one in found["settings"]} == {"jit"}  # SQL has no value on a server
    assert (
        'broken is a failed trial: the SQL of broken failed at statement 2 of 2: "DROP INDEX nowhere": '
        'index "nowhere" does not exist'
    ) in found["notes"]


def test_sql_that_fails_half_way_ends_a_comparison_of_two(shop_file: Path, home: Path) -> None:
    twice = "twice:sql='CREATE INDEX a ON orders (state); CREATE INDEX a ON orders (id)'"
    done = compared(shop_file, home, "default", twice)
    assert done.returncode == 1
    assert done.stderr.partition("ERROR:  ")[2] == (
        'the SQL of twice failed at statement 2 of 2: "CREATE INDEX a ON orders (id)"  (PGD-307)\n'
        'DETAIL:  relation "a" already exists\n'
        "HINT:  its data are not kept; repair the statement (tables outside of public need their schema), or "
        "leave it out\n"
    )


@pytest.mark.usefixtures("home")
def test_all_allowed_statements_run_as_an_owner_without_other_rights(shop: Workload) -> None:
    sql = (
        "CREATE INDEX a ON orders (state)", "CREATE INDEX CONCURRENTLY b ON orders ((lower(state)))",
        "ALTER INDEX a SET (fillfactor = 70)", "DROP INDEX CONCURRENTLY a",
        "CREATE STATISTICS (ndistinct) ON customer_id, state FROM orders",
        "ALTER TABLE orders SET (fillfactor = 50), ALTER COLUMN state SET STATISTICS 500",
        "CLUSTER orders USING orders_pkey", "VACUUM (FULL) lines", "VACUUM", "ANALYZE orders",
    )  # fmt: skip
    changed = Variant("changed", {"sql": "; ".join(sql)})
    with opened(changed) as arena:
        arena.load(changed, shop.data_set)
        (cost,) = arena.schema_changes([changed], [shop])
        assert cost.statements == sql
        # CLUSTER writes 10,000 rows anew on half full pages: 24 bytes, pointer 4, data 32.
        assert cost.made_bytes > 10_000 * (24 + 4 + 32) * 2
        assert cost.dropped_bytes > 10_000 * (24 + 4 + 32)
        owners = rows(
            arena,
            changed,
            shop,
            "SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE oid >= 16384 "
            "AND relname !~ 'prewarm'",
        )
        assert owners == [(COPY_ROLE,)]
        rights = "SELECT rolname FROM pg_roles WHERE rolsuper OR rolcreaterole OR rolbypassrls"
        assert (COPY_ROLE,) not in rows(arena, changed, shop, rights)
        assert rows(
            arena, changed, shop, "SELECT attname FROM pg_stats WHERE tablename = 'b' AND inherited = false"
        ) == [("lower",)]  # statistics of the expression: ANALYZE has run


@pytest.mark.parametrize(
    ("statement", "place", "message"),
    [
        (
            "CREATE INDEX ON orders ((pg_read_file(state)))",
            'statement 1 of 1: "CREATE INDEX ON orders ((pg_read_file(state)))"',
            "functions in index expression must be marked IMMUTABLE",
        ),
        (
            "CREATE STATISTICS s ON (pg_read_file(state)), id FROM orders",
            "the ANALYZE after it",
            "permission denied for function pg_read_file",
        ),
        (
            "DROP INDEX pg_catalog.pg_class_oid_index",
            'statement 1 of 1: "DROP INDEX pg_catalog.pg_class_oid_index"',
            "must be owner of index pg_class_oid_index",
        ),
    ],
)
def test_statements_have_no_rights_beyond_the_tables(
    shop: Workload, home: Path, statement: str, place: str, message: str
) -> None:
    before = kept(home)
    bad = Variant("bad", {"sql": statement})
    with opened(bad) as arena, pytest.raises(SchemaChangeError) as caught:
        arena.load(bad, shop.data_set)
    assert caught.value.message == f"the SQL of bad failed at {place}"
    assert caught.value.detail == message
    assert kept(home) == before


def test_a_full_disk_is_no_fault_of_the_sql(shop: Workload, home: Path) -> None:
    before = kept(home)
    full = Variant("full", {"sql": "CREATE INDEX ON orders (disk_full(id))"})
    with opened(full) as arena, pytest.raises(StorageError) as caught:
        arena.load(full, shop.data_set)
    assert caught.value.message == "the disk filled up during the SQL of full"
    assert str(caught.value.detail).startswith("could not extend file: No space left on device")
    assert caught.value.hint == (
        f"remove data kept for SQL that is no longer compared ({home}/datasets/*-sql*), "
        "or set PGDYNO_HOME to a directory on a larger disk"
    )
    assert kept(home) == before


@pytest.mark.parametrize(
    ("statement", "kind", "message", "logged"),
    [
        (
            "CREATE INDEX ON orders (slow(id)) WHERE id = 1",
            ServerCrashedError,
            "the server closed its connection during the SQL of gone",
            "received immediate shutdown request",
        ),
        (
            "CREATE INDEX ON orders (wal_full(id)) WHERE id = 1",
            StorageError,
            "the disk filled up during the SQL of gone",
            "could not write to file: No space left on device",
        ),
    ],
)
def test_a_server_that_ends_is_no_fault_of_the_sql(
    shop: Workload, home: Path, statement: str, kind: type[Exception], message: str, logged: str
) -> None:
    before, gone = kept(home), Variant("gone", {"sql": statement})
    with ThreadPoolExecutor() as pool, opened(gone) as arena:
        killed = pool.submit(kill_server, home)
        with pytest.raises(kind) as caught:
            arena.load(gone, shop.data_set)
        killed.result()
    assert str(caught.value).startswith(f"{message}\n")
    assert logged in str(caught.value)
    assert kept(home) == before


def kill_server(home: Path) -> None:
    """Kill the server of the changed copy, as soon as its log has the message of a function above."""
    wait_until(lambda: any(LOGGED in one.read_text() for one in home.rglob("change-*.log")))
    [file] = home.rglob("change-*/postmaster.pid")
    os.kill(int(file.read_text().partition("\n")[0]), signal.SIGQUIT)


@pytest.mark.parametrize("record", [b"", b'{"time_s": 0.1, "made_', b'{"time_s": "long"}', b"[]", None])
def test_data_without_a_readable_record_are_made_again(
    shop: Workload, home: Path, record: bytes | None
) -> None:
    one = Variant("one", {"sql": "ANALYZE orders"})
    with opened(one) as arena:
        arena.load(one, shop.data_set)
        place = arena._loaded(one, shop.data_set)
    file = home / "datasets" / f"{place.name}.json"
    if record is None:
        file.unlink()
    else:
        file.write_bytes(record)
    again = Remembered()
    with opened(one, progress=again) as arena:
        arena.load(one, shop.data_set)
        (cost,) = arena.schema_changes([one], [shop])
    assert f"removing {place.name}, without a readable record of its cost" in again.steps
    assert again.steps.count("preparing the data of one (once)") == 1
    assert json.loads(file.read_bytes())["time_s"] == cost.time_s > 0


@pytest.mark.usefixtures("home")
def test_another_major_version_runs_the_same_statements(pg15_bin: Path) -> None:
    accounts = bundled_workloads()["pgbench-select"]
    sql = (
        "CREATE INDEX by_branch ON pgbench_accounts (bid)", "ALTER INDEX by_branch SET (fillfactor = 70)",
        "CREATE STATISTICS of_two ON bid, abalance FROM pgbench_accounts", "VACUUM pgbench_accounts",
        "CREATE INDEX by_text ON pgbench_accounts ((abalance || 'a'\n'b'))",
        "ALTER INDEX by_text ALTER COLUMN 1 SET STATISTICS 500", "DROP INDEX by_branch RESTRICT",
    )  # fmt: skip
    changed = Variant("changed", {"sql": "; ".join(sql)})
    with opened(changed, programs=pg15_bin) as arena:
        arena.load(changed, accounts.data_set)
        (cost,) = arena.schema_changes([changed], [accounts])
        assert cost.statements == sql
        indexes = "SELECT indexrelname FROM pg_stat_user_indexes WHERE indexrelname ~ '^by_'"
        assert rows(arena, changed, accounts, indexes) == [("by_text",)]
        made = "SELECT pg_get_indexdef('public.by_text'::regclass) LIKE '%''ab''%', version() ~ 'SQL 15[.]'"
        assert rows(arena, changed, accounts, made) == [(True, True)]


def test_data_of_bundled_workloads_go_through_the_same_steps_and_are_kept(home: Path) -> None:
    accounts = bundled_workloads()["pgbench-select"]
    default = Variant("default")
    idx = Variant("idx", {"sql": "CREATE INDEX by_branch ON pgbench_accounts (bid)"})
    indexes = "SELECT indexrelname FROM pg_stat_user_indexes WHERE indexrelname = 'by_branch'"
    first, again = Remembered(), Remembered()
    with opened(default, idx, progress=first) as arena:
        for variant in (default, idx):
            arena.load(variant, accounts.data_set)
        costs = arena.schema_changes([default, idx], [accounts])
        assert rows(arena, default, accounts, indexes) == []
        assert rows(arena, idx, accounts, indexes) == [("by_branch",)]
        analysed = "SELECT count(*) FROM pg_class WHERE relname = 'pgbench_accounts' AND reltuples > 0"
        assert rows(arena, default, accounts, analysed) == [(1,)]
    before = kept(home)
    with opened(idx, default, progress=again) as arena:
        for variant in (idx, default):
            arena.load(variant, accounts.data_set)
        assert arena.schema_changes([default, idx], [accounts]) == costs
    assert kept(home) == before
    made = [f"preparing the data of {name} (once)" for name in ("default", "idx")]
    assert [step for step in first.steps if "preparing" in step] == made
    reported = [step for step in first.steps if "access the network" in step]
    assert reported == ([] if can_leave_network() else ["idx: its SQL could access the network from here"])
    assert not [step for step in again.steps if "preparing" in step]


def test_without_sql_nothing_is_prepared(home: Path) -> None:
    before = kept(home)
    default, accounts = Variant("default"), bundled_workloads()["pgbench-select"]
    with opened(default) as arena:
        arena.load(default, accounts.data_set)
        assert arena.schema_changes([default], [accounts]) == ()
    assert kept(home) == before


@pytest.mark.usefixtures("own_home")
def test_the_disk_has_room_for_all_variants_before_any_is_made(
    shop: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    variants = Variant("default"), Variant("idx", {"sql": "VACUUM"}), Variant("same", {"sql": "VACUUM"})
    with opened(*variants) as arena:
        # The loaded data and two schemas, each with 1 GB of WAL and twice the size of the data; and copies of
        # two schemas in three places.
        needed = 3 * ((1 << 30) + 2 * shop.data_set.size_bytes) + 2 * 3 * 2 * shop.data_set.size_bytes
        usage = shutil.disk_usage(arena.workspace.root)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=needed - 1))
        with pytest.raises(StorageError) as caught:
            arena.require_room(variants, [shop, shop])
        assert "for the data of 3 variants, each with its own schema" in caught.value.message
        assert f"({arena.workspace.root}/datasets/*-sql*)" in str(caught.value.hint)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=needed))
        arena.require_room(variants, [shop, shop])
        assert kept(arena.workspace.root) == []
