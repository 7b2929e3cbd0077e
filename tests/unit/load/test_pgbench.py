"""The command lines of the generators."""

from __future__ import annotations

import signal
from pathlib import Path

from pgdyno.load._contract import LoadRequest, Target
from pgdyno.load.pgbench import Pgbench
from pgdyno.load.sysbench import Sysbench, wrapper_text
from pgdyno.model.experiments.workload import PgbenchScripts, Script, Workload
from pgdyno.workload.bundled import load

TARGET = Target("/tmp/socket", 5433, "pgdyno", "bench")
REQUEST = LoadRequest(clients=4, threads=8, seed=7, duration_s=60, log_prefix=Path("/tmp/log"))


def test_pgbench_runs_prepared_with_a_log_a_seed_and_no_more_threads_than_clients() -> None:
    command = Pgbench(Path("/bin/pgbench"), 18).run(TARGET, load()["pgbench-select"], REQUEST)
    assert command.argv == (
        "/bin/pgbench", "--host=/tmp/socket", "--port=5433", "--username=pgdyno", "--no-vacuum",
        "--protocol=prepared", "--client=4", "--jobs=4", "--time=60", "--random-seed=7",
        "--max-tries=10", "--failures-detailed", "--log", "--log-prefix=/tmp/log",
        "--builtin=select-only@1", "bench",
    )  # fmt: skip


def test_pgbench_before_15_knows_no_further_tries() -> None:
    command = Pgbench(Path("/bin/pgbench"), 14).run(TARGET, load()["pgbench-select"], REQUEST)
    assert not [option for option in command.argv if "tries" in option or "failures" in option]


def test_pgbench_is_stopped_by_the_signal_of_its_own_timer() -> None:
    command = Pgbench(Path("pgbench"), 18).run(TARGET, load()["pgbench-tpcb"], REQUEST)
    assert command.stop_signal is signal.SIGALRM


def test_a_users_script_is_passed_with_its_weight() -> None:
    select = load()["pgbench-select"]
    scripts = PgbenchScripts((Script("f.sql", 3, "/tmp/f.sql"),))
    own = Workload("scripts", "", select.data_set, select.reset, scripts, "pgbench")
    assert own.generators == ("pgbench",)
    assert "--file=/tmp/f.sql@3" in Pgbench(Path("pgbench"), 18).run(TARGET, own, REQUEST).argv


def test_sysbench_runs_its_own_script_uniformly_through_the_logging_wrapper() -> None:
    workload = load()["sysbench-read-write"]
    command = Sysbench(Path("sysbench"), Path("/tmp/wrapper.lua")).run(TARGET, workload, REQUEST)
    assert command.argv[:2] == ("sysbench", "/tmp/wrapper.lua")
    assert {
        "--rand-type=uniform",
        "--rand-seed=7",
        "--threads=4",
        "--tables=8",
        "--table-size=300000",
    } <= set(command.argv)
    assert command.environment == {"PGDYNO_SCRIPT": "oltp_read_write", "PGDYNO_LOG": "/tmp/log"}


def test_the_wrapper_is_part_of_the_package() -> None:
    assert 'require(os.getenv("PGDYNO_SCRIPT"))' in wrapper_text()
