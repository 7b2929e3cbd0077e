"""Names that users mistype."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the known name that is most like ``name``; empty if none is like it."""
    similar = difflib.get_close_matches(name, tuple(known), n=1)
    return f'did you mean "{similar[0]}"? ' if similar else ""
