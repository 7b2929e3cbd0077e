"""A plan: ordered, reversible changes for one host and server, with reasons and risks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
    SHARED = "shared"  # it affects everything else that runs on the machine
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
"""Settings that benefit some statements and harm others: planned for scratch servers, never applied."""
SERVER, PROCESS = "server", "process"
KERNEL, HUGE_PAGES, MSR = "kernel", "huge_pages", "msr"
PERSISTED_FILE, ACCOUNT = "persisted_file", "account"
CACHE_MOUNT, CACHE_GROUP = "cache_mount", "cache_group"
CACHE_KINDS = (CACHE_MOUNT, CACHE_GROUP)
"""Kinds of changes that divide the processor's caches, see ``host/cache_allocation.py``."""
HOST_KINDS = (KERNEL, HUGE_PAGES, MSR, *CACHE_KINDS, PERSISTED_FILE, ACCOUNT)
"""Kinds of changes made on the machine: they affect everything that runs there."""
PG_CTL_OPTIONS, PROGRAM_LINK = "pg_ctl_options", "program_link"
PROGRAM_KINDS = (PG_CTL_OPTIONS, PROGRAM_LINK)
"""Kinds of changes that select the programs of a server from its next start on."""


def kind_of(key: str) -> str:
    """Return the kind of change for a kernel file or a CPU register."""
    if register_of(key) is not None:
        return MSR
    return HUGE_PAGES if key.endswith("/nr_hugepages") else KERNEL


@dataclass(frozen=True)
class Change:
    """One reversible step: ``key`` of ``kind`` becomes ``value``.

    ``kind`` selects the journal's writer that can read, write and restore it:

        setting             a PostgreSQL setting; the key is its name
        kernel, huge_pages  a file of the running kernel; the key is its path
        msr                 a register of a CPU
        cache_mount, cache_group   division of the processor's caches
        persisted_file      a file that sets such values at boot, made by ``apply --persist``, not by a lever
        account             the user created by ``setup --account``, not by a lever
        process             how the server's program is started; the key is a variant's; never applied
        server              another build of PostgreSQL, by name; never applied
        pg_ctl_options      the line of that name in Debian's pg_ctl.conf, which applies a build; the key is
                            the file's path
        program_link        a symbolic link to an installation, which applies a build; the key is its path
    """

    lever: str
    kind: str
    key: str
    current: str | None  # as displayed; None = unset or unknown
    value: str
    effect: Effect


@dataclass(frozen=True)
class PlanLine:
    """A change with all that a DBA needs to decide on it."""

    change: Change
    layer: Layer
    reason: str  # with this host's figures
    evidence: str  # source of the rule: manual page, study, measurement
    risk: Risk
    undo: str
    touches_wakeups: bool = False  # its gain depends on how idle CPUs are woken


@dataclass(frozen=True)
class Skipped:
    """A lever that was considered but not used, with the reason.

    ``unit_lines`` are lines for the server's systemd unit with which it can be tried from the next start on.
    """

    lever: str
    reason: str
    unit_lines: tuple[str, ...] = ()


REFUSED_ABOVE = 0.85
"""Largest worst case of a plan, as a share of the memory limit: the kernel and its cache need the rest."""


@dataclass(frozen=True)
class MemoryItem:
    """One term of the memory proof."""

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
    """An important observation about the server as found, e.g. fsync=off."""

    severity: str  # "danger", "warning", "note"
    message: str
    hint: str


@dataclass(frozen=True)
class Plan:
    """Changes that ``advise`` proposes and ``apply`` makes, in this order.

    ``unmeasured`` are further changes, left out because they were not measured: interleaved servers cannot
    differ in them, because the machine has a single value.
    """

    lines: tuple[PlanLine, ...]
    skipped: tuple[Skipped, ...]
    findings: tuple[Finding, ...]
    memory_proof: MemoryProof | None  # None when the limit is unknown; skip reasons state it
    unmeasured: tuple[PlanLine, ...] = ()

    @property
    def needs_restart(self) -> bool:
        """Whether any change takes a restart of the server."""
        return any(line.change.effect is Effect.RESTART for line in self.lines)

    @property
    def touches_wakeups(self) -> bool:
        """Whether its gain depends on CPU idling; if so, it is also measured with CPU idling as booted."""
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
        """The planned build of PostgreSQL; None: the current one."""
        return next((line.change.value for line in self.lines if line.change.kind == SERVER), None)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers with planned changes, outermost first."""
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
        """All planned values except a build, by the keys of variants."""
        kinds = (SETTING, PROCESS, *HOST_KINDS)
        return {line.change.key: line.change.value for line in self.lines if line.change.kind in kinds}

    @property
    def settings(self) -> dict[str, str]:
        """The planned PostgreSQL settings by name."""
        return {line.change.key: line.change.value for line in self.lines if line.change.kind == SETTING}


@dataclass(frozen=True)
class LeverFinding:
    """A lever's state with the values read, and its changes or the reason for none.

    ``state`` is one of ``plan.engine.metadata.State``.
    """

    state: str
    detail: str
    lines: tuple[PlanLine, ...]
    left_alone: str | None


@dataclass(frozen=True)
class LeverEntry:
    """A lever of the catalogue; ``finding`` is None without a connected server.

    ``maturity`` is one of ``plan.engine.metadata.Maturity``; ``page`` is its documentation as plain text.
    """

    name: str
    title: str
    layer: Layer
    maturity: str
    risk: Risk
    page: str
    finding: LeverFinding | None


PLAN = "plan"
"""The variant with the whole plan."""

RELOAD_GAIN, RESTART_GAIN, PROGRAMS_GAIN = 0.01, 0.02, 0.05
"""The worthwhile gain of throughput, by what the plan requires. Decision 33 explains that of a reload."""

WHOLE_STACK = "whole-stack"
"""The variant with the plan and a build of PostgreSQL, if the plan alone is a separate variant."""

SETTINGS_ALONE = "plan-settings"
"""The variant with the plan's settings that suit any application, without its host layer."""

WITH_HOST = "-with-host"
"""Suffix of the name of another tool's configuration combined with the plan's host layer."""

WITHOUT = "without-"
"""Prefix of the name of the plan without a part: a layer, a lever, or settings."""

ONLY = "only-"
"""Prefix of the name of the baseline with one part of the plan."""


def without_per_application(names: Sequence[str]) -> str:
    """Return the name of the variant without per-application settings."""
    return WITHOUT + "+".join(names)


def left_out_per_application(variant: str) -> tuple[str, ...]:
    """Return the per-application settings left out of a variant; empty if it is not such a variant."""
    names = tuple(variant.removeprefix(WITHOUT).split("+"))
    return names if variant.startswith(WITHOUT) and PER_APPLICATION.issuperset(names) else ()


def applied_of(variants: Sequence[str]) -> str:
    """Return the name of the variant to apply: the plan without per-application settings, if measured."""
    return next(filter(left_out_per_application, variants), PLAN)


@dataclass(frozen=True)
class Terms:
    """Requirements of a plan, as shares: 0.05 = 5 %.

    ``min_gain`` is the worthwhile gain of throughput. On every workload, the losses are limited:
    ``max_loss`` of throughput, ``max_tail_loss`` of the mean of the slowest 5 % of transactions,
    ``max_p99_loss`` of the 99th percentile, and ``max_stretch_loss`` of the mean of the slowest 5 % while no
    other server has load. With ``looks`` above 1 the experiment may end early in favour of a plan.
    """

    min_gain: float = 0.0
    max_loss: float = 0.05
    max_tail_loss: float = 0.10
    max_p99_loss: float = 0.25
    max_stretch_loss: float = 0.50
    looks: int = 1
