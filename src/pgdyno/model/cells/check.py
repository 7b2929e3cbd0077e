"""Facts about the hosts of a cell, and the findings about them."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.base.facts import Unknown
from pgdyno.host.probes import WakeUp
from pgdyno.model.cells.cell import CellHost


@dataclass(frozen=True)
class Trouble:
    """Why a host cannot be used, and the next step for its owner."""

    said: str
    next_step: str


@dataclass(frozen=True)
class ClockOffset:
    """How far a host's clock is ahead of this machine's; the truth is within ``error_s`` on either side.

    ``round_trip_s`` is the shortest of ``exchanges`` exchanges.
    """

    offset_s: float
    error_s: float
    round_trip_s: float
    exchanges: int


@dataclass(frozen=True)
class FoundPrograms:
    """PostgreSQL's programs in a directory of a host."""

    directory: str
    version: str
    trouble: str = ""  # why the version is unknown


@dataclass(frozen=True)
class FoundPgdyno:
    """The pgdyno of a host to which commands can be forwarded."""

    program: str
    version: str
    trouble: str = ""  # why the version is unknown


@dataclass(frozen=True)
class TrialWrite:
    """A file written to a host's directory of temporary files, and removed again."""

    directory: str
    free_bytes: int
    trouble: str  # empty if it was written
    may_run_programs: bool


@dataclass(frozen=True)
class CellHostFacts:
    """Facts about a host. ``boot_id`` identifies the running kernel, and so the machine.

    ``address`` is the address that ssh connected to, empty if sshd does not report it, and None for this
    machine, which is queried without ssh. ``sudo`` is the reason why root privileges are not available;
    empty if they are. ``postgresql`` is empty for load hosts, which are not searched. ``pgdyno`` is None for
    load hosts, and if the login shell finds none.
    """

    host_name: str
    user: str
    sudo: str
    address: str | None
    boot_id: str
    kernel: str
    machine: str
    cpu_model: str
    cpus: tuple[int, ...]
    memory_bytes: int
    python: str
    is_synchronised: bool | Unknown
    postgresql: tuple[FoundPrograms, ...]
    pgdyno: FoundPgdyno | None

    @property
    def is_here(self) -> bool:
        """Whether it is this machine."""
        return self.address is None


@dataclass(frozen=True)
class ReachedHost:
    """All facts about a host that was reached."""

    facts: CellHostFacts
    clock: ClockOffset
    trial_write: TrialWrite
    wake_up: WakeUp


@dataclass(frozen=True)
class NetworkProbe:
    """A TCP connection between a load host and the server's host, in both directions.

    ``load_address`` is the load host's address as seen by the server's host.
    """

    round_trip_s: float
    to_server_bytes_per_s: float
    from_server_bytes_per_s: float
    load_address: str


@dataclass(frozen=True)
class CheckedHost:
    """A host with its facts. ``network`` is None for the server's host, the other end of all probes."""

    host: CellHost
    answer: ReachedHost | Trouble
    network: NetworkProbe | Unknown | None = None


@dataclass(frozen=True)
class HostFinding:
    """A finding about some hosts. An obstacle makes the cell unusable."""

    hosts: tuple[str, ...]
    is_obstacle: bool
    said: str
    next_step: str


@dataclass(frozen=True)
class CellCheck:
    """The hosts of a cell, the server's first, with the findings, obstacles first."""

    hosts: tuple[CheckedHost, ...]
    findings: tuple[HostFinding, ...]
    is_usable: bool
