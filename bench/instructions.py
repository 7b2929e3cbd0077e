"""Instructions and branches per transaction of several servers, counted by valgrind: whoever else is busy.

Each server runs under valgrind, on a copy of the same data. pgbench runs twice on one connection, with a
thousand transactions more the second time; the difference, divided by them, is what one takes: the start of
the server and of the connection fall out. What is counted is that of all processes in user mode:
instructions, conditional branches among them, and how many of these were taken, after which a processor goes
on to fetch elsewhere. Time is not measured: half as many instructions need not take half as long.

Branches are lackey's. It takes each repetition of a string instruction (rep movs) for an instruction and a
branch; exp-bbv, in a second run, counts such an instruction once, and its repetitions apart.

valgrind knows no AVX-512: builds for this CPU may need ``--portable x86-64-v3``.

    python -m bench.instructions source-18 built-0123456789ab
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from contextlib import closing
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path

from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import find_installation
from pgdyno.postgres.process.workspace import Workspace


@dataclass(frozen=True)
class Tool:
    """A tool of valgrind's; ``said``: a pattern of what each process writes in the end."""

    name: str
    options: str
    said: str


SCRIPTS = {"pgbench-select": ("--builtin=select-only",), "pgbench-tpcb": ("--builtin=tpcb-like",)}
FEW, MANY = 200, 1200  # transactions
PORT = 5432  # of a socket in a private directory
SETTINGS = {
    "autovacuum": "off",
    "fsync": "off",
    "checkpoint_timeout": "1h",
    "shared_buffers": "128MB",
    "bgwriter_lru_maxpages": "0",
    "bgwriter_delay": "10s",
    "wal_writer_delay": "10s",
}
"""Next to nothing runs by itself, and nothing waits: neither is the transaction's."""
_NUMBER = r"([\d,]+)"
LACKEY = Tool("lackey", "", rf"Jccs:\n.*total: +{_NUMBER}\n.*taken: +{_NUMBER} ")
"""Branches, and those that were taken."""
BBV = Tool(
    "exp-bbv",
    "--instr-count-only=yes --bb-out-file=/dev/null",
    rf"Total instructions: {_NUMBER}\n.*Total reps: {_NUMBER}\n.*Unique reps: {_NUMBER}\n",
)
"""Instructions; repetitions of string instructions, each beginning with a look at whether it is the last; and
how often such an instruction was run."""
# Nor are pages copied by one such instruction, byte by byte: libc has loops of its own instead.
_COUNTING = """#!/bin/sh
export GLIBC_TUNABLES=glibc.cpu.hwcaps=-ERMS
exec valgrind --quiet --tool={tool} {options} --log-file='{counts}/%p' '{postgres}' "$@"
"""


@dataclass(frozen=True)
class Counts:
    """What was executed; ``branches`` are the conditional ones."""

    instructions: float
    branches: float
    taken: float


@dataclass(frozen=True)
class Counted:
    """A server under valgrind, and where its processes leave their counts."""

    place: Workspace
    scratch: Path
    sockets: Path
    installation: Installation

    def per_transaction(self, script: tuple[str, ...], prepared: Path) -> Counts:
        """Return what one transaction takes, on a copy of prepared data."""
        branches, taken = self._counted(LACKEY, script, prepared)
        instructions, looks, repeated = self._counted(BBV, script, prepared)
        return Counts(instructions, branches - looks, taken - (looks - repeated))

    def _counted(self, tool: Tool, script: tuple[str, ...], prepared: Path) -> list[float]:
        few, many = (self._totals(tool, script, prepared, transactions) for transactions in (FEW, MANY))
        return [(after - before) / (MANY - FEW) for before, after in zip(few, many, strict=True)]

    def _totals(self, tool: Tool, script: tuple[str, ...], prepared: Path, transactions: int) -> list[int]:
        data, counts, programs = (self.scratch / name for name in ("data", "counts", "programs"))
        for path in (data, counts, programs):
            shutil.rmtree(path, ignore_errors=True)
        subprocess.run(["cp", "--archive", str(prepared), str(data)], check=True)
        counts.mkdir()
        self.place.account.own(counts)
        programs.mkdir()
        counting = programs / "postgres"
        postgres = self.installation.program("postgres")
        counting.write_text(
            _COUNTING.format(tool=tool.name, options=tool.options, counts=counts, postgres=postgres)
        )
        counting.chmod(0o755)
        counted = replace(self.installation, bin_directory=programs)
        server = Instance(counted, self.place.account, data, self.sockets, PORT, SETTINGS)
        with server.running():
            options = ("--no-vacuum", "--client=1", f"--transactions={transactions}", "--random-seed=1")
            pgbench(self.installation, server, *script, *options)
        return [
            sum(numbers) for numbers in zip(*(said(tool, path) for path in counts.iterdir()), strict=True)
        ]


def said(tool: Tool, counts: Path) -> list[int]:
    """Return what a tool has counted of one process. Raises: ValueError if it has written nothing."""
    found = re.search(tool.said, counts.read_text(errors="replace"))
    if found is None:
        raise ValueError(f"{counts} has no sum: the process was ended before it could write one")
    return [int(number.replace(",", "")) for number in found.groups()]


def pgbench(installation: Installation, server: Instance, *options: str) -> None:
    """Run pgbench as it is, outside valgrind."""
    where = (f"--host={server.host}", f"--port={server.port}", f"--username={server.user}", "postgres")
    subprocess.run([installation.program("pgbench"), *options, *where], check=True, capture_output=True)


def prepare(installation: Installation, place: Workspace, scratch: Path, sockets: Path) -> Path:
    """Return a data directory with pgbench's tables, of which each server gets a copy."""
    data = scratch / "prepared"
    initialise(installation, place.account, data)
    server = Instance(installation, place.account, data, sockets, PORT, SETTINGS)
    with server.running():
        pgbench(installation, server, "--initialize", "--scale=1", "--quiet")
        with closing(server.connect()) as connection:
            connection.execute("CHECKPOINT")
    return data


def main() -> None:
    """Print a line for each script, server and count; ratios are to the first server."""
    parser = argparse.ArgumentParser(description="Instructions and branches per transaction, by valgrind.")
    parser.add_argument("servers", nargs="+", metavar="SERVER", help="of one major version; the first is 1")
    place = workspace()
    installations = [find_installation(name, place) for name in parser.parse_args().servers]
    for name, script in SCRIPTS.items():
        first: Counts | None = None
        for installation in installations:
            with place.scratch() as scratch, place.sockets(scratch) as sockets:
                prepared = prepare(installations[0], place, scratch, sockets)
                found = Counted(place, scratch, sockets, installation).per_transaction(script, prepared)
            first = first or found
            for (what, number), reference in zip(asdict(found).items(), astuple(first), strict=True):
                row = f"{name:16} {installation.name:24} {what:12} {number:10,.0f}"
                print(f"{row} {number / reference:7.3f}", flush=True)


if __name__ == "__main__":
    main()
