"""pgdyno-driver, sysbench and pgbench with equal work for each, for tests that compare them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet
from tests.fix_servers import RealServer

ROWS = 10_000
RANGE_ROWS = 100
# Ranges begin at a random id and end 99 further on. With ids up to here they end within the table, so that
# each returns 100 rows whatever was drawn.
IDS = ROWS - RANGE_ROWS + 1
RUNS = "driven"  # the database of all runs

ONE_TABLE_SCRIPTS = ("select-random-points", "select-random-ranges")
PS_MODES = {"prepared": "auto", "simple": "disable"}  # of sysbench
PGBENCH = {"tpcb": "tpcb-like", "simple-update": "simple-update", "select": "select-only"}


@dataclass(frozen=True)
class Programs:
    """The three programs, all as superuser over the server's socket."""

    server: RealServer

    def drive(self, workload: str, *arguments: str, database: str = RUNS, options: str = "") -> None:
        """Call pgdyno-driver: ``arguments`` begin with its subcommand."""
        command, *rest = arguments
        target = self.server.dsn_for("postgres", database)
        call(Path(sysconfig.get_path("scripts")) / "pgdyno-driver", command, workload, target, *rest,
             options=options)  # fmt: skip

    def sysbench(self, script: str, *arguments: str, database: str = RUNS, options: str = "") -> None:
        """Call sysbench on one thread."""
        program = shutil.which("sysbench") or pytest.skip("sysbench is not installed: apt install sysbench")
        call(
            *(program, script, "--db-driver=pgsql", f"--pgsql-host={self.server.socket_directory}"),
            *(f"--pgsql-port={self.server.port}", "--pgsql-user=postgres", f"--pgsql-db={database}"),
            *("--rand-type=uniform", "--threads=1", *arguments),
            options=options,
        )

    def pgbench(self, *arguments: str, database: str = RUNS, options: str = "") -> None:
        """Call pgbench of the server's own version."""
        where = ("-h", str(self.server.socket_directory), "-p", str(self.server.port), "-U", "postgres")
        call(self.server.bin_directory / "pgbench", *where, *arguments, database, options=options)


@dataclass(frozen=True)
class Case:
    """A workload, and the options that both programs get."""

    workload: str
    tables: int = 1
    ids: int = IDS
    mode: str = "prepared"

    def __str__(self) -> str:
        return f"{self.workload}-{self.mode}"

    @property
    def parameter(self) -> ParameterSet:
        """The case as a test's parameter."""
        marks = [pytest.mark.sysbench] if self.workload.startswith("sysbench-") else []
        return pytest.param(self, id=str(self), marks=marks)

    def drive(self, programs: Programs, count: int, options: str = "") -> None:
        """Let the driver run ``count`` transactions on one connection."""
        given: tuple[str, ...] = (f"--count={count}", f"--mode={self.mode}")
        if self.workload.startswith("sysbench-"):
            given += (f"--option=tables={self.tables}", f"--option=table_size={self.ids}")
        programs.drive(self.workload, "run", *given, options=options)

    def run_original(self, programs: Programs, count: int, options: str = "") -> None:
        """Let the program that the workload comes from do the same."""
        origin, name = self.workload.split("-", 1)
        if origin == "pgbench":
            which = ("--no-vacuum", f"--protocol={self.mode}", f"--builtin={PGBENCH[name]}")
            programs.pgbench(*which, f"--transactions={count}", options=options)
            return
        script = name.replace("-", "_")
        script = script if name in ONE_TABLE_SCRIPTS else f"oltp_{script}"
        size = (f"--tables={self.tables}", f"--table-size={self.ids}")
        given = (f"--events={count}", "--time=0", f"--db-ps-mode={PS_MODES[self.mode]}", "run")
        programs.sysbench(script, *size, *given, options=options)


def call(program: Path | str, *arguments: str, options: str) -> None:
    """Run a program to its end; fails the test if it fails."""
    environment = {**os.environ, "PGOPTIONS": options}
    argv = [str(program), *arguments]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env=environment, stdin=subprocess.DEVNULL,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, f"{argv} failed: {done.stdout}{done.stderr}"


def load(programs: Programs, origin: str, database: str) -> None:
    """Let the driver make tables: two of sysbench's, or pgbench's of scale 1."""
    if origin == "sysbench":
        options = ("--option=tables=2", f"--option=table_size={ROWS}")
        programs.drive("sysbench-read-only", "load", *options, database=database)
    else:
        programs.drive("pgbench-tpcb", "load", "--option=scale=1", database=database)
