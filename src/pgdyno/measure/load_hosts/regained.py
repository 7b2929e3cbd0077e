"""Load hosts after a loss, and the use case that returns them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from pgdyno.base.errors import LoadHostLostError
from pgdyno.measure.arenas.arena import Arena

NOT_NEEDED = "no round was left to go on with"


@dataclass(frozen=True)
class Regained:
    """Load hosts after a loss: the arena that they load, their names, and the rest of a note."""

    arena: Arena
    hosts: tuple[str, ...]
    how: str


AfterLoss: TypeAlias = Callable[[Arena, LoadHostLostError], Regained]
"""Returns where to go on with which load hosts. Raises: the error, or another one, if there are none."""


def end_without_host(_: Arena, lost: LoadHostLostError) -> NoReturn:
    """Let the experiment end. Raises: the error."""
    raise lost
