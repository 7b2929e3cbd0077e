"""A plan as terminal text: findings, changes, unmeasured changes, memory proof, and skipped levers."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from pgdyno.base import numbers
from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.plan import REFUSED_ABOVE, Effect, Finding, MemoryProof, Plan, PlanLine, Skipped

WIDTH = 100
INDENT = "    "


def plan_text(plan: Plan, *, width: int = WIDTH) -> str:
    """Return the plan as lines of at most ``width`` columns, without colours, ending with a newline."""
    sections = [
        _findings(plan.findings, width),
        _changes(plan, width),
        _unmeasured(plan, width),
        _proof(plan.memory_proof, width),
        _skipped(plan.skipped, width),
    ]
    return "\n\n".join("\n".join(lines) for section in sections if (lines := list(section))) + "\n"


def _findings(findings: tuple[Finding, ...], width: int) -> Iterator[str]:
    for finding in findings:
        yield _wrapped(f"{finding.severity.upper()}: {finding.message}", width, "")
        yield _wrapped(f"hint: {finding.hint}", width, INDENT)


def _changes(plan: Plan, width: int) -> Iterator[str]:
    if not plan.lines:
        yield "Nothing to change."
        return
    restarts = sum(line.change.effect is Effect.RESTART for line in plan.lines)
    count = len(plan.lines)
    needs = "none needs" if not restarts else f"{restarts} need{'s' if restarts == 1 else ''}"
    yield f"{count} change{'' if count == 1 else 's'}, {needs} a restart"
    names = max(len(display_name(line.change.key)) for line in plan.lines)
    for line in plan.lines:
        yield ""
        yield from _change(line, names, width)


def _unmeasured(plan: Plan, width: int) -> Iterator[str]:
    if not plan.unmeasured:
        return
    yield _wrapped(
        "Not measured, and left as found: the machine has only one value, so servers cannot take turns with "
        "different ones (--unmeasured changes them too)",
        width,
        "",
    )
    names = max(len(display_name(line.change.key)) for line in plan.unmeasured)
    for line in plan.unmeasured:
        yield ""
        yield from _change(line, names, width)


def _change(line: PlanLine, names: int, width: int) -> Iterator[str]:
    change = line.change
    yield (
        f"{display_name(change.key):<{names}}  {change.current or 'not set'} → {change.value}"
        f"   [{change.effect}, risk: {line.risk}]"
    )
    yield _wrapped(f"why:    {line.reason}", width, INDENT)
    yield _wrapped(f"source: {line.evidence}", width, INDENT)
    yield _wrapped(f"undo:   {line.undo}", width, INDENT)


def _proof(proof: MemoryProof | None, width: int) -> Iterator[str]:
    if proof is None:
        yield "Worst-case memory: not computed, the memory limit is not known"
        return
    yield (
        f"Worst-case memory: {numbers.size(proof.total_bytes)} of {numbers.size(proof.limit_bytes)}, "
        f"{numbers.share(proof.share, 0)} (above {numbers.share(REFUSED_ABOVE)} is refused; limit from "
        f"{proof.limit_source})"
    )
    for item in proof.items:
        yield _wrapped(f"{numbers.size(item.size_bytes):>9}  {item.name}: {item.formula}", width, INDENT)


def _skipped(skipped: tuple[Skipped, ...], width: int) -> Iterator[str]:
    if skipped:
        yield "Left alone"
    for one in skipped:
        yield _wrapped(f"{one.lever}: {one.reason}", width, INDENT)


def _wrapped(text: str, width: int, indent: str) -> str:
    return textwrap.fill(
        text, width, initial_indent=indent, subsequent_indent=indent + INDENT, break_on_hyphens=False
    )
