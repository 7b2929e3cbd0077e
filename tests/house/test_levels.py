"""Use cases stand on few levels: from a command to its effect a reader opens at most nine of their files.

A module's level is one more than the highest of the modules of app/ that it imports. Imports in functions and
those for annotations alone count: a reader follows them all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from graphlib import TopologicalSorter

from tests.house.source import imported_modules, modules

LEVELS = 9
APP = "pgdyno.app."
INSTEAD = (
    "move a record, a constant or a pure function out of the use case that others import it from; give a use "
    "case what it needs from another; merge a module that only passes on"
)


def test_use_cases_stand_on_few_levels() -> None:
    app = {module.name for module in modules() if module.package == "app"}
    longest = longest_chain({name: imported_modules()[name] & app for name in app})
    drawn = " → ".join(name.removeprefix(APP) for name in longest)
    assert len(longest) <= LEVELS, f"{drawn}: {len(longest)} levels (limit {LEVELS}): {INSTEAD}"


def test_the_longest_chain_goes_over_every_level() -> None:
    imports = {"top": {"bottom", "upper"}, "upper": {"lower", "bottom"}, "lower": {"bottom"}, "bottom": set()}
    assert longest_chain(imports) == ("top", "upper", "lower", "bottom")


def longest_chain(imports: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return the modules of the longest chain of imports, the highest first."""
    chains: dict[str, tuple[str, ...]] = {}
    for name in TopologicalSorter(imports).static_order():
        chains[name] = (name, *max((chains[one] for one in sorted(imports[name])), key=len, default=()))
    return max(chains.values(), key=len)
