"""Checks of texts from servers and hosts before a format writes them.

Each language has one place for its quoting: YAML ``_yaml``, HCL ``terraform``, shell words ``_script``,
lines of tmpfiles.d ``_places``, all others the format named like them. This module refuses texts that a
language cannot express.
"""

from __future__ import annotations

import re

from pgdyno.base.errors import FormatError

_SHOWN = 60  # characters of a refused text; arbitrary
_LONGEST = 4095  # bytes: a page minus one, the most the kernel accepts in one write, or systemd writes
_PATH = re.compile(r"(?:/[A-Za-z0-9_][A-Za-z0-9_.:!@+,~-]*)+")
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(?:\.[A-Za-z_][A-Za-z0-9_$]*)*")
_YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def encodable(text: str, language: str) -> str:
    """Return ``text``. Raises: FormatError if it is not encodable in UTF-8, or contains a NUL."""
    for character in text:
        if character == "\0" or "\ud800" <= character <= "\udfff":
            raise refusal(text, language, f'it contains "{printable(character)}"')
    return text


def held(text: str, language: str, refused: str) -> str:
    """Return ``text``. Raises: FormatError if it contains one of the ``refused`` special characters."""
    for character in text:
        if character in refused:
            raise refusal(text, language, f'it contains "{printable(character)}"')
    return text


def plain(text: str, language: str, refused: str = "") -> str:
    """Return ``text``, which needs no quotes. ``refused`` are the language's special characters.

    Raises: FormatError if the text is empty, begins or ends with a blank, contains a character that is
    refused or not printable, or is longer than the kernel accepts.
    """
    for character in text:
        if not character.isprintable():
            raise refusal(text, language, f'it contains "{printable(character)}"')
    held(text, language, refused)
    if len(text.encode()) > _LONGEST:
        raise refusal(text, language, f"it is longer than {_LONGEST} bytes")
    if not text:
        raise refusal(text, language, "it is empty")
    if text != text.strip():
        raise refusal(text, language, "it begins or ends with a blank")
    return text


def kernel_path(path: str, language: str) -> str:
    """Return the path of a kernel file, which no language can mistake for a pattern or command.

    Raises: FormatError for a path with characters that do not occur in the kernel's names.
    """
    if not _PATH.fullmatch(path):
        raise refusal(path, language, "a path may contain only letters, digits and . _ : ! @ + , ~ -")
    return path


def setting_name(name: str, language: str) -> str:
    """Return the name of a setting. Raises: FormatError if PostgreSQL would not accept it unquoted."""
    if not _SETTING.fullmatch(name) or name.lower() in _YAML_WORDS:
        raise refusal(name, language, "it is not the name of a setting")
    return name


def printable(text: str) -> str:
    """Return a text with unprintable characters escaped."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def refusal(text: str, language: str, why: str) -> FormatError:
    """Return the error for a text that a language cannot express."""
    shown = printable(text[:_SHOWN]) + ("…" if len(text) > _SHOWN else "")
    return FormatError(f'cannot write "{shown}" into {language}', detail=why)
