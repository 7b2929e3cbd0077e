"""A cell of namespaces that ``pgdyno cell check`` looks at."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.fix_cell import NamespaceCell
from tests.fix_namespaces import running_cell
from tests.fix_servers import wait_until

from pgdyno import __version__

rare = pytest.mark.skipif("PGDYNO_CELLS" not in os.environ, reason="one of a kind is enough: make test-cells")
SIZES = {"db1": "64m", "client1": "64m", "client2": "64m", "full": "1m", "planted": "64m"}
PGDYNO = f"#!/bin/sh\necho 'pgdyno, version {__version__}'\n"
POSTGRES = "#!/bin/sh\necho 'postgres (PostgreSQL) 17.2'\n"
LOAD = (
    'role = "load"\ncpus = "0"'  # one CPU: the hosts share them, and would wake each other's at the same time
)


@contextmanager
def checked_cell(directory: Path) -> Iterator[NamespaceCell]:
    """The hosts; the server's has programs that say they are PostgreSQL and pgdyno."""
    with running_cell(directory, SIZES) as running:
        running["db1"].plant("postgres", POSTGRES)
        running["db1"].plant("pgdyno", PGDYNO)
        yield running


def assert_nothing_is_left(cell: NamespaceCell) -> None:
    """Fail if something is left on a host or here."""
    wait_until(lambda: all(len(host.pids()) == 1 for host in cell.hosts.values()))  # the sshd that listens
    assert all(host.temporary_files() == [] for host in cell.hosts.values())
    assert cell.own_pids() == ()


@dataclass(frozen=True)
class Checked:
    """The end of a check."""

    status: int
    document: dict[str, Any]

    def host(self, name: str) -> dict[str, Any]:
        """Return the answer of a host."""
        return next(one for one in self.document["hosts"] if one["host"]["name"] == name)

    def findings(self, *, obstacles: bool) -> dict[str, str]:
        """Return findings and next steps by hosts."""
        return {
            ", ".join(one["hosts"]): f"{one['said']} → {one['next_step']}"
            for one in self.document["findings"]
            if one["is_obstacle"] is obstacles
        }


def tables(cell: NamespaceCell, *loads: str, **other: str) -> dict[str, str]:
    """Return the tables of hosts.toml for the server and load hosts; ``other`` has whole ones."""
    server = f'role = "server"\ncpus = "0"\npostgresql = "{cell["db1"].directory}/bin"'
    return {"db1": server, **dict.fromkeys(loads, LOAD), **other}


def check(cell: NamespaceCell, file: Path, limit: str = "20s") -> Checked:
    """Run the command."""
    process = cell.pgdyno("cell", "check", "--cell", str(file), "--limit", limit, "--json")
    said, errors = process.communicate(timeout=250)
    assert said, errors
    return Checked(process.returncode, json.loads(said)["check"])


def obstacle(cell: NamespaceCell, file: Path, limit: str = "20s") -> str:
    """Return what alone keeps a cell from being used, with its next step."""
    checked = check(cell, file, limit)
    found = checked.findings(obstacles=True)
    assert (checked.status, len(found)) == (1, 1), found
    ((host, said),) = found.items()
    return f"{host}: {said}"
