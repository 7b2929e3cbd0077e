"""The front of configurations with several aims: those that no other one dominates. Pure.

One configuration dominates another if it is told to be better in one aim, and not told to be worse in any. It
stands here because both a search's short rounds and the experiment that proves their answer ask for it; how
much evidence it takes to be told, they say.

Figures have intervals, so that "told to be better" is no order: of three aims A may dominate B, B dominate C,
and C dominate A. Configurations are therefore left out one by one, those first that are worst all in all:
one is always left, and none of those that are left dominates another.

Sources: Pareto dominance with intervals: Limbourg, Aponte (2005), CEC 2005, 459-466. The spread: Gonzalez
(1985), Theoretical Computer Science 38, 293-306 (the farthest point next).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

Told: TypeAlias = Callable[[str, str], Sequence[int]]
"""Compares two configurations in every aim: 1, the first is told to be better; -1, worse; 0, neither."""


def dominates(told: Told, one: str, other: str) -> bool:
    """Whether a configuration is in one aim told to be better than another, and in none worse."""
    signs = told(one, other)
    return 1 in signs and -1 not in signs


def dominated(best_first: Sequence[str], told: Told) -> dict[str, str]:
    """Return the configurations that are off the front, each with one that dominates it."""
    remaining, off = list(best_first), dict[str, str]()
    for name in reversed(best_first):
        better = next((one for one in remaining if one != name and dominates(told, one, name)), None)
        if better is not None:
            remaining.remove(name)
            off[name] = better
    return off


def alike(simplest_first: Sequence[str], told: Told) -> dict[str, str]:
    """Return the configurations that are in no aim told from a simpler one, each with that one."""
    kept, found = list[str](), dict[str, str]()
    for name in simplest_first:
        simpler = next((one for one in kept if not any(told(name, one))), None)
        if simpler is None:
            kept.append(name)
        else:
            found[name] = simpler
    return found


def best_first(gains: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """Return the configurations by the sum of their gains, each as a share of its aim's range."""
    shares = _shares(gains)
    return tuple(sorted(gains, key=lambda name: -sum(shares[name])))


def spread(gains: Mapping[str, Sequence[float]], most: int) -> tuple[str, ...]:
    """Return up to ``most`` of them: the best in each aim, then the farthest from these.

    Shapes: gains[name][aim], more is better. Distances are Euclidean, of shares of each aim's range.
    """
    shares = _shares(gains)
    aims = range(len(next(iter(gains.values()), ())))
    chosen = list(dict.fromkeys(max(gains, key=lambda name: gains[name][aim]) for aim in aims))[:most]
    while chosen and len(chosen) < min(most, len(gains)):
        left = [name for name in gains if name not in chosen]
        chosen.append(max(left, key=lambda name: min(_distance(shares[name], shares[one]) for one in chosen)))
    return tuple(chosen)


def _shares(gains: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, ...]]:
    """Return gains as shares of each aim's range: 0 is the least of all, 1 the most."""
    lows = [min(column) for column in zip(*gains.values(), strict=True)]
    highs = [max(column) for column in zip(*gains.values(), strict=True)]
    return {
        name: tuple(
            (value - low) / (high - low) if high > low else 0.0
            for value, low, high in zip(row, lows, highs, strict=True)
        )
        for name, row in gains.items()
    }


def _distance(one: Sequence[float], other: Sequence[float]) -> float:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
