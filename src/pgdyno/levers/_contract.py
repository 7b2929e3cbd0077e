"""What a lever is, and what it sees: the contract of every file under ``levers/<layer>/``.

A lever file has a docstring with the headings in ``HEADINGS``, and four names:

``LEVER``
    its metadata.
``detect(ctx) -> Detected``
    what is there now; changes nothing.
``plan(ctx) -> Sequence[PlanLine] | Skipped``
    pure: equal contexts give equal plans, and on a server that already has the plan, none.
``verify(ctx) -> Sequence[Evidence]``
    after the change, from another source than the one written.

Lever files import ``model`` and this module only. A fact that a lever cannot do without stands in
``LEVER.needs``; where it is unknown the lever is skipped with the reason, so that ``plan`` never guesses.
Applying and undoing are not a lever's: the journal does both for all levers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from pgdyno.levers.effective import EffectiveSettings, owner_of
from pgdyno.levers.memory_proof import (
    PLANNED_BELOW,
    memory_proof,
    reserved_connections,
    shared_memory_bytes,
)
from pgdyno.levers.resources import HugePages, Resources, StorageKind, is_virtual
from pgdyno.model.facts import Fact, Unknown, unknown
from pgdyno.model.guc import Guc, format_bytes
from pgdyno.model.guc import readable_bytes as readable
from pgdyno.model.host import BlockDevice, Host
from pgdyno.model.kernel_file import choices_in, display_name, is_same, sysctl_path, value_in
from pgdyno.model.plan import (
    HUGE_PAGES,
    KERNEL,
    REFUSED_ABOVE,
    SETTING,
    Change,
    Effect,
    Layer,
    MemoryProof,
    PlanLine,
    Risk,
    Skipped,
)
from pgdyno.model.server import Server

__all__ = [
    "GB", "HEADINGS", "HUGE_PAGES", "KB", "MB", "REFUSED_ABOVE", "WORTH_A_CHANGE",
    "Detected", "Evidence", "Goal", "HugePages", "Layer", "Lever", "LeverModule", "Maturity", "Need",
    "PlanContext", "PlanLine", "Probe", "Risk", "Skipped", "State", "StorageKind",
    "choices_in", "detect_files", "detect_report", "detect_settings", "display_name", "format_bytes",
    "is_virtual", "lines_or_skipped", "matches", "owner_of", "propose", "propose_file", "readable",
    "reserved_connections", "shared_memory_bytes", "sysctl_path", "verify_files", "verify_settings",
    "why_absent",
]  # fmt: skip

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30
DEBUGFS = "/sys/kernel/debug"
T = TypeVar("T")

WORTH_A_CHANGE = 1.5
"""Memory is raised only by this factor or more: less is not noticed, and since the memory proof is an
estimate, a plan made again with the restarted server's own figures would differ by a hair."""

HEADINGS = (
    "What it does",
    "Why it helps",
    "When it hurts",
    "How it is verified",
    "How it is undone",
    "Evidence",
    "References",
)


class Goal(StrEnum):
    """What the server is tuned for."""

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


@dataclass(frozen=True)
class Lever:
    """A lever's metadata. ``order_after`` gives, per lever that goes first, the reason.

    ``settings`` and ``files`` are all that it may touch, and each belongs to one lever. Files are paths of
    the kernel's, ``/proc/sys/vm/swappiness``, or patterns in which ``*`` stands for one name, or registers,
    see ``model/msr.py``; ``reads`` are those that it looks at besides. ``facts`` are dotted names of what it
    cannot do without: ``host.cpu.mitigations``, ``server.program.atomics``. A lever that may touch nothing
    reports: its plan is always ``Skipped``, with what was found and what one could do.
    """

    name: str
    title: str
    layer: Layer
    risk: Risk
    maturity: Maturity
    settings: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    facts: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    order_after: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

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


@dataclass(frozen=True)
class Evidence:
    """What was asked for and what the running server says, read from ``source``."""

    setting: str
    requested: str
    effective: str
    source: str
    is_met: bool


class LeverModule(Protocol):
    """A lever file, as ``load`` returns it."""

    LEVER: Lever
    __doc__: str | None

    def detect(self, ctx: PlanContext) -> Detected:
        """Say what is there now."""
        ...

    def plan(self, ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
        """Say what to change, or why nothing."""
        ...

    def verify(self, ctx: PlanContext) -> Sequence[Evidence]:
        """Read back what was changed."""
        ...


class Probe(Protocol):
    """Asks the server's own programs what cannot be known otherwise. Equal questions have equal answers."""

    def shared_memory_bytes(self, settings: Mapping[str, str]) -> Fact[int]:
        """Return the size of the shared memory segment of a server with these settings changed."""
        ...


@dataclass(frozen=True)
class PlanContext:
    """Everything a lever may look at. ``host`` is None unless the server is proven to run on it.

    ``planned_files`` are what levers before this one write into the kernel's files, by path.
    ``may_change_host`` False: whoever asks is not root, and wants what can be done without.
    """

    settings: EffectiveSettings
    resources: Resources
    connections: int | None = None  # as stated by the user
    host: Host | None = None
    goal: Goal = Goal.OLTP
    planned_files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    probe: Probe | None = None
    may_change_host: bool = True

    @property
    def server(self) -> Server:
        """The server as found."""
        return self.settings.server

    def unknown_need(self, lever: Lever) -> str | None:
        """Return why a fact that the lever needs is unknown; None if all are known."""
        needs: list[Fact[object]] = [getattr(self.resources, need.value) for need in lever.needs]
        for fact in needs:
            if isinstance(fact.value, Unknown):
                return fact.value.reason
        for fact in map(self.fact, lever.facts):
            if isinstance(fact.value, Unknown):
                return f"not available: {fact.source}: {fact.value.reason}"
        return None

    def fact(self, name: str) -> Fact[Any]:
        """Return a fact by its dotted name; none is known of a host that the server may not run on."""
        if self.host is None:
            return unknown("the server is not proven to run on a host that was inspected", name)
        found: Fact[Any] = attrgetter(name)(self)
        return found

    def known(self, name: str) -> Any:
        """Return the value of a fact that the lever declares in ``LEVER.facts``."""
        return _known(self.fact(name))

    @staticmethod
    def why_unknown(fact: Fact[T]) -> str:
        """Return why a fact has no value."""
        return fact.value.reason if isinstance(fact.value, Unknown) else f"read from {fact.source}"

    @property
    def memory_bytes(self) -> int:
        """The smallest memory limit."""
        return _known(self.resources.memory_bytes)

    @property
    def cpu_count(self) -> float:
        """CPUs the server may use."""
        return _known(self.resources.cpu_count)

    @property
    def storage(self) -> StorageKind:
        """What the data directory lies on."""
        return _known(self.resources.storage)

    @property
    def data_bytes(self) -> int:
        """Size of all databases."""
        return _known(self.resources.data_bytes)

    @property
    def free_disk_bytes(self) -> int:
        """Free space where the data directory lies."""
        return _known(self.resources.free_disk_bytes)

    @property
    def disks(self) -> tuple[BlockDevice, ...]:
        """The disk of the data directory, and after it that of the WAL if it is another."""
        return _known(self.resources.disks)

    @property
    def default_work_mem(self) -> str:
        """What sessions keep however much others take: levers that come before work_mem reckon with it."""
        guc = self.settings.guc("work_mem")
        return guc.boot_val or guc.setting

    def file(self, path: str) -> Fact[str]:
        """Return the first line of a file of the kernel as it was found."""
        found = None if self.host is None else self.host.kernel_files.get(path)
        return unknown("the host was not inspected", path) if found is None else found

    def value(self, path: str) -> str | None:
        """Return what the kernel uses, as planned or found; None where it has no such file."""
        text = self.file(path).or_none()
        return None if text is None else self.planned_files.get(path, value_in(text))

    def files(self, pattern: str) -> tuple[str, ...]:
        """Return the files that a pattern stands for on this host."""
        known = {} if self.host is None else self.host.kernel_files
        return tuple(path for path, fact in known.items() if fact.is_known and matches(path, pattern))

    def proof(self, **planned: str) -> MemoryProof | None:
        """Return the memory proof with more values planned."""
        return memory_proof(self.settings.plus(planned), self.resources)

    def largest_that_fits(self, name: str, sizes_bytes: Sequence[int], **planned: str) -> int | None:
        """Return the first of ``sizes_bytes``, largest first, whose worst case stays in ``PLANNED_BELOW``."""

        def fits(size_bytes: int) -> bool:
            proof = self.proof(**{**planned, name: format_bytes(size_bytes)})
            return proof is None or proof.share <= PLANNED_BELOW

        first = bisect_left(sizes_bytes, True, key=fits)  # noqa: FBT003 — what is looked for
        return sizes_bytes[first] if first < len(sizes_bytes) else None


def _known(fact: Fact[T]) -> T:
    """Return a fact's value. Raises: LookupError if the lever forgot to declare its need."""
    known = fact.or_none()
    if known is None:
        raise LookupError(f"a lever used a fact that it does not declare in LEVER.needs or .facts: {fact}")
    return known


def propose(
    ctx: PlanContext, lever: Lever, name: str, value: str, *, reason: str, evidence: str
) -> PlanLine | None:
    """Return the line that sets ``name`` to ``value``; None if it has that value or does not exist here."""
    if not ctx.settings.has(name):
        return None
    guc = ctx.settings.guc(name)
    if guc.equals(value):
        return None
    owner = owner_of(guc)
    return PlanLine(
        change=Change(
            lever=lever.name,
            kind=SETTING,
            key=name,
            current=guc.display(),
            value=value,
            effect=Effect.RESTART if guc.needs_restart else Effect.RELOAD,
        ),
        layer=lever.layer,
        reason=reason if owner is None else f"{reason}. The present value was set {owner}",
        evidence=evidence,
        risk=Risk.RESTART if guc.needs_restart else lever.risk,
        undo=_undo(guc),
    )


def _undo(guc: Guc) -> str:
    effect = "restart" if guc.needs_restart else "reload"
    return f"pgdyno revert; by hand: back to {guc.display()}, then {effect}"


def propose_file(
    ctx: PlanContext, lever: Lever, path: str, value: str, *, reason: str, evidence: str, kind: str = KERNEL
) -> PlanLine | None:
    """Return the line that writes ``value`` into a file of the kernel; None if it is there or has no file."""
    current = ctx.value(path)
    if current is None or is_same(path, current, value):
        return None
    return PlanLine(
        change=Change(lever.name, kind, path, current, value, Effect.IMMEDIATE),
        layer=lever.layer,
        reason=reason,
        evidence=evidence,
        risk=lever.risk,
        undo=f"pgdyno revert; by hand: write {current} into {path}; a restart of the machine forgets it too",
    )


def matches(path: str, pattern: str) -> bool:
    """Whether a path is what a pattern stands for, name by name."""
    names, patterns = path.split("/"), pattern.split("/")
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))


def lines_or_skipped(
    lever: Lever, lines: Sequence[PlanLine | None], otherwise: str
) -> Sequence[PlanLine] | Skipped:
    """Return the lines that change something, or say with ``otherwise`` why nothing needs to."""
    return tuple(line for line in lines if line is not None) or Skipped(lever.name, otherwise)


def detect_files(
    lever: Lever,
    plan: Callable[[PlanContext], Sequence[PlanLine] | Skipped],
    concerned: Callable[[PlanContext], Sequence[str]] | None = None,
) -> Callable[[PlanContext], Detected]:
    """Return ``detect`` for a lever that consists of files: it is in use if it would change none of them.

    ``concerned`` are the paths that matter, where patterns stand for more: those of the server's own disks.
    """

    def detect(ctx: PlanContext) -> Detected:
        """Show the values found, and see whether they are the lever's."""
        found: Sequence[str] = [path for pattern in lever.files for path in ctx.files(pattern)]
        if not found:
            return Detected(State.ABSENT, why_absent(ctx, lever))
        if missing := ctx.unknown_need(lever):
            return Detected(State.UNKNOWN, missing)
        found = found if concerned is None else concerned(ctx)
        detail = ", ".join(f"{display_name(path)} = {ctx.value(path)}" for path in found)
        outcome = plan(ctx)
        changed = 0 if isinstance(outcome, Skipped) else len(outcome)
        return Detected(State.ON if not changed else State.OFF, detail)

    return detect


def detect_report(
    lever: Lever, plan: Callable[[PlanContext], Skipped], is_in_use: Callable[[PlanContext], bool]
) -> Callable[[PlanContext], Detected]:
    """Return ``detect`` for a lever that only reports: what it has found is what its plan says."""

    def detect(ctx: PlanContext) -> Detected:
        """Say what was found, and whether the thing is in use."""
        if ctx.host is None or (lever.watched and not any(map(ctx.files, lever.watched))):
            return Detected(State.ABSENT, why_absent(ctx, lever))
        if missing := ctx.unknown_need(lever):
            return Detected(State.UNKNOWN, missing)
        return Detected(State.ON if is_in_use(ctx) else State.OFF, plan(ctx).reason)

    return detect


def why_absent(ctx: PlanContext, lever: Lever) -> str:
    """Say why none of the files that a lever looks at is there."""
    if ctx.host is None:
        return "the server is not proven to run on a host that was inspected"
    missing: dict[str, list[str]] = {}
    for path in lever.watched:
        if "*" not in path and isinstance(why := ctx.file(path).value, Unknown):
            missing.setdefault(why.reason, []).append(path)
    known = [f"{', '.join(paths)}: {reason}" for reason, paths in missing.items()]
    is_closed = any(path.startswith(DEBUGFS) for path in lever.watched) and not ctx.files(f"{DEBUGFS}/*/*")
    if is_closed:
        known.append(f"debugfs has to be mounted on {DEBUGFS}, and is root's to read")
    return "; ".join(known) or f"none of {', '.join(lever.watched)} can be read here"


def verify_files(lever: Lever) -> Callable[[PlanContext], Sequence[Evidence]]:
    """Return ``verify`` for a lever that consists of files: what the kernel shows when it is asked anew."""

    def verify(ctx: PlanContext) -> Sequence[Evidence]:
        """Compare the planned values with what the kernel shows."""
        planned = {
            path: value
            for path, value in ctx.planned_files.items()
            if any(matches(path, pattern) for pattern in lever.files)
        }
        shown = {path: value_in(ctx.file(path).or_else("")) for path in planned}
        return tuple(
            Evidence(display_name(path), value, shown[path], path, is_same(path, value, shown[path]))
            for path, value in planned.items()
        )

    return verify


def detect_settings(lever: Lever) -> Callable[[PlanContext], Detected]:
    """Return ``detect`` for a lever that consists of settings."""

    def detect(ctx: PlanContext) -> Detected:
        """See which settings somebody has set."""
        found = [ctx.settings.guc(name) for name in lever.settings if ctx.settings.has(name)]
        if not found:
            names = ", ".join(lever.settings)
            return Detected(State.ABSENT, f"PostgreSQL {ctx.server.version} has no {names}")
        changed = sum(owner_of(guc) is not None for guc in found)
        state = State.PARTIAL if changed else State.OFF
        detail = ", ".join(f"{guc.name} = {guc.display()}" for guc in found)
        return Detected(State.ON if changed == len(found) else state, detail)

    return detect


def verify_settings(lever: Lever) -> Callable[[PlanContext], Sequence[Evidence]]:
    """Return ``verify`` for a lever that consists of settings.

    What was written is a configuration file; what is read is ``pg_settings`` of the running server, in a
    context made after the change.
    """

    def verify(ctx: PlanContext) -> Sequence[Evidence]:
        """Compare the planned values with what the running server uses."""
        return tuple(
            _evidence(ctx.settings.guc(name), ctx.settings.planned[name])
            for name in lever.settings
            if name in ctx.settings.planned
        )

    return verify


def _evidence(guc: Guc, requested: str) -> Evidence:
    is_automatic = guc.check(requested) == "-1" == guc.boot_val  # the server replaces -1 by its own choice
    is_met = (is_automatic or guc.equals(requested)) and not guc.pending_restart
    return Evidence(guc.name, requested, guc.display(), "pg_settings of the running server", is_met)
