"""The code of a program by its place: how much of it is executed, and how far that lies apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PAGE_BYTES: Final = 4096
SHARES: Final = (0.90, 0.99)
"""Of what is executed; the places that hold so much of it are counted."""


@dataclass(frozen=True)
class PageHeat:
    """A page of 4 kB that was executed. ``index`` counts pages from the first of the program's code.

    ``share`` is its part of what was executed in the program, ``function`` the one with the most of it.
    """

    index: int
    share: float
    function: str


@dataclass(frozen=True)
class HotCode:
    """The fewest places that hold a share of all executions.

    ``code_bytes`` None: single bytes are not seen.
    """

    share: float
    code_bytes: int | None
    lines: int
    pages: int
    large_pages: int


@dataclass(frozen=True)
class Elsewhere:
    """Code outside the program, such as a library's, and its part of all that was executed."""

    name: str
    share: float


@dataclass(frozen=True)
class TextLayout:
    """The code of a program that a transaction executes.

    ``pages`` are all pages of its code. ``source`` says by what it is known, ``unit`` what was counted.
    ``remarks`` say what is not seen.
    """

    program: str
    source: str
    unit: str
    is_simulated: bool
    counted: int
    pages: int
    heat: tuple[PageHeat, ...]
    coverage: tuple[HotCode, ...]
    elsewhere: tuple[Elsewhere, ...] = ()
    remarks: tuple[str, ...] = ()
