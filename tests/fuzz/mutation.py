"""JSON documents changed as bytes say: so a fuzzer gets past the form, to what a document means."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

_HALT = 224  # a byte from here on stops at the member that was reached
_REMOVE, _REPEAT = 0, 1
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 1 << 31, 1 << 63, -(1 << 63), 1 << 64, 10**300, 0.0, -0.5, 0.5, 1e-300),
    *(1e308, float("inf"), float("-inf"), float("nan"), "", "a", "default", "\0", "\ud800", "\n", "x" * 300),
    *("1970-01-01T00:00:00+00:00", "../..", "<b>", [], [[]], {}, {"": None}, {"a": 1}),
)


def mutated(text: str, data: bytes) -> Any:
    """Return the document in ``text`` after the changes in ``data``: ways to members, and actions there."""
    whole = json.loads(text)
    steps = iter(data)
    while isinstance(whole, dict | list) and whole and (first := next(steps, None)) is not None:
        _change(whole, first, steps)
    return whole


def _change(node: Any, step: int, steps: Iterator[int]) -> None:
    """Go down from a member that is not empty, and change the last one reached."""
    while True:
        key = list(node)[step % len(node)] if isinstance(node, dict) else step % len(node)
        child = node[key]
        step = next(steps, _HALT)
        if step >= _HALT or not isinstance(child, dict | list) or not child:
            break
        node = child
    action = next(steps, _REMOVE)
    if action == _REMOVE:
        del node[key]
    elif action == _REPEAT and isinstance(node, list):
        node.append(child)
    else:
        node[key] = copy.deepcopy(_VALUES[action % len(_VALUES)])
