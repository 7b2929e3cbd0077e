"""Parts of a configuration, and the variants that show the worth of each. Pure.

For every part: the baseline with only this part, and the whole without it (measure/verdicts/part_worths.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.plan import ONLY, WITHOUT
from pgdyno.model.tuning.tuning import BUILD
from pgdyno.model.variants.variant import Variant

MOST_PARTS = 7
"""Arbitrary: then 16 or 17 servers take turns. With more, an hour is too short for each."""

OTHERS = "others"
"""The name of the part for changes without a separate part."""


class Attribute(StrEnum):
    """The kinds of parts that a plan can be split into."""

    LAYERS = "layers"
    LEVERS = "levers"


@dataclass(frozen=True)
class PlanPart:
    """Changes that are applied or left out together; ``keys`` are those of a variant, or ``BUILD``."""

    name: str  # valid in a variant's name
    keys: frozenset[str]


def parts_of(name_of: Mapping[str, str], worth: Mapping[str, float]) -> tuple[PlanPart, ...]:
    """Return the parts of the changed keys; ``name_of`` maps each key to its part.

    Beyond ``MOST_PARTS``, only the parts with the largest ``worth`` by a profile stay separate.
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
    """Return two variants for every part: the whole without it, and the baseline with only this part."""
    everything = frozenset({*whole.settings, BUILD})
    return [
        replace(_with(base, whole, keys), name=f"{prefix}{part.name}")
        for part in parts
        for prefix, keys in ((WITHOUT, everything - part.keys), (ONLY, part.keys))
    ]


def notes_on_parts(parts: Sequence[PlanPart], worth: Mapping[str, float]) -> tuple[str, ...]:
    """Return notes on changes without a separate part, or on why the plan was not split."""
    if len(parts) < 2:
        why_not = f"all changes belong to {parts[0].name}" if parts else "no change differs between servers"
        return (f"the plan was not split into parts: {why_not}",)
    why = "with the least potential by the profile" if worth else "that come last, as no profile ranks them"
    held = [", ".join(map(display_name, sorted(one.keys))) for one in parts if one.name == OTHERS]
    return tuple(f'"{OTHERS}" holds the changes {why}: {names}' for names in held)


def _with(base: Variant, whole: Variant, keys: Collection[str]) -> Variant:
    """Return the baseline with the whole's values of some keys."""
    settings = {key: value for key, value in whole.settings.items() if key in keys}
    server = whole.server if BUILD in keys else base.server
    return replace(base, settings={**base.settings, **settings}, server=server)
