"""The order for a fleet: one experiment, and the machines that measure it."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

MACHINE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", re.ASCII)
"""It is part of names of files, and a resource of workers."""


@dataclass(frozen=True)
class MachineOrder:
    """The order for one machine: the words after ``pgdyno``, and the longest time that they may take."""

    command: tuple[str, ...]
    limit_s: float


@dataclass(frozen=True)
class FleetOrder:
    """A fleet, named like its file. Each machine measures the whole experiment once."""

    name: str
    machine: MachineOrder
    machines: tuple[str, ...]

    def bundle_name(self, machine: str) -> str:
        """Return the name of the file with a machine's answer: another command has other files."""
        digest = hashlib.sha256(json.dumps(self.machine.command).encode()).hexdigest()
        return f"{machine}-{digest[:8]}.zip"
