"""pgdyno-driver, pgbench and sysbench with equal work for each, and what a run of each costs.

They run as pgdyno's generators do: as the unprivileged account, on the CPUs of the client.
"""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgdyno.load import driver
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.measure.meters.server import cpu
from pgdyno.model.experiments.workload import PgbenchScripts, Script, SysbenchScript, Workload
from pgdyno.postgres.process.account import caller

CLIENTS = 4
DRIVER = "driver"
_BACKENDS_END_WITHIN_S = 30.0
_POLL_S = 0.01


@dataclass(frozen=True)
class Program:
    """A command line that runs a workload for some seconds, and how to read its transactions."""

    name: str
    argv: tuple[str, ...]  # ``{seconds}`` is replaced
    read_transactions: Callable[[str], int]
    is_unprivileged: bool = (
        True  # else it runs as whoever calls: what it needs may be within reach of them only
    )


@dataclass(frozen=True)
class Cost:
    """One run, from the program's start until its backends have gone."""

    program: str
    transactions: int
    client_cpu_us: float
    server_cpu_us: float


def has_sysbench() -> bool:
    """Whether sysbench is installed."""
    return shutil.which("sysbench") is not None


def our_driver(arena: ScratchArena, arm: Arm, workload: Workload) -> Program:
    """Return the driver on one thread."""
    argv = (*driver_run(arena, arm, workload), f"--clients={CLIENTS}", "--time={seconds}")
    return Program(DRIVER, argv, lambda output: int(_main_role(output)["transactions"]))


def driver_run(arena: ScratchArena, arm: Arm, workload: Workload) -> tuple[str, ...]:
    """Return the driver's command line without the amount of load; it prints JSON."""
    options = (f"-o{name}={value}" for name, value in driver.workload_options(workload.data_set).items())
    cpus = ",".join(map(str, arena.loads.split.client))
    program = str(arena.loads.find_driver().program)
    target = driver.conninfo(arm.target())
    return (program, "run", workload.name, target, *options, "--threads=1", f"--cpus={cpus}", "--json")


def original(arena: ScratchArena, arm: Arm, workload: Workload) -> Program:
    """Return the program that a workload comes from."""
    match workload.kind:
        case SysbenchScript(lua_script):
            return _sysbench(arm, workload, lua_script)
        case PgbenchScripts(scripts):
            return _pgbench(arena, arm, scripts)
    raise ValueError(f"{workload.name} comes from no other program")


def _pgbench(arena: ScratchArena, arm: Arm, scripts: Sequence[Script]) -> Program:
    target = arm.target()
    argv = (
        *(arena.installation.program("pgbench"), f"--host={target.host}", f"--port={target.port}"),
        *(f"--username={target.user}", "--no-vacuum", "--protocol=prepared", f"--client={CLIENTS}"),
        *("--jobs=1", "--time={seconds}", *(script.option for script in scripts), target.database),
    )
    return Program("pgbench", argv, lambda output: _number(r"transactions actually processed: (\d+)", output))


def _sysbench(arm: Arm, workload: Workload, script: str) -> Program:
    target, options = arm.target(), driver.workload_options(workload.data_set)
    argv = (
        *("sysbench", script, "--db-driver=pgsql", f"--pgsql-host={target.host}"),
        *(f"--pgsql-port={target.port}", f"--pgsql-user={target.user}", f"--pgsql-db={target.database}"),
        *(f"--tables={options['tables']}", f"--table-size={options['table_size']}"),
        *("--rand-type=uniform", f"--threads={CLIENTS}", "--time={seconds}", "run"),
    )
    return Program("sysbench", argv, lambda output: _number(r"transactions: +(\d+)", output))


def measure(arena: ScratchArena, arm: Arm, program: Program, seconds: int) -> Cost:
    """Run a program and return what it has cost on both sides, start and end of connections included."""
    aside = set(arm.server_pids())
    server_before_us, client_before_us = _server_cpu_us(arm), _children_cpu_us()
    argv = [part.replace("{seconds}", str(seconds)) for part in program.argv]
    output = run(arena, argv, seconds, is_unprivileged=program.is_unprivileged)
    client_us = _children_cpu_us() - client_before_us
    deadline = time.monotonic() + _BACKENDS_END_WITHIN_S
    while set(arm.server_pids()) - aside:
        if time.monotonic() > deadline:
            raise SystemExit(f"{program.name} has ended, but not all of its backends have")
        time.sleep(_POLL_S)
    server_us = _server_cpu_us(arm) - server_before_us
    return Cost(program.name, program.read_transactions(output), client_us, server_us)


def run(arena: ScratchArena, argv: list[str], seconds: int, *, is_unprivileged: bool = True) -> str:
    """Run a program on the client's CPUs and return what it prints. Raises: SystemExit if it fails."""
    account = arena.workspace.account if is_unprivileged else caller()
    wrapped = account.command(argv, cpus=arena.loads.split.client)
    done = subprocess.run(wrapped, capture_output=True, text=True, check=False, timeout=seconds + 60)
    if done.returncode != 0:
        raise SystemExit(f"{argv[0]} failed: {done.stdout[-800:]}{done.stderr[-800:]}")
    return done.stdout


def last_phase(output: str) -> Mapping[str, Any]:
    """Return the result of the driver's last phase."""
    events = [json.loads(line) for line in output.splitlines()]
    phases: list[Mapping[str, Any]] = [event for event in events if event["event"] == "phase"]
    return phases[-1]


def _main_role(output: str) -> Mapping[str, Any]:
    role: Mapping[str, Any] = last_phase(output)["arms"][0]["roles"][0]
    return role


def _number(pattern: str, output: str) -> int:
    found = re.search(pattern, output)
    if found is None:
        raise SystemExit(f"no transactions in: {output[-800:]}")
    return int(found[1])


def _server_cpu_us(arm: Arm) -> float:
    counters = cpu.read(arm)
    if counters is None:
        raise SystemExit("the server's CPU time cannot be read from /proc")
    return counters[0]


def _children_cpu_us() -> float:
    """Return the CPU time of all children that have ended and were waited for: only load programs are."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (usage.ru_utime + usage.ru_stime) * 1e6
