"""The contract of every lever under ``plan/levers/<layer>/``, and the facts available to it.

A lever file has a docstring with the headings in ``HEADINGS``, and these names:

``LEVER``
    its metadata.
``plan(ctx) -> Planned``
    pure: equal contexts give equal plans. On a server that already conforms, it plans nothing.
``detect(ctx) -> Detected``
    returns the present state; read-only. Without it, ``detect_settings`` or ``detect_files``.
``concerned(ctx) -> Sequence[str]``
    for ``detect_files``, if the patterns in ``LEVER.files`` match other files too.

Levers that change nothing are rows of a table instead: ``CHECKS`` in a file named ``checked_…``.
Lever files import only ``model`` and this module, which re-exports the names they need from elsewhere. A
required fact is listed in ``LEVER.needs``. If it is unknown, the lever is skipped with the reason, and
``plan`` never guesses. Levers do not apply or undo changes: the journal does both for all levers.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Protocol, TypeAlias

from pgdyno.base.facts import Unknown
from pgdyno.host.kernel_file import COUPLED, choices_in, display_name, is_same, sysctl_path
from pgdyno.model.plans.plan import (
    PROCESS,
    REFUSED_ABOVE,
    SERVER,
    SETTING,
    Change,
    Effect,
    Layer,
    PlanLine,
    Risk,
    Skipped,
    kind_of,
)
from pgdyno.plan.engine.context import PlanContext, Probe, matches
from pgdyno.plan.engine.effective import owner_of
from pgdyno.plan.engine.memory_proof import reserved_connections, shared_memory_bytes
from pgdyno.plan.engine.metadata import HEADINGS, Detected, Goal, LeverMetadata, Maturity, Need, State
from pgdyno.plan.engine.resources import HugePages, StorageKind, is_virtual
from pgdyno.postgres.guc import Guc, format_bytes

__all__ = [
    "GB", "HEADINGS", "KB", "MB", "PROCESS", "REFUSED_ABOVE", "SERVER", "WORTH_A_CHANGE",
    "Change", "Check", "Detected", "Effect",
    "Goal", "HugePages", "Layer", "Lever", "LeverModule", "Maturity", "Need",
    "PlanContext", "PlanLine", "Planned", "Probe", "Risk", "Skipped", "State", "StorageKind",
    "choices_in", "detect_files", "detect_settings", "display_name", "format_bytes",
    "is_virtual", "matches", "owner_of",
    "reserved_connections", "shared_memory_bytes", "sysctl_path", "why_absent",
]  # fmt: skip

_PAGE_WIDTH = 100
KB, MB, GB = 1 << 10, 1 << 20, 1 << 30
DEBUGFS = "/sys/kernel/debug"

WORTH_A_CHANGE = 1.5
"""Memory is raised only by this factor or more. A smaller increase has no noticeable effect. Also, the memory
proof is an estimate: a new plan with the restarted server's own figures would differ slightly."""


Planned: TypeAlias = Sequence[PlanLine] | Skipped
"""The changes, or the reason for none."""


@dataclass(frozen=True)
class Lever(LeverMetadata):
    """A lever: its metadata, and its lines in a plan."""

    def propose(
        self, ctx: PlanContext, name: str, value: str, *, reason: str, evidence: str
    ) -> PlanLine | None:
        """Return the line that sets ``name`` to ``value``; None if it has that value or does not exist."""
        if not ctx.settings.has(name):
            return None
        guc = ctx.settings.guc(name)
        if guc.equals(value):
            return None
        owner = owner_of(guc)
        effect = Effect.RESTART if guc.needs_restart else Effect.RELOAD
        return PlanLine(
            change=Change(self.name, SETTING, name, guc.display(), value, effect),
            layer=self.layer,
            reason=reason if owner is None else f"{reason}. The present value was set {owner}",
            evidence=evidence,
            risk=Risk.RESTART if guc.needs_restart else self.risk,
            undo=_undo(guc),
        )

    def propose_file(
        self,
        ctx: PlanContext,
        path: str,
        value: str,
        *,
        reason: str,
        evidence: str,
        effect: Effect = Effect.IMMEDIATE,
    ) -> PlanLine | None:
        """Return the line that writes ``value`` to a kernel file; None if it has it or does not exist.

        ``effect`` is when the change affects the server.
        """
        current = ctx.value(path)
        if current is None or is_same(path, current, value):
            return None
        return PlanLine(
            change=Change(self.name, kind_of(path), path, current, value, effect),
            layer=self.layer,
            reason=reason,
            evidence=evidence,
            risk=self.risk,
            undo=f"pgdyno revert; by hand: {_manual_undo(ctx, path, current)}; a reboot undoes it too",
        )

    def planned(self, lines: Sequence[PlanLine | None], otherwise: str) -> Planned:
        """Return the lines that change something; without any, ``Skipped`` with the reason ``otherwise``."""
        return tuple(line for line in lines if line is not None) or self.skip(otherwise)

    def skip(self, reason: str, unit_lines: tuple[str, ...] = ()) -> Skipped:
        """Return that it plans nothing, with the reason."""
        return Skipped(self.name, reason, unit_lines)


def _undo(guc: Guc) -> str:
    effect = "restart" if guc.needs_restart else "reload"
    return f"pgdyno revert; by hand: back to {guc.display()}, then {effect}"


def _manual_undo(ctx: PlanContext, path: str, current: str) -> str:
    """Return the manual undo instruction, for the coupled file if that one is in force."""
    other = COUPLED.get(path)
    if current == "0" and other is not None and (in_force := ctx.value(other)) is not None:
        return f"write {in_force} to {other}"
    return f"write {current} to {path}"


class LeverModule(Protocol):
    """A lever as returned by ``load``: that of a file, or a check."""

    @property
    def LEVER(self) -> Lever:  # noqa: N802 — the name in lever modules
        """The metadata."""
        ...

    @property
    def page(self) -> str:
        """The documentation page."""
        ...

    def detect(self, ctx: PlanContext, /) -> Detected:
        """Return the present state."""
        ...

    def plan(self, ctx: PlanContext, /) -> Planned:
        """Return the changes, or the reason for none."""
        ...


def detect_files(
    lever: Lever,
    plan: Callable[[PlanContext], Planned],
    concerned: Callable[[PlanContext], Sequence[str]] | None = None,
) -> Callable[[PlanContext], Detected]:
    """Return ``detect`` for a lever of kernel files: it is in use if it would change none of them.

    ``concerned`` returns the relevant paths if the patterns match more, for example only the server's disks.
    """

    def detect(ctx: PlanContext) -> Detected:
        """Return the values found, and whether the lever would change any."""
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


@dataclass(frozen=True)
class Check:
    """A lever that changes nothing: it compares a finding on the host with the recommended state.

    ``found`` describes the finding and how to try something else; ``is_in_use`` is whether the feature is in
    use. ``wanted`` is the recommendation, with its conditions and figures if known, and ``sources`` are its
    sources. ``unit_lines`` are lines for the server's systemd unit to try it.
    """

    LEVER: Lever
    found: Callable[[PlanContext], str]
    is_in_use: Callable[[PlanContext], bool]
    wanted: str
    sources: tuple[str, ...]
    unit_lines: Callable[[PlanContext], tuple[str, ...]] = lambda _: ()

    def detect(self, ctx: PlanContext) -> Detected:
        """Return the finding, and whether the feature is in use."""
        if ctx.host is None or (self.LEVER.watched and not any(map(ctx.files, self.LEVER.watched))):
            return Detected(State.ABSENT, why_absent(ctx, self.LEVER))
        if missing := ctx.unknown_need(self.LEVER):
            return Detected(State.UNKNOWN, missing)
        return Detected(State.ON if self.is_in_use(ctx) else State.OFF, self.found(ctx))

    def plan(self, ctx: PlanContext) -> Skipped:
        """Return the finding; a check changes nothing."""
        return self.LEVER.skip(self.found(ctx), self.unit_lines(ctx))

    @property
    def page(self) -> str:
        """The documentation page."""
        title = f"{self.LEVER.name}: {self.LEVER.title}; checked, never changed."
        sources = [f"    {one}" for one in self.sources]
        return "\n".join((title, "", "Wanted:", *_indented(self.wanted), "", "References:", *sources))


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, _PAGE_WIDTH, initial_indent="    ", subsequent_indent="    ")


def why_absent(ctx: PlanContext, lever: Lever) -> str:
    """Return why none of a lever's kernel files is available."""
    if ctx.host is None:
        return "the server is not proven to run on an inspected host"
    missing: dict[str, list[str]] = {}
    for path in lever.watched:
        if "*" not in path and isinstance(why := ctx.file(path).value, Unknown):
            missing.setdefault(why.reason, []).append(path)
    known = [f"{', '.join(paths)}: {reason}" for reason, paths in missing.items()]
    is_closed = any(path.startswith(DEBUGFS) for path in lever.watched) and not ctx.files(f"{DEBUGFS}/*/*")
    if is_closed:
        known.append(f"debugfs must be mounted on {DEBUGFS}, and only root can read it")
    return "; ".join(known) or lever.without_files or f"none of {', '.join(lever.watched)} is readable here"


def detect_settings(lever: Lever) -> Callable[[PlanContext], Detected]:
    """Return ``detect`` for a lever of settings: explicitly set ones count as in use."""

    def detect(ctx: PlanContext) -> Detected:
        """Return the values found, and how many of them were set explicitly."""
        found = [ctx.settings.guc(name) for name in lever.settings if ctx.settings.has(name)]
        if not found:
            names = ", ".join(lever.settings)
            return Detected(State.ABSENT, f"PostgreSQL {ctx.server.version} has no {names}")
        changed = sum(owner_of(guc) is not None for guc in found)
        state = State.PARTIAL if changed else State.OFF
        detail = ", ".join(f"{guc.name} = {guc.display()}" for guc in found)
        return Detected(State.ON if changed == len(found) else state, detail)

    return detect


@dataclass(frozen=True)
class FileLever:
    """The lever of a file. Its page is the file's docstring."""

    LEVER: Lever
    page: str
    detect: Callable[[PlanContext], Detected]
    plan: Callable[[PlanContext], Planned]


def levers_of(module: ModuleType) -> Sequence[LeverModule]:
    """Return a file's lever, with the usual ``detect`` if the file has none; or its checks."""
    if hasattr(module, "CHECKS"):
        checks: Sequence[Check] = module.CHECKS
        return checks
    lever: Lever = module.LEVER
    usual = (
        detect_files(lever, module.plan, getattr(module, "concerned", None))
        if lever.files
        else detect_settings(lever)
    )
    page = inspect.cleandoc(module.__doc__ or "")
    return (FileLever(lever, page, getattr(module, "detect", usual), module.plan),)
