"""The programs that issue load on load hosts: our driver, which is sent there, or a host's own sysbench."""

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
"""Lets a host run it, as remote/ does, and returns its name and version. Raises: RemoteHostError."""


@dataclass(frozen=True)
class LoadProgram:
    """A program that issues load. One that ``is_sent`` runs on machines like this one alone."""

    name: str
    ask_version: AskVersion
    is_sent: bool


def sent_driver(program: Path) -> LoadProgram:
    """Return our driver, by its path here."""
    return LoadProgram("pgdyno-driver", partial(driver_version, program), is_sent=True)


OWN_SYSBENCH = LoadProgram(sysbench.NAME, sysbench_version, is_sent=False)
