"""Decide which host-wide settings may differ between interleaved arms.

A pool of huge pages can hold the pages of several servers. What counts at once and leaves nothing behind can
be written at every turn: its lever says so. Of everything else one arm would measure what another has left,
so that whole trials have to alternate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from pgdyno.levers import load
from pgdyno.model.hosts.kernel_file import display_name
from pgdyno.model.plans.plan import HUGE_PAGES, kind_of
from pgdyno.model.variants.variant import Variant

_FAST_S = 0.005  # a tenth of the shortest usual turn


def not_shareable(variants: Sequence[Variant]) -> tuple[str, ...]:
    """Return the kernel files whose values cannot differ between these variants in a duet."""
    paths = dict.fromkeys(path for variant in variants for path in variant.files)
    return tuple(path for path in paths if len(variants) > 1 and not _is_shareable(path, variants))


@dataclass(frozen=True)
class SideBySide:
    """Variants that can take turns. ``alike`` are the kernel's files that all of them were given alike."""

    variants: tuple[Variant, ...]
    alike: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence on the values that all of them were given alike; none if there are no such values."""
        if not self.alike:
            return ()
        names = ", ".join(map(display_name, self.alike))
        why = "the same for all servers, as the plan wants it, so that its effect is not in the figures"
        return (f"{why}: {names}",)


def side_by_side(variants: Sequence[Variant]) -> SideBySide:
    """Return the variants as they can take turns on one machine.

    A server takes all of its share of a pool of huge pages, or none: ``on`` and ``off`` instead of ``try``,
    which would take what another one left. Of what cannot be switched with the turns, or not fast enough, all
    of them get the value of the first variant that names it.
    """
    exact = tuple(_with_exact_pages(variant, variants) for variant in variants)
    alike = tuple(dict.fromkeys([*not_shareable(exact), *_slow_to_switch(exact)]))
    wanted = {path: next(one.files[path] for one in exact if path in one.files) for path in alike}
    return SideBySide(tuple(replace(one, settings={**one.settings, **wanted}) for one in exact), alike)


def _slow_to_switch(variants: Sequence[Variant]) -> Iterator[str]:
    """Yield the files that differ and take the kernel a good part of a turn to change."""
    slow = [module.LEVER for module in load().values() if module.LEVER.switch_s > _FAST_S]
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
    instant = (module.LEVER for module in load().values() if module.LEVER.is_instant)
    return any(fnmatchcase(path, pattern) for lever in instant for pattern in (*lever.files, *lever.reads))


def _takes_its_own(path: str, variant: Variant) -> bool:
    """Whether a server takes exactly its variant's part of a pool, or nothing."""
    wants_pages = path in variant.files and variant.gucs.get("huge_pages") == "on"
    return wants_pages or variant.gucs.get("huge_pages") == "off"
