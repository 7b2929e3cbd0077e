"""Copies with a share of the rows, of real databases: all keys hold, and joins find what they do there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.fix_copies import SCHEMA, restored, rows_of, running_originals, sample, sampled, workload_file
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer
from tests.shop import buying

pytestmark = pytest.mark.server


@pytest.fixture(scope="module", params=[pytest.param("pg15_bin", marks=pytest.mark.long), "pg18_bin"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    """A server with a market, a warehouse, and a shop."""
    with running_originals(request.getfixturevalue(request.param), "market", "warehouse", "busy") as started:
        yield started


@pytest.fixture(scope="module")
def made(server: RealServer, tmp_path_factory: pytest.TempPathFactory, home: Path) -> Mapping[str, Any]:
    """The output of a sample of the market, which is restored as the database made."""
    file = workload_file(server, "market", tmp_path_factory.mktemp("market"))
    printed = sampled(sample(server, "market", file, home, "--share", "0.1"))
    restored(server, Path(printed["dump"]), "made")
    return printed


def test_all_indexes_and_keys_of_the_original_hold(server: RealServer, made: Mapping[str, Any]) -> None:
    assert Path(made["dump"]).stat().st_mode & 0o777 == 0o600
    assert sorted(server.execute(SCHEMA, "made")) == sorted(server.execute(SCHEMA, "market"))


@pytest.mark.usefixtures("made")
def test_rows_are_those_of_the_original(server: RealServer) -> None:
    originals = rows_of(server, "market")
    for name, rows in rows_of(server, "made").items():
        assert rows <= originals[name], name
        assert rows, name


def test_tables_have_about_the_share_of_the_rows(server: RealServer, made: Mapping[str, Any]) -> None:
    rows = made["rows"]
    assert rows["public.countries"] == 60
    for name, expected in (("visits", 2000), ("messages", 400), ("urgent_messages", 400), ("reviews", 800)):
        assert rows[f"public.{name}"] == pytest.approx(expected, rel=0.25), name  # five deviations or more
        count = f"SELECT count(*) FROM ONLY {name}"  # noqa: S608 — of this test's own
        assert server.execute(count, "made") == [(rows[f"public.{name}"],)]
    assert 0 < rows["public.orders"] < 6000
    assert any(one.startswith("public.products: ") for one in made["notes"])
    assert any("10\N{NO-BREAK SPACE}% of the original's rows" in one for one in made["notes"])


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("parent", "key", "child", "reference"),
    [
        ("customers", "id", "orders", "customer"),
        ("customers", "id", "reviews", "customer"),
        ("customers", "id", "messages", "customer"),
        ("orders", "id, placed_on", "lines", "order_id, placed_on"),
    ],
)
def test_parents_have_all_their_rows_or_came_alone(
    server: RealServer, parent: str, key: str, child: str, reference: str
) -> None:
    query = (
        f"SELECT {key}, coalesce(count, 0) FROM {parent} LEFT JOIN "  # noqa: S608 — of this test's own
        f"(SELECT {reference}, count(*) FROM {child} GROUP BY {reference}) AS counted ({key}, count) "
        f"USING ({key})"
    )
    originals = {tuple(one): int(count) for *one, count in server.execute(query, "market")}
    copies = {tuple(one): int(count) for *one, count in server.execute(query, "made")}
    with_rows = {one: count for one, count in copies.items() if count}
    assert with_rows == {one: originals[one] for one in with_rows}
    assert len(with_rows) > 100


@pytest.mark.usefixtures("made")
def test_sequences_go_on_and_views_are_filled(server: RealServer) -> None:
    for database in ("market", "made"):
        assert server.execute("SELECT nextval('orders_id_seq')", database) == [(20001,)]
    [[times]] = server.execute("SELECT sum(times) FROM sold", "made")
    assert server.execute("SELECT count(*) FROM lines", "made") == [(times,)]


def test_the_same_seed_takes_the_same_rows_and_another_one_others(
    server: RealServer, made: Mapping[str, Any], tmp_path: Path, home: Path
) -> None:
    file = workload_file(server, "market", tmp_path)
    again = sampled(sample(server, "market", file, home, "--share", "0.1"))
    assert again["rows"] == made["rows"]
    others = sampled(sample(server, "market", file, home, "--share", "0.1", "--seed", "2", "--replace"))
    assert others["rows"] != made["rows"]


def test_a_chosen_table_brings_along_what_belongs_to_it(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    file = workload_file(server, "market", tmp_path)
    made = sampled(sample(server, "market", file, home, "--share", "0.1", "--sample-from", "countries"))
    database = restored(server, Path(made["dump"]), "by_country")
    whole = "SELECT country, count(*) FROM customers GROUP BY country"
    originals = dict(server.execute(whole, "market"))
    copies = dict(server.execute(whole, database))
    complete = [one for one, count in copies.items() if count == originals[one]]
    assert 0 < len(complete) < 20
    assert 0.5 * sum(copies.values()) < sum(copies[one] for one in complete)  # others came as referrers


def test_a_captured_workload_is_replayed_on_a_sample_taken_under_load(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    server.execute("CREATE EXTENSION pg_stat_statements", "busy")
    file, dsn = tmp_path / "busy.toml", server.dsn_for("postgres", "busy")
    with buying.load(dsn):
        captured = pgdyno(
            "workload", "capture", "--dsn", server.reading_dsn("busy"), "--for", "4s", str(file)
        )
        assert captured.returncode == 0, captured.stderr
        made = sampled(sample(server, "busy", file, home, "--share", "0.3"))
    database = restored(server, Path(made["dump"]))
    server.execute("CREATE EXTENSION pg_stat_statements", database)
    server.execute("ANALYZE", database)
    server.execute("DROP ROLE IF EXISTS app")
    server.execute("CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_write_all_data")
    arguments = ("--dsn", server.dsn_for("app", database), "--allow-load", "--for", "2s", "--json")
    replayed = pgdyno("workload", "replay", str(file), *arguments, PGDYNO_HOME=str(home))
    assert replayed.returncode == 0, replayed.stderr
    found = json.loads(replayed.stdout)["replay"]
    assert found["likeness"]["by_quantity"]["calls"] >= 0.9, found
    assert found["likeness"]["by_quantity"]["rows"] >= 0.8, found
    assert sum(one["count"] for one in found["run"]["failures"]) < 0.01 * found["run"]["transactions"]
