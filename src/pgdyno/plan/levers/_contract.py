"""The contract of every lever under ``plan/levers/<layer>/``, and the facts available to it.

A lever file has a docstring with the headings in ``HEADINGS``, and three names:

``LEVER``
    its metadata.
``detect(ctx) -> Detected``
    what is there now; changes nothing.
``plan(ctx) -> Sequence[PlanLine] | Skipped``
    pure: equal contexts give equal plans, and on a server that already has the plan, none.

Levers that change nothing are rows of a table instead: ``CHECKS`` of a file called ``checked_…``.
Lever files import ``model`` and this module only, which passes on what they need of others. A fact that a
lever cannot do without stands in ``LEVER.needs``; where it is unknown the lever is skipped with the reason,
so that ``plan`` never guesses.
Applying and undoing are not a lever's: the journal does both for all levers.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

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
from pgdyno.plan.engine.metadata import HEADINGS, Detected, Goal, Lever, Maturity, Need, State
from pgdyno.plan.engine.resources import HugePages, StorageKind, is_virtual
from pgdyno.postgres.guc import Guc, format_bytes

__all__ = [
    "GB", "HEADINGS", "KB", "MB", "PROCESS", "REFUSED_ABOVE", "SERVER", "WORTH_A_CHANGE",
    "Change", "Check", "Detected", "Effect",
    "Goal", "HugePages", "Layer", "Lever", "LeverModule", "Maturity", "Need",
    "PlanContext", "PlanLine", "Probe", "Risk", "Skipped", "State", "StorageKind",
    "choices_in", "detect_files", "detect_settings", "display_name", "format_bytes",
    "is_virtual", "lines_or_skipped", "matches", "owner_of", "propose", "propose_file",
    "reserved_connections", "shared_memory_bytes", "sysctl_path", "why_absent",
]  # fmt: skip

_PAGE_WIDTH = 100
KB, MB, GB = 1 << 10, 1 << 20, 1 << 30
DEBUGFS = "/sys/kernel/debug"

WORTH_A_CHANGE = 1.5
"""Memory is raised only by this factor or more: less is not noticed, and since the memory proof is an
estimate, a plan made again with the restarted server's own figures would differ by a hair."""


class LeverModule(Protocol):
    """A lever, as ``load`` returns it: a file, or a check."""

    __doc__: str | None

    @property
    def LEVER(self) -> Lever:  # noqa: N802 — as files call it
        """The metadata."""
        ...

    def detect(self, ctx: PlanContext) -> Detected:
        """Return the present state."""
        ...

    def plan(self, ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
        """Return the changes, or the reason for none."""
        ...


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


def propose_file(  # noqa: PLR0913 — what a line says, by name
    ctx: PlanContext,
    lever: Lever,
    path: str,
    value: str,
    *,
    reason: str,
    evidence: str,
    effect: Effect = Effect.IMMEDIATE,
) -> PlanLine | None:
    """Return the line that writes ``value`` into a file of the kernel; None if it is there or has no file.

    ``effect`` is when the server has something of it.
    """
    current = ctx.value(path)
    if current is None or is_same(path, current, value):
        return None
    return PlanLine(
        change=Change(lever.name, kind_of(path), path, current, value, effect),
        layer=lever.layer,
        reason=reason,
        evidence=evidence,
        risk=lever.risk,
        undo=f"pgdyno revert; by hand: {_way_back(ctx, path, current)}; "
        "a restart of the machine forgets it too",
    )


def _way_back(ctx: PlanContext, path: str, current: str) -> str:
    """Return the manual undo instruction, for the coupled file if that is in force."""
    other = COUPLED.get(path)
    if current == "0" and other is not None and (in_force := ctx.value(other)) is not None:
        return f"write {in_force} into {other}"
    return f"write {current} into {path}"


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


@dataclass(frozen=True)
class Check:
    """A lever that changes nothing: a finding on the host, beside the wanted one.

    ``found`` says what is there, and how to try something else; ``is_in_use`` whether the feature is.
    ``wanted`` says what would be better for whom, with a figure if there is one, and ``sources`` where that
    is from. ``unit_lines`` are what the server's systemd unit could say to try it.
    """

    LEVER: Lever
    found: Callable[[PlanContext], str]
    is_in_use: Callable[[PlanContext], bool]
    wanted: str
    sources: tuple[str, ...]
    unit_lines: Callable[[PlanContext], tuple[str, ...]] = lambda _: ()

    def detect(self, ctx: PlanContext) -> Detected:
        """Return the findings, and whether the feature is in use."""
        if ctx.host is None or (self.LEVER.watched and not any(map(ctx.files, self.LEVER.watched))):
            return Detected(State.ABSENT, why_absent(ctx, self.LEVER))
        if missing := ctx.unknown_need(self.LEVER):
            return Detected(State.UNKNOWN, missing)
        return Detected(State.ON if self.is_in_use(ctx) else State.OFF, self.found(ctx))

    def plan(self, ctx: PlanContext) -> Skipped:
        """Return the finding: nothing is changed."""
        return Skipped(self.LEVER.name, self.found(ctx), self.unit_lines(ctx))

    @property
    def page(self) -> str:
        """All that is known of it."""
        title = f"{self.LEVER.name}: {self.LEVER.title}; checked, and never changed."
        sources = [f"    {one}" for one in self.sources]
        return "\n".join((title, "", "Wanted:", *_indented(self.wanted), "", "References:", *sources))


def page_of(lever: LeverModule) -> str:
    """Return all that is known of a lever: a file's docstring, or the page of a check."""
    return lever.page if isinstance(lever, Check) else inspect.cleandoc(lever.__doc__ or "")


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, _PAGE_WIDTH, initial_indent="    ", subsequent_indent="    ")


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
    return "; ".join(known) or lever.without_files or f"none of {', '.join(lever.watched)} can be read here"


def detect_settings(lever: Lever) -> Callable[[PlanContext], Detected]:
    """Return ``detect`` for a lever that consists of settings."""

    def detect(ctx: PlanContext) -> Detected:
        """Find the settings with explicit values."""
        found = [ctx.settings.guc(name) for name in lever.settings if ctx.settings.has(name)]
        if not found:
            names = ", ".join(lever.settings)
            return Detected(State.ABSENT, f"PostgreSQL {ctx.server.version} has no {names}")
        changed = sum(owner_of(guc) is not None for guc in found)
        state = State.PARTIAL if changed else State.OFF
        detail = ", ".join(f"{guc.name} = {guc.display()}" for guc in found)
        return Detected(State.ON if changed == len(found) else state, detail)

    return detect
