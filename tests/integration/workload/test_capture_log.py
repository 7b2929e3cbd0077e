"""Workloads captured from the logs of real servers, and replayed on copies of their databases."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
import pytest
from tests.fix_captured import replay_on_a_copy
from tests.fix_home import pgdyno
from tests.fix_logging import PREFIX, SETTINGS, capture, log_files, prepare, set_logging
from tests.fix_servers import RealServer, running_server, wait_until
from tests.shop import buying

from pgdyno.model.experiments.captured import CapturedTransaction, CapturedWorkload, OneOf

pytestmark = pytest.mark.server
_BLOCK = ["update-pgbench_accounts", "select-pgbench_accounts", "update-pgbench_tellers",
          "update-pgbench_branches", "insert-pgbench_history"]  # fmt: skip
_TPCB_CALLS = 200


@pytest.fixture(scope="module")
def server(each_bin: Path) -> Iterator[RealServer]:
    """A server that logs, with a database of pgbench and one of a shop."""
    with running_server(each_bin, SETTINGS) as started:
        prepare(started)
        buying.make(started.dsn_for("postgres", "shop"))
        yield started


def run_tpcb(server: RealServer, protocol: str) -> None:
    """Two clients of pgbench."""
    place = (f"--host={server.socket_directory}", f"--port={server.port}", "--username=postgres", "bank")
    each = _TPCB_CALLS // 2
    server.run(
        "pgbench", f"--protocol={protocol}", "--no-vacuum", f"--transactions={each}", "--client=2", *place
    )


def assert_is_tpcb(workload: CapturedWorkload) -> CapturedTransaction:
    """The only transaction that is frequent is pgbench's, with each statement once."""
    [block] = [one for one in workload.transactions if one.weight > 2]
    assert block.weight == _TPCB_CALLS
    assert [call.statement for call in block.calls] == ["begin", *_BLOCK, "end"]
    assert {call.times for call in block.calls} == {1.0}
    return block


@pytest.mark.parametrize(
    ("destination", "protocol", "settings", "is_replayed"),  # once each protocol; test_workload.py: prepared
    [
        ("csvlog", "simple", {"log_statement": "all", "log_min_duration_statement": "0"}, True),
        ("csvlog", "prepared", {"log_statement": "none", "log_min_duration_statement": "0"}, False),
        ("jsonlog", "prepared", {"log_statement": "all", "log_min_duration_statement": "0"}, False),
        ("jsonlog", "extended", {"log_statement": "all", "log_duration": "on"}, True),
        ("stderr", "simple", {"log_statement": "none", "log_min_duration_statement": "0"}, False),
        ("stderr", "prepared", {"log_statement": "all"}, False),
    ],
)
def test_transactions_of_pgbench_are_known_exactly(
    server: RealServer,
    tmp_path: Path,
    home: Path,
    destination: str,
    protocol: str,
    settings: Mapping[str, str],
    *,
    is_replayed: bool,
) -> None:
    nothing = {"log_statement": "none", "log_min_duration_statement": "-1", "log_duration": "off"}
    before = set_logging(server, destination, **{**nothing, **settings})
    run_tpcb(server, protocol)
    set_logging(server, destination, **nothing)
    logs = [one for one in log_files(server, destination) if one not in before]
    workload = capture(server, "bank", tmp_path / "bank.toml", logs)
    assert_is_tpcb(workload)
    assert workload.protocol == protocol
    assert not any("calls used several protocols" in note for note in workload.notes)
    has_times = all(one.seen.time_ms > 0 for one in workload.statements)
    assert has_times is (len(settings) > 1)
    assert any("the log has no durations" in note for note in workload.notes) is not has_times
    assert bool(workload.pauses_s) is has_times
    shown = pgdyno("workload", "inspect", str(tmp_path / "bank.toml")).stdout
    assert ("replay --pauses reproduces the pauses" in shown) is has_times
    if is_replayed:
        found = replay_on_a_copy(server, "bank", tmp_path / "bank.toml", home)
        assert found["replay"]["run"]["failures"] == []
        unknown = {"time", "rows", "blocks", "WAL records"}
        assert not unknown & found["replay"]["likeness"]["by_quantity"].keys()
        assert found["likeness"] >= 0.95, found


def test_an_older_server_s_log_is_read_as_well(pg15_bin: Path, tmp_path: Path) -> None:
    with running_server(pg15_bin, SETTINGS) as server:
        prepare(server)
        before = set_logging(server, "csvlog", log_min_duration_statement="0")
        run_tpcb(server, "prepared")
        logs = [one for one in log_files(server, "csvlog") if one not in before]
        workload = capture(server, "bank", tmp_path / "bank.toml", logs)
        assert_is_tpcb(workload)
        assert workload.protocol == "prepared"


def test_accounts_that_are_used_often_are_used_often_in_the_replay(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    before = set_logging(server, "csvlog", log_statement="none", log_min_duration_statement="0")
    chance = random.Random(1)  # noqa: S311 — no secret
    with psycopg.connect(server.dsn_for("postgres", "bank"), autocommit=True) as connection:
        for _ in range(500):  # four of five calls use one of a hundred accounts of 100,000
            account = chance.randint(40_001, 40_100) if chance.random() < 0.8 else chance.randint(1, 100_000)
            connection.execute(
                "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = %s", (account,)
            )
    set_logging(server, "csvlog", log_statement="none", log_min_duration_statement="-1")
    server.execute("UPDATE pgbench_accounts SET abalance = 0 WHERE abalance <> 0", "bank")
    logs = [one for one in log_files(server, "csvlog") if one not in before]
    file = tmp_path / "hot.toml"
    assert not capture(server, "bank", file, logs).has_values
    replayed = replay_on_a_copy(server, "bank", file, home)
    [[hot, others]] = server.execute(
        "SELECT count(*) FILTER (WHERE aid BETWEEN 39800 AND 40300), count(*) FROM pgbench_accounts "
        "WHERE abalance <> 0",
        "bank_copy",
    )
    assert hot >= 95
    assert (
        others - hot < 0.3 * replayed["replay"]["run"]["transactions"]
    )  # a fifth of them; each row counts once


def test_a_column_that_cannot_be_read_in_time_is_noted(server: RealServer, tmp_path: Path) -> None:
    server.execute(
        "CREATE TABLE slow AS SELECT 3 * i AS id FROM generate_series(1, 1000) AS i;"
        "CREATE FUNCTION in_time() RETURNS bool LANGUAGE plpgsql AS "
        "$$BEGIN RAISE EXCEPTION 'canceling statement' USING ERRCODE = 'query_canceled'; END$$;"
        "ALTER TABLE slow ENABLE ROW LEVEL SECURITY; CREATE POLICY slow ON slow USING (in_time())",
        "bank",
    )
    before = set_logging(server, "csvlog", log_statement="none", log_min_duration_statement="0")
    for number in range(60):
        server.execute(f"SELECT FROM slow WHERE id = {3 * (number % 5)}", "bank")
    set_logging(server, "csvlog", log_statement="none", log_min_duration_statement="-1")
    logs = [one for one in log_files(server, "csvlog") if one not in before]
    workload = capture(server, "bank", tmp_path / "slow.toml", logs)
    note = "public.slow.id could not be read: the values that the original uses most are unknown"
    assert note in workload.notes
    assert all(not one.favours for one in workload.statements)


def test_a_program_of_many_kinds_of_statements_is_captured_with_and_without_its_values(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    before = set_logging(server, "csvlog", log_statement="all", log_min_duration_statement="0")
    with buying.load(server.dsn_for("postgres", "shop")) as visits:
        wait_until(lambda: len(visits) > 300)
        set_logging(server, "csvlog", log_statement="all", log_min_duration_statement="0")
        enough = len(visits) + 300
        wait_until(lambda: len(visits) > enough)
    set_logging(server, "csvlog", log_statement="none", log_min_duration_statement="-1")
    logs = [one for one in log_files(server, "csvlog") if one not in before]
    assert len(logs) > 1
    file = tmp_path / "shop.toml"
    workload = capture(server, "shop", file, logs[::-1])
    assert workload.replayed_share >= 0.95
    assert {one.why for one in workload.omitted} == {"COPY: its rows are not in the server's statistics"}
    blocks = [one for one in workload.transactions if len(one.calls) > 1]
    assert [[call.statement for call in one.calls] for one in blocks] == [[
        "begin", "select", "insert-carts", "insert-orders", "savepoint", "insert-lines", "update-products",
        "release", "update-orders", "commit",
    ]]  # fmt: skip
    assert not workload.has_values
    assert buying.SECRET not in file.read_text()
    assert "for later" not in file.read_text()
    found = replay_on_a_copy(server, "shop", file, home)
    assert found["likeness"] >= 0.9, found

    kept = tmp_path / "kept.toml"
    with_values = capture(server, "shop", kept, logs, "--keep-values")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "for later" in kept.read_text()
    assert any("contains values of rows" in note for note in with_values.notes)
    states = {
        parameter
        for one in with_values.transactions
        for call in one.calls
        for parameter in call.parameters
        if call.statement == "insert-orders" and isinstance(parameter, OneOf)
    }
    assert OneOf(("new",)) in states
    assert replay_on_a_copy(server, "shop", kept, home)["likeness"] >= 0.9


@pytest.fixture
def some_log(server: RealServer, tmp_path: Path) -> Path:
    """A copy of a log with some statements of the bank."""
    before = set_logging(server, "jsonlog", log_statement="all")
    server.execute("SELECT aid FROM pgbench_accounts WHERE aid = 77", "bank")
    set_logging(server, "jsonlog", log_statement="none")
    logs = [one for one in log_files(server, "jsonlog") if one not in before]
    copy = tmp_path / "copy"
    copy.write_bytes(b"".join(one.read_bytes() for one in logs))
    return copy


def test_bad_input_is_said(server: RealServer, some_log: Path, tmp_path: Path) -> None:
    def refused(*arguments: str, database: str = "bank") -> str:
        dsn = server.reading_dsn(database)
        done = pgdyno("workload", "capture", "--dsn", dsn, *arguments, str(tmp_path / "w.toml"))
        assert done.returncode == 2, done.stderr
        assert not (tmp_path / "w.toml").exists()
        return done.stderr

    script = tmp_path / "script.sql"
    script.write_text("SELECT 1;\n")
    assert f'"{script}" is not a log of this server' in refused("--log", str(script))
    assert f'could not read "{tmp_path / "none"}"' in refused("--log", str(tmp_path / "none"))
    assert f'"{tmp_path}" is not a file' in refused("--log", str(tmp_path))
    elsewhere = refused("--log", str(some_log), database="shop")
    assert 'the log has no statement of database "shop"' in elsewhere
    names = r"(bank|postgres) \(\d+\), (bank|postgres) \(\d+\)"
    assert re.search(f"entries of other databases: {names}", elsewhere)
    assert "HINT:  for the statements of one of these databases, name it by --dsn" in elsewhere
    assert "--log and --for are mutually exclusive" in refused("--log", str(some_log), "--for", "5s")
    assert "--keep-values requires --log" in refused("--keep-values")
    assert "--log-line-prefix requires --log" in refused("--log-line-prefix", "%m [%p] ")
    of_json = refused("--log-line-prefix", "%m [%p] ", "--log", str(some_log))
    assert f'--log-line-prefix does not apply to "{some_log}"' in of_json
    assert "it is a jsonlog, which names its fields by itself" in of_json
    csv = tmp_path / "some.log"
    csv.write_text(
        '2026-11-25 12:35:23.957 UTC,"a","bank",5,"[local]",6b.17,1,"",2026-11-25 12:35:23 UTC,,,\n'
    )
    both = refused("--log", str(some_log), "--log", str(csv))
    assert "the files have different formats: csvlog, jsonlog" in both


def test_a_log_with_broken_bytes_and_a_cut_end_is_read(
    server: RealServer, some_log: Path, tmp_path: Path
) -> None:
    whole = some_log.read_bytes()
    some_log.write_bytes(b"\xff\xfe\x00 broken\n" + whole + whole[:100])
    workload = capture(server, "bank", tmp_path / "bank.toml", [some_log])
    [one] = workload.transactions
    assert one.calls[0].statement == "select-pgbench_accounts"
    assert "2 entries could not be read: they are too long, incomplete or ambiguous" in workload.notes


def test_verbose_messages_and_names_with_blanks_are_read(server: RealServer, tmp_path: Path) -> None:
    prefix = "%m [%p] %q%u@%d %a "
    before = set_logging(
        server,
        "stderr",
        log_statement="all",
        log_min_duration_statement="0",
        log_error_verbosity="verbose",
        log_line_prefix=prefix,
    )
    dsn = f"{server.dsn_for('postgres', 'bank')} application_name='PostgreSQL JDBC Driver'"
    with psycopg.connect(dsn, autocommit=True) as connection:
        for aid in range(7):
            connection.execute("SELECT abalance FROM pgbench_accounts WHERE aid = %s", (aid,))
    set_logging(
        server,
        "stderr",
        log_statement="none",
        log_min_duration_statement="-1",
        log_error_verbosity="default",
        log_line_prefix=PREFIX,
    )
    logs = [one for one in log_files(server, "stderr") if one not in before]
    assert "LOCATION:  exec_" in logs[0].read_text()
    options = "--log-line-prefix", prefix, "--keep-values"
    workload = capture(server, "bank", tmp_path / "bank.toml", logs, *options)
    [one] = workload.transactions
    assert one.weight == 7
    assert one.calls[0].statement == "select-pgbench_accounts"
    assert one.calls[0].parameters == (OneOf(tuple(map(str, range(7)))),)


def refused_log(server: RealServer, tmp_path: Path, text: str, *options: str) -> str:
    """What is said of a log that no workload can be captured from."""
    log = tmp_path / "refused.log"
    log.write_text(text)
    dsn = server.reading_dsn("bank")
    done = pgdyno("workload", "capture", "--dsn", dsn, "--log", str(log), *options, str(tmp_path / "w.toml"))
    assert done.returncode == 2, done.stderr
    return done.stderr


_AT = "2026-11-28 04:43:32.800 UTC"


def test_a_log_of_another_prefix_shows_how_its_lines_begin(server: RealServer, tmp_path: Path) -> None:
    other = f"{_AT} <7> app@bank LOG:  statement: SELECT 'secret'\n" * 4
    said = refused_log(server, tmp_path, f"no entry\n{other}")
    assert 'refused.log" is not a log of this server' in said
    assert f'the first line with a severity begins "{_AT} <7> app@bank LOG:"' in said
    assert "secret" not in said
    assert "HINT:  --log-line-prefix names the log_line_prefix that it was written with" in said
    readable = f"{_AT} [8] LOG:  checkpoint starting: time\n"
    mixed = refused_log(server, tmp_path, f"{readable}{other}")
    assert 'the log has no statement of database "bank"' in mixed
    first = f'the first one begins "{_AT} <7> app@bank LOG:"'
    assert f"entries: 1; lines that could not be read: 4, {first}" in mixed
    assert "secret" not in mixed
    assert "HINT:  --log-line-prefix names the log_line_prefix that the log was written with" in mixed


def test_a_log_of_another_database_names_it(server: RealServer, tmp_path: Path) -> None:
    one = f"{_AT} [7] app@shop app=x LOG:  statement: SELECT 1\n"
    said = refused_log(server, tmp_path, one * 3)
    assert "entries: 3; entries of other databases: shop (3)\n" in said
    assert "HINT:  for the statements of that database, name it by --dsn: dbname=shop" in said
    more = "".join(f"{_AT} [7] app@d{number} app=x LOG:  statement: SELECT 1\n" for number in range(5))
    said = refused_log(server, tmp_path, one * 3 + more)
    assert "entries of other databases: shop (3), d0 (1), d1 (1), d2 (1), d3 (1), …\n" in said


def test_a_log_without_statements_names_the_settings(server: RealServer, tmp_path: Path) -> None:
    said = refused_log(server, tmp_path, f"{_AT} [8] LOG:  checkpoint starting: time\n")
    assert "DETAIL:  entries: 1\n" in said
    assert "HINT:  log_statement = 'all' or log_min_duration_statement = 0 logs statements" in said


@pytest.mark.parametrize(
    ("severity", "message", "expected"),
    [
        (
            "LOG",
            "Dauer: 0.100 ms  Anweisung: SELECT 1",
            "messages in another language: 1; the server has lc_messages =",
        ),
        ("СООБЩЕНИЕ", "оператор: SELECT 1", 'lines have "СООБЩЕНИЕ" in place of a severity such as LOG'),
    ],
)
def test_a_log_in_another_language_names_the_setting(
    server: RealServer, tmp_path: Path, severity: str, message: str, expected: str
) -> None:
    said = refused_log(server, tmp_path, f"{_AT} [7] app@bank app=x {severity}:  {message}\n")
    assert expected in said
    assert "HINT:  messages must be in English: set lc_messages = 'C', and log again" in said


def test_a_prefix_without_processes_is_refused(scratch_pg18: RealServer, tmp_path: Path) -> None:
    scratch_pg18.append_configuration("log_line_prefix = '%m '\n")
    scratch_pg18.restart()
    log = tmp_path / "log"
    shutil.copy(scratch_pg18.log_file, log)
    arguments = ("--dsn", scratch_pg18.reading_dsn(), "--log", str(log), str(tmp_path / "w.toml"))
    refused = pgdyno("workload", "capture", *arguments)
    assert refused.returncode == 2
    assert "log_line_prefix = '%m ' does not identify sessions" in refused.stderr


@pytest.mark.parametrize(
    ("settings", "notes_on_it"),
    [
        ({"log_statement": "mod"}, 1),
        ({"log_min_duration_statement": "1s"}, 1),
        ({"log_min_duration_sample": "0", "log_statement_sample_rate": "0.5"}, 1),
        ({"log_transaction_sample_rate": "0.5"}, 1),
        ({"log_min_duration_statement": "0"}, 0),
        ({"log_statement": "all"}, 0),
        ({"log_transaction_sample_rate": "1"}, 0),
    ],
)
def test_a_log_of_a_part_of_the_statements_is_said_to_be_one(
    server: RealServer, some_log: Path, tmp_path: Path, settings: Mapping[str, str], notes_on_it: int
) -> None:
    server.reading_dsn()
    server.execute("ALTER ROLE reading SET log_statement = 'none'")
    for name, value in settings.items():
        server.execute(f"ALTER ROLE reading SET {name} = '{value}'")
    try:
        notes = capture(server, "bank", tmp_path / "bank.toml", [some_log]).notes
    finally:
        server.execute("ALTER ROLE reading RESET ALL")
    said = [note for note in notes if note.startswith("the server currently does not log every statement")]
    assert len(said) == notes_on_it
    assert all(f"{name} = '{value}'" in note for note in said for name, value in settings.items())
