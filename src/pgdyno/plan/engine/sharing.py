"""Decide which host-wide settings may differ between interleaved arms.

A pool of huge pages can hold the pages of several servers. What counts at once and leaves nothing behind can
be written at every turn: its lever says so. Of everything else one arm would measure what another has left:
plans leave it out (``Lever.takes_turns``), and whole trials have to alternate to measure it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.plan import HUGE_PAGES, kind_of
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.metadata import Lever
from pgdyno.plan.levers import load


def not_shareable(variants: Sequence[Variant]) -> tuple[str, ...]:
    """Return the kernel files whose values cannot differ between these variants in a duet."""
    paths = dict.fromkeys(path for variant in variants for path in variant.files)
    return tuple(path for path in paths if len(variants) > 1 and not _is_shareable(path, variants))


@dataclass(frozen=True)
class SideBySide:
    """Variants that can take turns. ``as_found`` are the kernel's files that none of them sets any more."""

    variants: tuple[Variant, ...]
    as_found: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence on the values that were left as found; none if there are no such values."""
        return note_on_unmeasured(self.as_found)


def note_on_unmeasured(paths: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence on kernel files that were left as found; none if there are none."""
    names = ", ".join(map(display_name, paths))
    why = "not measured, and left as found, because the machine has one value for all servers"
    return (f"{why}: {names}",) if names else ()


def side_by_side(variants: Sequence[Variant]) -> SideBySide:
    """Return the variants as they can take turns on one machine.

    A server takes all of its share of a pool of huge pages, or none: ``on`` and ``off`` instead of ``try``,
    which would take what another one left. What cannot be switched with the turns, or not fast enough, is
    left as it is found for all of them.
    """
    exact = tuple(_with_exact_pages(variant, variants) for variant in variants)
    as_found = tuple(dict.fromkeys([*not_shareable(exact), *_slow_to_switch(exact)]))
    return SideBySide(tuple(_without(as_found, one) for one in exact), as_found)


def _without(paths: Collection[str], variant: Variant) -> Variant:
    kept = {key: value for key, value in variant.settings.items() if key not in paths}
    return replace(variant, settings=kept)


def _slow_to_switch(variants: Sequence[Variant]) -> Iterator[str]:
    """Yield the files that differ and take the kernel a good part of a turn to change."""
    slow = [lever for lever in _instant_levers() if not lever.takes_turns]
    for path in dict.fromkeys(path for variant in variants for path in variant.files):
        differs = len({variant.files.get(path) for variant in variants}) > 1
        if differs and any(fnmatchcase(path, pattern) for lever in slow for pattern in lever.files):
            yield path


def _with_exact_pages(variant: Variant, variants: Sequence[Variant]) -> Variant:
    if not any(_is_pool(path) for one in variants for path in one.files):
        return variant
    takes_pages = any(map(_is_pool, variant.files))
    return replace(variant, settings={**variant.settings, "huge_pages": "on" if takes_pages else "off"})


def _is_pool(path: str) -> bool:
    return kind_of(path) == HUGE_PAGES


def _is_shareable(path: str, variants: Sequence[Variant]) -> bool:
    if all(variant.settings == variants[0].settings for variant in variants):
        return True  # what differs is the build: each server takes as much of a pool as the others
    if _is_pool(path):
        return all(_takes_its_own(path, variant) for variant in variants)
    if len({variant.files.get(path) for variant in variants}) == 1:
        return True
    patterns = [pattern for lever in _instant_levers() for pattern in (*lever.files, *lever.reads)]
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def _instant_levers() -> list[Lever]:
    return [module.LEVER for module in load().values() if module.LEVER.is_instant]


def _takes_its_own(path: str, variant: Variant) -> bool:
    """Whether a server takes exactly its variant's part of a pool, or nothing."""
    wants_pages = path in variant.files and variant.gucs.get("huge_pages") == "on"
    return wants_pages or variant.gucs.get("huge_pages") == "off"
