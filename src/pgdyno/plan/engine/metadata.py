"""Metadata and findings of levers: records without behaviour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from pgdyno.host.awake import idling_files
from pgdyno.model.plans.plan import HUGE_PAGES, Layer, Risk, kind_of

HEADINGS = (
    "What it does",
    "Why it helps",
    "When it hurts",
    "How it is verified",
    "How it is undone",
    "References",
)


class Goal(StrEnum):
    """The goal of tuning."""

    OLTP = "oltp"


class Maturity(StrEnum):
    """How far a lever can be trusted."""

    PREVIEW = "preview"  # the rule is argued, not yet measured by us
    STABLE = "stable"
    RETIRED = "retired"


class Need(StrEnum):
    """A fact without which a lever is skipped."""

    MEMORY = "memory_bytes"
    CPUS = "cpu_count"
    STORAGE = "storage"
    DATA_SIZE = "data_bytes"
    FREE_DISK = "free_disk_bytes"
    DISKS = "disks"


_LONGEST_SWITCH_S = 0.005  # a tenth of the shortest usual turn


@dataclass(frozen=True)
class Lever:
    """A lever's metadata. ``order_after`` gives, per lever that goes first, the reason.

    ``settings`` and ``files`` are all that it may touch, and each belongs to one lever. Files are paths of
    the kernel's, ``/proc/sys/vm/swappiness``, or patterns in which ``*`` stands for one name, or registers,
    see ``host/kernel_file.py`` and ``host/msr.py``; ``reads`` are those that it looks at besides. ``facts``
    are dotted names of what it cannot do without: ``host.cpu.mitigations``, ``server.program.atomics``. A
    lever that may touch nothing reports: its plan is always ``Skipped``, with what was found and what one
    could do.
    ``is_instant``: what is written counts at once for everybody, and leaves nothing behind when something
    else is written;
    ``switch_s`` is how long the kernel takes to change over.
    ``touches_wakeups``: what it is worth depends on how CPUs idle, so that it is measured as booted as well.
    ``process`` are keys of how a server's program is started: it may plan them for scratch servers.
    ``chooses_server``: it may plan another build of PostgreSQL. ``divides_caches``: it may divide the
    processor's. ``is_named_only``: it is planned only for those who name it, and last. ``without_files`` says
    what it means that the kernel shows none of them, where that is known.
    ``tried`` are values of its settings that a search tries besides the planned one: texts as they are,
    numbers as multiples of the planned value, or else of the one found. ``moves_with`` names, for a setting
    that counts only with another one of the lever's, that one: a search sets both or neither.
    ``shows_late``: blocks of seconds do not show its effect, but checkpoint cycles or vacuums do, so that a
    search keeps what is planned.
    """

    name: str
    title: str
    layer: Layer
    risk: Risk
    maturity: Maturity
    settings: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    process: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    facts: tuple[str, ...] = ()
    without_files: str = ""
    conflicts: tuple[str, ...] = ()
    is_instant: bool = False
    switch_s: float = 0.0
    touches_wakeups: bool = False
    chooses_server: bool = False
    divides_caches: bool = False
    is_named_only: bool = False
    order_after: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    tried: Mapping[str, Sequence[str | float]] = field(default_factory=lambda: MappingProxyType({}))
    moves_with: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    shows_late: bool = False

    @property
    def takes_turns(self) -> bool:
        """Whether servers that take turns can each have their own value, so that turns measure it.

        A pool of huge pages has room for the pages of several. Of every other file that does not count at
        once, or takes the kernel long to change, one server would measure what another has left. How CPUs
        idle is the same for all servers of a measurement, which says in which state its figures hold.
        """
        is_of_server = not self.files
        is_pool = all(kind_of(path) == HUGE_PAGES for path in self.files)
        is_idling = len(idling_files(self.files)) == len(self.files)
        is_switched = self.is_instant and self.switch_s <= _LONGEST_SWITCH_S
        return is_of_server or is_pool or is_idling or is_switched

    @property
    def watched(self) -> tuple[str, ...]:
        """The files of which one at least has to be there, for the lever to say anything."""
        return self.files or self.reads


class State(StrEnum):
    """Whether a lever is in use on the server as found."""

    ABSENT = "absent"  # this server has no such thing
    OFF = "off"  # everything at the default
    PARTIAL = "partial"
    ON = "on"
    UNKNOWN = "unknown"  # a fact is missing without which nobody can tell


@dataclass(frozen=True)
class Detected:
    """A lever's state, with the values found."""

    state: State
    detail: str
