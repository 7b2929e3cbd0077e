"""Greeting of a program that was sent to another host, among the words of a login there."""

from __future__ import annotations

from collections.abc import Callable

MOST_CHATTER = 200
"""Lines that a login may say before the program does: ``.bashrc`` and the like."""


def await_greeting(next_line: Callable[[], bytes], greeting: str) -> bool:
    """Read lines until the greeting; return whether it came. The rest is the program's."""
    return any(next_line().strip() == greeting.encode() for _ in range(MOST_CHATTER))
