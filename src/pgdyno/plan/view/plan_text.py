"""A plan, the catalogue of levers, and one lever as terminal text. Pure."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from pgdyno.base import numbers
from pgdyno.base.text import counted, wrapped
from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.plan import (
    REFUSED_ABOVE,
    Effect,
    Finding,
    LeverEntry,
    LeverFinding,
    MemoryProof,
    Plan,
    PlanLine,
)

WIDTH = 100
INDENT = "    "
_LEVER_INDENT = " " * 6


def plan_text(plan: Plan, *, width: int = WIDTH) -> str:
    """Return the plan as lines of at most ``width`` columns, without colours, ending with a newline."""
    skipped = [wrapped(f"{one.lever}: {one.reason}", width, INDENT) for one in plan.skipped]
    sections: tuple[Iterable[str], ...] = (
        _findings(plan.findings, width),
        _changes(plan, width),
        _unmeasured(plan, width),
        _proof(plan.memory_proof, width),
        ["Left alone", *skipped] if skipped else [],
    )
    return "\n\n".join("\n".join(lines) for section in sections if (lines := list(section))) + "\n"


def _findings(findings: tuple[Finding, ...], width: int) -> Iterator[str]:
    for finding in findings:
        yield wrapped(f"{finding.severity.upper()}: {finding.message}", width)
        yield wrapped(f"hint: {finding.hint}", width, INDENT)


def _changes(plan: Plan, width: int) -> Iterator[str]:
    if not plan.lines:
        yield "Nothing to change."
        return
    restarts = sum(line.change.effect is Effect.RESTART for line in plan.lines)
    needs = "none needs" if not restarts else f"{restarts} need{'s' if restarts == 1 else ''}"
    yield f"{counted(len(plan.lines), 'change')}, {needs} a restart"
    yield from _lines(plan.lines, width)


def _unmeasured(plan: Plan, width: int) -> Iterator[str]:
    if not plan.unmeasured:
        return
    yield wrapped(
        "Not measured, and left as found: the machine has only one value, so servers cannot take turns with "
        "different ones (--unmeasured changes them too)",
        width,
    )
    yield from _lines(plan.unmeasured, width)


def _lines(lines: tuple[PlanLine, ...], width: int) -> Iterator[str]:
    names = max(len(display_name(line.change.key)) for line in lines)
    for line in lines:
        change = line.change
        changed = f"{change.current or 'not set'} → {change.value}"
        yield ""
        yield f"{display_name(change.key):<{names}}  {changed}   [{change.effect}, risk: {line.risk}]"
        for text in (f"why:    {line.reason}", f"source: {line.evidence}", f"undo:   {line.undo}"):
            yield wrapped(text, width, INDENT)


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
        yield wrapped(f"{numbers.size(item.size_bytes):>9}  {item.name}: {item.formula}", width, INDENT)


def levers_text(levers: Sequence[LeverEntry], *, width: int = WIDTH) -> str:
    """Return a summary and the levers layer by layer. ``levers`` must be sorted by layer."""
    parts = [_summary(levers, width)]
    name_width = max((len(one.name) for one in levers), default=0)
    for layer, group in groupby(levers, key=lambda one: one.layer):
        lines = (line for one in group for line in _of_list(one, name_width, width))
        parts.append("\n".join([f"{layer}", *lines]))
    return "\n\n".join(parts) + "\n"


def lever_page(lever: LeverEntry, *, width: int = WIDTH) -> str:
    """Return one lever's documentation, followed by its complete finding."""
    head = f"{lever.layer} layer · {lever.maturity} · risk: {lever.risk}"
    parts = [f"{lever.page}\n\n{head}"]
    if lever.finding is not None:
        parts.append("\n".join(["Here:", *_finding(lever.finding, width, is_short=False)]))
    return "\n\n".join(parts) + "\n"


def _summary(levers: Sequence[LeverEntry], width: int) -> str:
    maturities = Counter(one.maturity for one in levers)
    states = Counter(one.finding.state for one in levers if one.finding is not None)
    planned = sum(one.finding is not None and bool(one.finding.lines) for one in levers)
    lines = [f"{counted(len(levers), 'lever')}: {_counts(maturities)}"]
    if states:
        lines.append(f"here: {_counts(states)}; {planned} with planned changes")
    return "\n".join(textwrap.fill(line, width) for line in lines)


def _counts(counted: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counted.most_common())


def _of_list(lever: LeverEntry, name_width: int, width: int) -> Iterator[str]:
    state = "" if lever.finding is None else f"{lever.finding.state:<8} "
    yield f"  {lever.name:<{name_width}}  {state}{lever.maturity:<8} {lever.title}".rstrip()
    if lever.finding is not None:
        yield from _finding(lever.finding, width, is_short=True)


def _finding(found: LeverFinding, width: int, *, is_short: bool) -> Iterator[str]:
    """Describe a finding and its consequence; ``is_short``: one line each, except for the reason."""
    if not is_short:
        yield f"{_LEVER_INDENT}state: {found.state}"
    if found.detail not in (found.left_alone or ""):
        yield _labelled("found", found.detail, width, is_short=is_short)
    if found.lines:
        planned = (line.change for line in found.lines)
        changes = "; ".join(
            f"{display_name(one.key)} {one.current or 'not set'} → {one.value}" for one in planned
        )
        yield _labelled("planned", changes, width, is_short=is_short)
    if found.left_alone is not None:
        yield _labelled("left alone", found.left_alone, width, is_short=False)


def _labelled(label: str, text: str, width: int, *, is_short: bool) -> str:
    if is_short:
        text = textwrap.shorten(text, width - len(_LEVER_INDENT) - len(label) - 2, placeholder=" …")
    return wrapped(f"{label}: {text}", width, _LEVER_INDENT)
