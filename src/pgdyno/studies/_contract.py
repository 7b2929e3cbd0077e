"""What a study may know about where it will run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.hosts.io_uring import IoUringObstacle
from pgdyno.model.variants.variant import Variant

APPLICATION, SYSTEM = "application", "system"  # one layer of the plan alone
PGTUNE, TUNED = "pgtune", "tuned"
"""Names of the configurations that a study may find in its context."""


@dataclass(frozen=True)
class Machine:
    """What a study scales itself to."""

    cpus: int  # that may be used
    available_bytes: int


@dataclass(frozen=True)
class Sizing:
    """The size of a study that brings its own workloads; None: as its preset has it.

    A study that spans a grid makes it of ``loads``, and chooses its cells by what fits into ``budget_s`` in
    as many ``rounds`` as a verdict needs; None: all of them.
    """

    preset: str | None = None
    clients: int | None = None
    rows: tuple[int, int, int] | None = None
    step_s: int | None = None
    is_faithful: bool = False
    steps: tuple[str, ...] = ()  # none: all
    max_wal_sizes: tuple[
        str, ...
    ] = ()  # between which a factor varies: how much disk is needed depends on it
    machine: Machine = Machine(1, 0)
    loads: tuple[Workload, ...] = ()
    chosen: tuple[str, ...] = ()  # loads of the study's own; none: the usual ones
    query: str | None = None  # of the user's own
    may_write: bool = False  # that query; each execution is rolled back then
    protocols: tuple[str, ...] = ()  # how statements travel; none: prepared
    rounds: int = 1
    budget_s: float | None = None
    scale: float | None = None

    @property
    def options(self) -> dict[str, str]:
        """The options that ask for this size again, by name; clients and steps are told by the results."""
        asked = {
            "preset": self.preset,
            "rows": "/".join(map(str, self.rows)) if self.rows else None,
            "step-seconds": None if self.step_s is None else str(self.step_s),
            "mode": "faithful" if self.is_faithful else "corrected",
        }
        return {name: value for name, value in asked.items() if value is not None}

    @property
    def grid_options(self) -> dict[str, str]:
        """The options that ask for this grid again, by name."""
        asked = {
            "preset": self.preset,
            "clients": None if self.clients is None else str(self.clients),
            "workload": ",".join(self.chosen) or None,
            "protocol": ",".join(self.protocols) or None,
            "query": self.query,
            "writes": "" if self.may_write else None,
            "budget": None if self.budget_s is None else f"{self.budget_s:g}s",
        }
        return {name: value for name, value in asked.items() if value is not None}


@dataclass(frozen=True)
class IoSupport:
    """What a server can do about asynchronous I/O here."""

    server: str  # for sentences: "PostgreSQL 18.6 (embedded)"
    major: int
    cpus: int  # that it may use
    io_uring_obstacle: IoUringObstacle | None  # None: it can use io_uring
    named: str | None = None  # by a variant; None: the server of variants that name none


@dataclass(frozen=True)
class Pool:
    """Huge pages of one size: the kernel's file of their number, and how many there are to be."""

    path: str
    found: int
    wanted: int  # with those of one server of the study; never fewer than were found
    obstacle: str | None = None  # why they cannot be had


@dataclass(frozen=True)
class PageSupport:
    """What a server's memory can be put on here. Pools are by the size of their pages, in bytes."""

    pools: Mapping[int, Pool]
    choices: Mapping[str, tuple[str, ...]]  # of transparent huge pages, by the kernel's file


@dataclass(frozen=True)
class StudyContext:
    """The baseline, the chosen workloads and design, and ready-made sets of settings by name.

    ``configurations`` holds what this host's facts lead to, as far as the server's build and the kernel
    accept it: pgdyno's own plan, and what others would set where that is known. ``notes`` say what was left
    out. ``sizing`` is for studies that bring their own workloads, ``io`` for those with ``NEEDS_IO_SUPPORT``:
    what every server can do that is measured, in their order. ``pages`` is for ``NEEDS_PAGE_SUPPORT``.
    ``factors`` replace the study's variants by their combinations afterwards. ``servers`` are the builds of
    those configurations that have one of their own, ``layers`` the configurations between the baseline and
    the plan, each of which has one more layer of it.
    """

    baseline: Variant
    workloads: tuple[str, ...]
    design: Design
    configurations: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    sizing: Sizing = field(default_factory=Sizing)
    factors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    io: tuple[IoSupport, ...] = ()
    pages: PageSupport | None = None
    servers: Mapping[str, str] = field(default_factory=dict)
    layers: tuple[str, ...] = ()
