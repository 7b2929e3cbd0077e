"""Facts by which a fleet knows its machines, and which of them may differ on one machine. Pure."""

from __future__ import annotations

from pgdyno.experiments.machines.machine_facts import MACHINE
from pgdyno.experiments.machines.recorded_facts import of_host, of_server

_CHANGES_ON_A_MACHINE = ("SMT", "CPUs for the server", "NUMA nodes", "frequency")
"""Facts that differ between two experiments on one machine: it was set up otherwise, or read otherwise."""

_HARDWARE = {subject: tell for subject, tell in MACHINE if subject not in _CHANGES_ON_A_MACHINE}
DISKS = "disks"
_MAY_BE_EXCHANGED = ("memory", DISKS)  # one name for both is believed, with a warning
IDENTITY = tuple(subject for subject in _HARDWARE if subject not in _MAY_BE_EXCHANGED)
TOLD = {
    **_HARDWARE,
    "kernel": of_host("kernel.release"),
    "PostgreSQL": of_server("version"),
}
"""What is told of a machine, in this order."""
