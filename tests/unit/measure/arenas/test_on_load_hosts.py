"""Turns of the driver from load hosts: the server by the network, and nothing else from there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.load import driver, sysbench
from pgdyno.load._contract import LoadRequest, Target
from pgdyno.load.driver import ArmTarget
from pgdyno.load.driver_process import DriverProcess
from pgdyno.load.driver_turns import DrainedTurns
from pgdyno.load.hosts_turns import HostsTurns
from pgdyno.measure.arenas.arm import Arm, RunningServer
from pgdyno.measure.arenas.load import Loads
from pgdyno.measure.arenas.on_load_hosts import even_parts, parts_of, placed_on, with_long_turns
from pgdyno.measure.arenas.placement import ArmsLoad
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.model.cells.cell import CellHost, HostRole
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.connection.network_access import NetworkAccess
from pgdyno.remote.cells.reach import ReachedLoadHost
from pgdyno.workload.workload_choice import find_workloads

CLIENT = CellHost("client1", HostRole.LOAD, "client1", cpus=(4, 5, 6))
THERE = ReachedLoadHost(
    CLIENT, None, "10.0.0.1", "10.0.0.2", (4, 5, 6), 0.0001, 0.0003, "boot1", "pgdyno-load-7"
)
OTHER = replace(THERE, host=CellHost("client2", HostRole.LOAD, "client2"), address="10.0.0.3", cpus=(0, 1))
ENTRANCE = NetworkAccess("10.0.0.1", Path("/rules"), "bench", "s3cret")
HERE = Loads(
    cast("Any", None), cast("Any", None), cast("Any", None), Path(), CpuSplit((0, 1), (2,), is_isolated=True)
)
LOADS = placed_on(HERE, [THERE], ENTRANCE, [2])


REQUEST = LoadRequest(5, 3, seed=7, duration_s=60, log_prefix=Path(), rate_tps=100.0)


def test_servers_have_all_cpus_here() -> None:
    assert LOADS.split == CpuSplit((0, 1, 2), (), is_isolated=True, load_host_threads=(2,))
    assert LOADS.split.pinned == ()
    assert HERE.split.pinned == (2,)
    both = placed_on(HERE, [THERE, OTHER], ENTRANCE, [2, 1])
    assert both.split.load_host_threads == (2, 1)
    assert both.split.client_count == 3


def test_each_host_has_its_part_of_the_load() -> None:
    first, second = parts_of(REQUEST, [THERE, OTHER], [2, 1])
    assert (first.clients, first.threads, first.rate_tps, first.seed) == (3, 2, 60.0, 7)
    assert (second.clients, second.threads, second.rate_tps, second.seed) == (2, 1, 40.0, 8)
    assert (first.cpus, second.cpus) == ((4, 5, 6), ())  # pinned to those that hosts.toml names


def test_no_two_hosts_work_on_the_tables_of_one_client() -> None:
    assert [one.first_schema for one in parts_of(REQUEST, [THERE, OTHER], [2, 1])] == [None, None]
    own = replace(REQUEST, first_schema=1)
    assert [one.first_schema for one in parts_of(own, [THERE, OTHER], [2, 1])] == [1, 4]  # after three


def test_a_closed_loop_has_no_rate_anywhere() -> None:
    closed = replace(REQUEST, rate_tps=None)
    assert [one.rate_tps for one in parts_of(closed, [THERE, OTHER], [1, 1])] == [None, None]


def load_of(directory: Path) -> ArmsLoad:
    """A load of two arms that are connected the other way round."""
    program = directory / "pgdyno-driver"
    program.write_bytes(b"ELF")
    process = DriverProcess([str(program), "serve"], list, {"ONLY": "here"}, directory / "driver-x.0.out")
    prefixes = [directory / "x.0", directory / "x.1"]
    arms = [ArmTarget(name, Target("/run/socket", 40001, "pgdyno", "bench"), Path(name)) for name in "ba"]
    return ArmsLoad(process, arms, [1, 0], prefixes, select_job, REQUEST, lambda: None)


def select_job(arms: Sequence[ArmTarget], request: LoadRequest) -> str:
    return driver.job(arms, "pgbench-select", {"scale": 1}, request)


def test_here_the_load_stays_as_it_is(tmp_path: Path) -> None:
    turns = HERE.placement.turns(load_of(tmp_path))
    assert isinstance(turns, DrainedTurns)
    assert turns.driver.argv[-1] == "serve"
    assert [arm["target"]["host"] for arm in json.loads(turns.job)["arms"]] == ["/run/socket"] * 2


def test_the_driver_is_sent_to_each_host_and_its_logs_come_here(tmp_path: Path) -> None:
    turns = placed_on(HERE, [THERE, OTHER], ENTRANCE, [2, 1]).placement.turns(load_of(tmp_path))
    assert isinstance(turns, HostsTurns)
    assert turns.order == [1, 0]
    for number, host in enumerate(turns.hosts):
        far = host.process
        assert far.argv[0] == "ssh"
        assert far.argv[-1].endswith(" 1020")  # twice its load, and a quarter of an hour
        assert "s3cret" not in " ".join(far.argv)
        assert "ONLY" not in far.environment
        assert far.output_file == tmp_path / f"driver-x.0.{number}.out"
        assert host.log_prefixes == [tmp_path / f"x.0.{number}", tmp_path / f"x.1.{number}"]
        assert far.distance is not None
        assert (far.distance.host, far.distance.log_prefixes) == (f"client{number + 1}", host.log_prefixes)
        job = json.loads(host.job)
        assert [arm["target"]["host"] for arm in job["arms"]] == ["10.0.0.1"] * 2  # by the network
        assert [(arm["name"], arm["log_prefix"]) for arm in job["arms"]] == [("b", "1"), ("a", "0")]
        assert job["clients"] == 3 - number


def test_sysbench_of_each_host_has_a_command_line_for_each_server(tmp_path: Path) -> None:
    workload = find_workloads(("sysbench-read-write",), generator="sysbench")["sysbench-read-write"]
    load = replace(
        load_of(tmp_path),
        job=lambda arms, request: sysbench.job(arms, workload, request),
        generator="sysbench",
    )
    turns = placed_on(HERE, [THERE, OTHER], ENTRANCE, [2, 1]).placement.turns(load)
    assert isinstance(turns, HostsTurns)
    first, second = turns.hosts
    job = json.loads(second.job)
    assert [(arm["name"], arm["log"]) for arm in job["arms"]] == [("b", "1"), ("a", "0")]
    (arm, _) = job["arms"]
    assert arm["options"] == [
        "--db-driver=pgsql", "--pgsql-host=10.0.0.1", "--pgsql-port=40001", "--pgsql-user=pgdyno_load",
        "--pgsql-db=bench", "--tables=8", "--table-size=300000", "--rand-type=uniform", "--rand-seed=8",
        "--threads=2", "--time=0", "run",
    ]  # fmt: skip
    assert arm["environment"] == {"PGDYNO_SCRIPT": "oltp_read_write", "PGDYNO_LOG": "1"}
    assert json.loads(first.job)["cpus"] == [4, 5, 6]
    first.process.output_file.touch()
    sent, error = first.process.distance, first.process.failure("why")
    assert sent is not None
    assert b"s3cret" in sent.first
    assert b"PGDYNO_SCRIPT" in sent.first  # the script around sysbench's own
    assert b'"PGSSLMODE": "disable", "PGGSSENCMODE": "disable"' in sent.first  # as the driver's sessions are
    assert "s3cret" not in " ".join(first.process.argv)
    assert error.message == "sysbench on client1 failed: why"


def test_a_step_is_issued_by_the_first_host_alone(tmp_path: Path) -> None:
    load = load_of(tmp_path)
    alone = replace(load, arms=load.arms[:1], order=[0], prefixes=[], request=replace(REQUEST, rate_tps=None))
    issued = placed_on(HERE, [THERE, OTHER], ENTRANCE, [2, 1]).placement.step(alone)
    job = json.loads(issued.job)
    assert (job["clients"], job["threads"], job["cpus"], job["seed"]) == (5, 2, [4, 5, 6], 7)
    assert "is_part" not in job
    (arm,) = job["arms"]
    assert (arm["target"]["host"], arm["log_prefix"]) == ("10.0.0.1", None)
    assert issued.process.distance is not None
    assert (issued.process.distance.host, issued.process.distance.log_prefixes) == ("client1", [])


def test_other_loads_are_issued_from_here_alone() -> None:
    workload = find_workloads(("pgbench-select",), generator="pgbench")["pgbench-select"]
    with pytest.raises(UsageError) as caught:
        LOADS.prepare([], [], workload, Design(), 1.0, [])
    assert caught.value.message == "this load cannot be issued by client1 yet"
    arm = Arm(Variant("a"), cast("RunningServer", Target("/run/socket", 40001, "pgdyno", "bench")))
    with pytest.raises(UsageError) as caught:
        LOADS.run_counted(arm, find_workloads(("pgbench-select",))["pgbench-select"], 7, 1, lambda: None)
    assert caught.value.message == "this load cannot be issued by client1 yet"


@pytest.mark.parametrize(
    ("whole", "count", "parts"),
    [(4, 1, (4,)), (4, 2, (2, 2)), (5, 2, (3, 2)), (8, 3, (3, 3, 2)), (2, 3, (1, 1, 0))],
)
def test_parts_differ_by_one_at_most(whole: int, count: int, parts: tuple[int, ...]) -> None:
    assert even_parts(whole, count) == parts


def test_turns_stay_as_they_are_where_words_are_fast() -> None:
    assert with_long_turns(Design(), 0.001, "client1") == Design()


def test_turns_have_forty_times_what_words_take() -> None:
    longer = with_long_turns(replace(Design(), writing_slice_s=0.5), 0.004, "client1")
    assert (longer.slice_s, longer.writing_slice_s) == (0.2, 0.5)
    short = with_long_turns(replace(Design(), slice_s=0.02, writing_slice_s=0.02), 0.004, "client1")
    assert (short.slice_s, short.writing_slice_s) == (0.2, 0.2)


def test_a_host_that_is_too_far_away_is_named() -> None:
    with pytest.raises(UsageError) as caught:
        with_long_turns(Design(), 0.1, "client2")
    assert caught.value.message == "client2 is too far away to take turns together with other load hosts"
    assert caught.value.detail == (
        "the round trip takes 100\xa0ms: turns would have to last 4\xa0s, but the limit is 2\xa0s"
    )


def test_whole_trials_are_long_enough_for_it() -> None:
    trials = replace(Design(), slice_s=10.0)
    assert with_long_turns(trials, 0.1, "client2") == trials
