"""Levers as terminal text: the catalogue, or one lever's page."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.plan import LeverEntry, LeverFinding, PlanLine
from pgdyno.plan.view.plan_text import WIDTH

_INDENT = " " * 6
_CONTINUED = " " * 4


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
    count = f"{len(levers)} lever{'' if len(levers) == 1 else 's'}"
    maturities = Counter(one.maturity for one in levers)
    states = Counter(one.finding.state for one in levers if one.finding is not None)
    planned = sum(one.finding is not None and bool(one.finding.lines) for one in levers)
    lines = [f"{count}: {_counts(maturities)}"]
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
        yield f"{_INDENT}state: {found.state}"
    if found.detail not in (found.left_alone or ""):
        yield _labelled("found", found.detail, width, is_short=is_short)
    if found.lines:
        changes = "; ".join(map(_change, found.lines))
        yield _labelled("planned", changes, width, is_short=is_short)
    if found.left_alone is not None:
        yield _labelled("left alone", found.left_alone, width, is_short=False)


def _change(line: PlanLine) -> str:
    change = line.change
    return f"{display_name(change.key)} {change.current or 'not set'} → {change.value}"


def _labelled(label: str, text: str, width: int, *, is_short: bool) -> str:
    if is_short:
        text = textwrap.shorten(text, width - len(_INDENT) - len(label) - 2, placeholder=" …")
    return textwrap.fill(
        f"{label}: {text}",
        width,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT + _CONTINUED,
        break_on_hyphens=False,
    )
