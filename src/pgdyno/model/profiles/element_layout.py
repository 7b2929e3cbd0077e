"""An element of an array in shared memory, and the lines of a cache that it lies in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ElementLayout:
    """An element, as debug information has it, where the first one begins with a line.

    ``structure`` is its name among data misses, ``types`` are the C types that it consists of.
    ``element_bytes`` lie between the beginnings of two elements; of these, no member uses ``unused_bytes``.
    It lies in ``fewest_lines`` to ``most_lines``.
    """

    structure: str
    types: tuple[str, ...]
    element_bytes: int
    alignment_bytes: int
    unused_bytes: int
    line_bytes: int
    fewest_lines: int
    most_lines: int

    @property
    def shares_lines(self) -> bool:
        """Whether an element has lines in common with its neighbours."""
        return self.element_bytes % self.line_bytes != 0
