"""Parts of a configuration, and the servers that show the worth of each. Pure.

For every part: the baseline with it alone, and the whole without it (measure/verdicts/part_worths.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.terms import ONLY, WITHOUT
from pgdyno.model.tuning.space import BUILD
from pgdyno.model.variants.variant import Variant

MOST_PARTS = 7
"""Arbitrary: 16 or 17 servers take turns then. More would share an hour between too many."""

OTHERS = "others"
"""The name of the part that holds what has no part of its own."""


class Attribute(StrEnum):
    """The kinds of parts that a plan is taken apart into."""

    LAYERS = "layers"
    LEVERS = "levers"


@dataclass(frozen=True)
class PlanPart:
    """Changes that are made or left out together; ``keys`` are a variant's, or ``BUILD``."""

    name: str  # as a variant may be called
    keys: frozenset[str]


def parts_of(name_of: Mapping[str, str], worth: Mapping[str, float]) -> tuple[PlanPart, ...]:
    """Return the parts that changed keys belong to, by ``name_of``.

    Of more than ``MOST_PARTS`` those stay apart whose ``worth`` by a profile is largest.
    """
    names = sorted(dict.fromkeys(name_of.values()), key=lambda name: -worth.get(name, 0.0))
    count = len(names) if len(names) <= MOST_PARTS else MOST_PARTS - 1
    rest = names[count:]
    groups = [(name, [name]) for name in names[:count]] + ([(OTHERS, rest)] if rest else [])
    return tuple(
        PlanPart(name, frozenset(key for key, part in name_of.items() if part in members))
        for name, members in groups
    )


def taken_apart(base: Variant, whole: Variant, parts: Sequence[PlanPart]) -> list[Variant]:
    """Return two variants for every part: the whole without it, and the baseline with it alone."""
    everything = frozenset({*whole.settings, BUILD})
    return [
        replace(_with(base, whole, keys), name=f"{prefix}{part.name}")
        for part in parts
        for prefix, keys in ((WITHOUT, everything - part.keys), (ONLY, part.keys))
    ]


def notes_on_parts(parts: Sequence[PlanPart], worth: Mapping[str, float]) -> tuple[str, ...]:
    """Say which changes have no part of their own, or why nothing was taken apart."""
    if len(parts) < 2:
        why_not = f"all changes belong to {parts[0].name}" if parts else "no change differs between servers"
        return (f"nothing was taken apart: {why_not}",)
    why = "that could bring least by the profile" if worth else "that come last, as no profile ranks them"
    held = [", ".join(map(display_name, sorted(one.keys))) for one in parts if one.name == OTHERS]
    return tuple(f'"{OTHERS}" holds the changes {why}: {names}' for names in held)


def _with(base: Variant, whole: Variant, keys: Collection[str]) -> Variant:
    """Return the baseline with some of the whole's values."""
    settings = {key: value for key, value in whole.settings.items() if key in keys}
    server = whole.server if BUILD in keys else base.server
    return replace(base, settings={**base.settings, **settings}, server=server)
