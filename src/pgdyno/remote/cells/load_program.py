"""The programs that issue load on load hosts: pgdyno-driver, sent there, or a host's own sysbench."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from pgdyno.load import sysbench
from pgdyno.model.cells.cell import CellHost
from pgdyno.remote.load_driver import driver_version
from pgdyno.remote.load_sysbench import sysbench_version

AskVersion: TypeAlias = Callable[[CellHost, Path | None, float, str], str]
"""(host, ssh_config, limit_s, owner) -> name and version, from a run on the host. Raises: RemoteHostError."""


@dataclass(frozen=True)
class LoadProgram:
    """A program that issues load. If it ``is_sent``, it runs only on this machine's type of machines."""

    name: str
    ask_version: AskVersion
    is_sent: bool


def sent_driver(program: Path) -> LoadProgram:
    """Return pgdyno-driver, from its local path."""
    return LoadProgram("pgdyno-driver", partial(driver_version, program), is_sent=True)


OWN_SYSBENCH = LoadProgram(sysbench.NAME, sysbench_version, is_sent=False)
