"""Metadata and findings of levers: records without behaviour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from pgdyno.host.cpu_idling import idling_files
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
    """The maturity of a lever."""

    PREVIEW = "preview"  # the rule is reasoned, pgdyno's authors have not measured it yet
    STABLE = "stable"
    RETIRED = "retired"


class Need(StrEnum):
    """A fact that a lever requires: it is skipped if the fact is unknown."""

    MEMORY = "memory_bytes"
    CPUS = "cpu_count"
    STORAGE = "storage"
    DATA_SIZE = "data_bytes"
    FREE_DISK = "free_disk_bytes"
    DISKS = "disks"


_LONGEST_SWITCH_S = 0.005  # 10 % of the shortest usual turn


@dataclass(frozen=True)
class LeverMetadata:
    """A lever's metadata. ``order_after`` maps each lever that must run earlier to the reason.

    ``settings`` and ``files`` are everything the lever may change; each belongs to exactly one lever. Files
    are paths of kernel files, such as ``/proc/sys/vm/swappiness``, patterns in which ``*`` matches one path
    component, or registers: see ``host/kernel_file.py`` and ``host/msr.py``. ``reads`` are files that it
    only reads. ``facts`` are dotted names of required facts: ``host.cpu.mitigations``,
    ``server.program.atomics``. A lever that may change nothing only reports: its plan is always ``Skipped``,
    with its findings and advice.

    ``is_instant``: a written value takes effect immediately for all processes, and leaves no residue after
    the next write. ``switch_s`` is the time the kernel takes to apply it.
    ``touches_wakeups``: its effect depends on CPU idle states, so it is also measured with those as booted.
    ``process`` are keys for starting a server's program; the lever may plan them for scratch servers.
    ``chooses_server``: it may plan a different build of PostgreSQL. ``divides_caches``: it may partition the
    processor's caches. ``is_named_only``: it is planned only if named, and last. ``without_files`` explains
    what the absence of all its files means, where known.

    ``tried`` are additional values of its settings for a search: strings are literal, numbers are multiples
    of the planned value, or of the present value if none is planned. ``moves_with`` maps a setting that is
    effective only together with another of the lever's settings to the latter: a search sets both or neither.
    ``shows_late``: its effect shows only over checkpoint cycles or vacuums, not in blocks of seconds, so a
    search keeps the planned value.
    """

    name: str
    title: str
    layer: Layer
    risk: Risk
    maturity: Maturity = Maturity.PREVIEW
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
        """Whether servers that take turns can each have their own value, so that turns measure its effect.

        A pool of huge pages can hold the pages of several servers. Other kernel files must take effect
        immediately and switch quickly, or one server would measure the residue of another's value. CPU idle
        states are the same for all servers of a measurement, which states them with its figures.
        """
        is_of_server = not self.files
        is_pool = all(kind_of(path) == HUGE_PAGES for path in self.files)
        is_idling = len(idling_files(self.files)) == len(self.files)
        is_switched = self.is_instant and self.switch_s <= _LONGEST_SWITCH_S
        return is_of_server or is_pool or is_idling or is_switched

    @property
    def watched(self) -> tuple[str, ...]:
        """The files of which at least one must exist for the lever to apply."""
        return self.files or self.reads


class State(StrEnum):
    """Whether a lever is in use on the server as found."""

    ABSENT = "absent"  # not available on this server
    OFF = "off"  # everything at the default
    PARTIAL = "partial"
    ON = "on"
    UNKNOWN = "unknown"  # a required fact is missing


@dataclass(frozen=True)
class Detected:
    """A lever's state, with the values found."""

    state: State
    detail: str
