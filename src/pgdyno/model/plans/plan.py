"""A plan: ordered, reversible changes for one host and server, with reasons and risks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum

from pgdyno.host.msr import register_of


class Layer(StrEnum):
    """The five layers of the stack, outermost first."""

    APPLICATION = "application"
    SYSTEM = "system"
    COMPILER = "compiler"
    MICROARCHITECTURE = "microarchitecture"
    HARDWARE = "hardware"


class Risk(StrEnum):
    """Risks of a change, in increasing order."""

    SAFE = "safe"
    SHARED = "shared"  # it concerns everything else that runs on the machine
    RESTART = "restart"
    REBOOT = "reboot"


class Effect(StrEnum):
    """Requirements for a change to become effective."""

    IMMEDIATE = "immediate"
    RELOAD = "reload"
    RESTART = "restart"
    REBUILD = "rebuild"
    REBOOT = "reboot"


SETTING = "setting"
PER_APPLICATION = frozenset({"plan_cache_mode"})
"""Settings that suit some statements and harm others: planned for scratch servers, never applied."""
SERVER, PROCESS = "server", "process"
KERNEL, HUGE_PAGES, MSR = "kernel", "huge_pages", "msr"
PERSISTED_FILE, ACCOUNT = "persisted_file", "account"
CACHE_MOUNT, CACHE_GROUP = "cache_mount", "cache_group"
CACHE_KINDS = (CACHE_MOUNT, CACHE_GROUP)
"""Kinds of changes that divide the processor's caches, see ``host/cache_allocation.py``."""
HOST_KINDS = (KERNEL, HUGE_PAGES, MSR, *CACHE_KINDS, PERSISTED_FILE, ACCOUNT)
"""Kinds of changes that are made on the machine: they concern everything that runs there."""
PG_CTL_OPTIONS, PROGRAM_LINK = "pg_ctl_options", "program_link"
PROGRAM_KINDS = (PG_CTL_OPTIONS, PROGRAM_LINK)
"""Kinds of changes that choose the programs which run a server from its next start on."""


def kind_of(key: str) -> str:
    """Return the kind of change that sets a file of the kernel, or a register of a CPU."""
    if register_of(key) is not None:
        return MSR
    return HUGE_PAGES if key.endswith("/nr_hugepages") else KERNEL


@dataclass(frozen=True)
class Change:
    """One reversible step: ``key`` of ``kind`` becomes ``value``.

    ``kind`` names the journal's writer that can read, write and restore it: ``setting`` for a PostgreSQL
    setting, whose key is its name; ``kernel`` and ``huge_pages`` for files of the running kernel, whose key
    is the path; ``msr`` for a register of a CPU; ``cache_mount`` and ``cache_group`` divide the processor's
    caches; ``persisted_file`` for a file
    that sets such values when the machine starts, which is no lever's: ``apply --persist`` makes it of a
    plan; ``account`` for the user that ``setup --account`` makes, which is no lever's either. ``process`` is
    how a server's program is started, whose key is a variant's: measured, never applied.
    ``server`` is another build of PostgreSQL, by its name: measured, never applied. What applies one is
    ``pg_ctl_options``, the line of that name in a pg_ctl.conf of Debian's, whose key is that file's path; or
    ``program_link``, a symbolic link to an installation, by the link's path.
    """

    lever: str
    kind: str
    key: str
    current: str | None  # as displayed to people; None = unset or unknown
    value: str
    effect: Effect


@dataclass(frozen=True)
class PlanLine:
    """A change with everything a DBA wants to know before agreeing to it."""

    change: Change
    layer: Layer
    reason: str  # with this host's numbers
    evidence: str  # where the rule comes from: manual page, study, measurement
    risk: Risk
    undo: str
    touches_wakeups: bool = False  # its worth depends on how idle CPUs are woken


@dataclass(frozen=True)
class Skipped:
    """A lever that was considered and left alone, and why.

    ``unit_lines`` are what the server's systemd unit could say to try it: a server gets it when it starts.
    """

    lever: str
    reason: str
    unit_lines: tuple[str, ...] = ()


REFUSED_ABOVE = 0.85
"""Share of the memory limit that a plan's worst case may need: the rest is the kernel's and its cache's."""


@dataclass(frozen=True)
class MemoryItem:
    """One addend of the memory proof."""

    name: str
    formula: str
    size_bytes: int


@dataclass(frozen=True)
class MemoryProof:
    """Worst-case memory against the smallest limit; refused above ``REFUSED_ABOVE``."""

    items: tuple[MemoryItem, ...]
    limit_bytes: int
    limit_source: str

    @property
    def total_bytes(self) -> int:
        """The sum of all items."""
        return sum(item.size_bytes for item in self.items)

    @property
    def share(self) -> float:
        """The worst case as a share of the limit."""
        return self.total_bytes / self.limit_bytes


@dataclass(frozen=True)
class Finding:
    """Something the user must know about the server as found, e.g. fsync=off."""

    severity: str  # "danger", "warning", "note"
    message: str
    hint: str


@dataclass(frozen=True)
class Plan:
    """Changes that advise proposes and apply makes, in this order.

    ``unmeasured`` are those that it would make besides, had anything measured them: servers that take turns
    cannot differ in them, because the machine has one value.
    """

    lines: tuple[PlanLine, ...]
    skipped: tuple[Skipped, ...]
    findings: tuple[Finding, ...]
    memory_proof: MemoryProof | None  # None when the limit is unknown; the skip reasons say so
    unmeasured: tuple[PlanLine, ...] = ()

    @property
    def needs_restart(self) -> bool:
        """Whether any change takes a restart of the server."""
        return any(line.change.effect is Effect.RESTART for line in self.lines)

    @property
    def touches_wakeups(self) -> bool:
        """Whether its gain depends on CPU idling: then it is also measured as booted."""
        return any(line.touches_wakeups for line in self.lines)

    @property
    def host_changes(self) -> tuple[Change, ...]:
        """The planned changes on the machine itself."""
        return tuple(line.change for line in self.lines if line.change.kind in HOST_KINDS)

    @property
    def programs(self) -> tuple[Change, ...]:
        """The planned changes to the selection of the server's programs."""
        return tuple(line.change for line in self.lines if line.change.kind in PROGRAM_KINDS)

    @property
    def server(self) -> str | None:
        """The planned build of PostgreSQL; None: the one that there is."""
        return next((line.change.value for line in self.lines if line.change.kind == SERVER), None)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers in which anything is planned, outermost first."""
        planned = {line.layer for line in self.lines}
        return tuple(layer for layer in Layer if layer in planned)

    def of_layers(self, layers: Collection[Layer]) -> Plan:
        """Return the plan reduced to these layers."""
        return replace(self, lines=tuple(line for line in self.lines if line.layer in layers))

    def without_keys(self, keys: Collection[str]) -> Plan:
        """Return the plan without the changes of these settings, files or registers."""
        return replace(self, lines=tuple(line for line in self.lines if line.change.key not in keys))

    def without(self, lever: str) -> Plan:
        """Return the plan without the changes of this lever."""
        return replace(self, lines=tuple(line for line in self.lines if line.change.lever != lever))

    @property
    def values(self) -> dict[str, str]:
        """Everything that is planned but a build, by the keys of variants."""
        kinds = (SETTING, PROCESS, *HOST_KINDS)
        return {line.change.key: line.change.value for line in self.lines if line.change.kind in kinds}

    @property
    def settings(self) -> dict[str, str]:
        """The planned PostgreSQL settings by name."""
        return {line.change.key: line.change.value for line in self.lines if line.change.kind == SETTING}


@dataclass(frozen=True)
class LeverFinding:
    """A lever's state with the values read, and its change or the reason for none.

    ``state`` is one of ``plan.engine.metadata.State``.
    """

    state: str
    detail: str
    lines: tuple[PlanLine, ...]
    left_alone: str | None


@dataclass(frozen=True)
class LeverEntry:
    """A lever of the catalogue; ``finding`` is None where no server was reached.

    ``maturity`` is one of ``plan.engine.metadata.Maturity``; ``page`` is its documentation as plain text.
    """

    name: str
    title: str
    layer: Layer
    maturity: str
    risk: Risk
    page: str
    finding: LeverFinding | None
