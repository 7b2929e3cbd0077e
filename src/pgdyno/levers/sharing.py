"""Whether arms that take turns can each have their own value of something that the machine has one of.

A pool of huge pages can hold the pages of several servers. What counts at once and leaves nothing behind can
be written at every turn: its lever says so. Of everything else one arm would measure what another has left,
so that whole trials have to alternate.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

from pgdyno.levers import load
from pgdyno.model.plan import HUGE_PAGES, kind_of
from pgdyno.model.variant import Variant


def not_shareable(variants: Sequence[Variant]) -> tuple[str, ...]:
    """Return the kernel's files of which only one of these variants at a time can have what it asks for."""
    paths = dict.fromkeys(path for variant in variants for path in variant.files)
    return tuple(path for path in paths if len(variants) > 1 and not _is_shareable(path, variants))


def shareable_runs(variants: Sequence[Variant]) -> tuple[tuple[Variant, ...], ...]:
    """Return variants that lead on from each other in the fewest runs whose members can take turns.

    Each run begins with the last variant of the one before. Two neighbours that cannot take turns are a run
    of their own.
    """
    runs = [[variants[0]]]
    for before, variant in pairwise(variants):
        extended = [*runs[-1], variant]
        if len(extended) > 2 and not_shareable(extended):
            runs.append([before, variant])
        else:
            runs[-1] = extended
    return tuple(map(tuple, runs))


def _is_shareable(path: str, variants: Sequence[Variant]) -> bool:
    if all(variant.settings == variants[0].settings for variant in variants):
        return True  # what differs is the build: each server takes as much of a pool as the others
    if kind_of(path) == HUGE_PAGES:
        return all(_takes_its_own(path, variant) for variant in variants)
    if len({variant.files.get(path) for variant in variants}) == 1:
        return True
    instant = (module.LEVER for module in load().values() if module.LEVER.is_instant)
    return any(fnmatchcase(path, pattern) for lever in instant for pattern in (*lever.files, *lever.reads))


def _takes_its_own(path: str, variant: Variant) -> bool:
    """Whether a server takes exactly what its variant adds to a pool: all or nothing of it."""
    wants_pages = path in variant.files and variant.gucs.get("huge_pages") == "on"
    return wants_pages or variant.gucs.get("huge_pages") == "off"
