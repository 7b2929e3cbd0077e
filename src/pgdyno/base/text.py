"""Words in sentences and lists, and names that users mistype. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the known name most similar to ``name``; empty if none is similar."""
    similar = difflib.get_close_matches(name, tuple(known), n=1)
    return f'did you mean "{similar[0]}"? ' if similar else ""


def sentence(words: str) -> str:
    """Return words with a capital first letter; the name of a setting keeps its spelling."""
    first = words.partition(" ")[0].rstrip(",;:")
    return f"{words[:1].upper()}{words[1:]}" if first.replace("-", "").isalpha() else words


def listed(names: Sequence[str]) -> str:
    """Return ``a``, ``a and b`` or ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
