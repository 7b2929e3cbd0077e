"""Comments and blocks of output files."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

WIDTH = 100


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of one remark. Line breaks become spaces, so that no text escapes its comment."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    return textwrap.wrap(
        printable, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def comment(text: str, mark: str = "#", *, indent: str = "") -> str:
    """Return one remark as comment lines, each beginning with ``mark``."""
    lines = wrapped(text, WIDTH - len(indent) - len(mark) - 1)
    # A trailing backslash continues a line in udev rules, even in a comment.
    ended = (f"{line} ." if line.endswith("\\") else line for line in lines)
    return "\n".join(f"{indent}{mark} {line}" for line in ended)


def comments(texts: Iterable[str], mark: str = "#", *, indent: str = "") -> str:
    """Return several remarks, each starting on a new line."""
    return "\n".join(comment(text, mark, indent=indent) for text in texts)


def joined(*blocks: str) -> str:
    """Return the nonempty blocks, separated by empty lines."""
    return "\n\n".join(filter(None, blocks)) + "\n"
