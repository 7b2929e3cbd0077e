"""Turns of the driver from a load host: the server by the network, and nothing else from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from pgdyno.app.arenas.arm import Arm, RunningServer
from pgdyno.app.arenas.load import Loads
from pgdyno.app.arenas.on_load_host import placed_on
from pgdyno.app.cells.reach import ReachedLoadHost
from pgdyno.app.measuring.workload_choice import find_workloads
from pgdyno.experiments.design.isolation import CpuSplit
from pgdyno.generators._contract import Target
from pgdyno.generators.driver import ArmTarget
from pgdyno.generators.driver_process import DriverProcess
from pgdyno.model.cells.cell import CellHost, HostRole
from pgdyno.model.errors import UsageError
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.workload import Step
from pgdyno.model.variants.variant import Variant
from pgdyno.server.connection.network_entrance import NetworkEntrance

CLIENT = CellHost("client1", HostRole.LOAD, "client1", cpus=(4, 5, 6))
THERE = ReachedLoadHost(CLIENT, None, "10.0.0.1", "10.0.0.2", (4, 5, 6), 0.0001)
ENTRANCE = NetworkEntrance("10.0.0.1", Path("/rules"), "s3cret")
HERE = Loads(
    cast("Any", None), cast("Any", None), cast("Any", None), Path(), CpuSplit((0, 1), (2,), is_isolated=True)
)
LOADS = placed_on(HERE, THERE, ENTRANCE, 2)


def test_servers_have_all_cpus_here_and_threads_are_pinned_there() -> None:
    assert LOADS.split == CpuSplit((0, 1, 2), (), is_isolated=True, load_host_threads=2)
    assert LOADS.placement.pinned(LOADS.split) == (4, 5, 6)
    assert HERE.placement.pinned(HERE.split) == (2,)


def test_an_arm_is_reached_by_the_network_and_logged_by_its_number() -> None:
    local = ArmTarget("a", Target("/run/socket", 40001, "pgdyno", "bench"), Path("/logs/x"))
    assert HERE.placement.arm_target(local, 3) == local
    far = ArmTarget("a", Target("10.0.0.1", 40001, "pgdyno", "bench"), Path("3"))
    assert LOADS.placement.arm_target(local, 3) == far


def test_the_driver_is_sent_there_and_its_logs_come_here(tmp_path: Path) -> None:
    program = tmp_path / "pgdyno-driver"
    program.write_bytes(b"ELF")
    local = DriverProcess([str(program), "serve"], list, {"ONLY": "here"}, tmp_path / "output")
    assert HERE.placement.driver(local, [Path("/logs/x")], 60.0) is local
    far = LOADS.placement.driver(local, [Path("/logs/x")], 60.0)
    assert far.argv[0] == "ssh"
    assert far.argv[-1].endswith(" 1020")  # twice its load, and a quarter of an hour
    assert "s3cret" not in " ".join(far.argv)
    assert "ONLY" not in far.environment
    assert far.distance is not None
    assert (far.distance.host, far.distance.log_prefixes) == ("client1", [Path("/logs/x")])


def test_loads_without_turns_are_issued_from_here_alone() -> None:
    workload = find_workloads(("pgbench-select",), generator="pgbench")["pgbench-select"]
    with pytest.raises(UsageError) as caught:
        LOADS.prepare([], [], workload, Design(), 1.0, [])
    assert caught.value.message == "this load cannot be issued by client1 yet"
    arm = Arm(Variant("a"), cast("RunningServer", Target("/run/socket", 40001, "pgdyno", "bench")))
    step = Step("step", {}, 1, "queries", rows_per_commit=1, duration_s=1.0, interval_s=1.0, patience_s=1.0)
    with pytest.raises(UsageError) as caught:
        LOADS.step(arm, step, 7)
    assert caught.value.message == "this load cannot be issued by client1 yet"
