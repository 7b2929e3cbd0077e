"""Checks of texts from servers and hosts before a format writes them.

Each language is quoted in one place: YAML in ``_yaml``, HCL in ``terraform``, words of a shell in
``_script``, lines of tmpfiles.d in ``_places``, all others in the format of their name. What a language
cannot express is refused here.
"""

from __future__ import annotations

import re

from pgdyno.base.errors import FormatError

_SHOWN = 60  # characters of a refused text; arbitrary
_LONGEST = 4095  # bytes: a page less one is all that the kernel takes at once, or systemd writes
_PATH = re.compile(r"(?:/[A-Za-z0-9_][A-Za-z0-9_.:!@+,~-]*)+")
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(?:\.[A-Za-z_][A-Za-z0-9_$]*)*")
_YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def encodable(text: str, language: str) -> str:
    """Return a text that can be written in UTF-8. Raises: FormatError if it cannot, or has a NUL in it."""
    for character in text:
        if character == "\0" or "\ud800" <= character <= "\udfff":
            raise refusal(text, language, f'it has "{printable(character)}" in it')
    return text


def held(text: str, language: str, refused: str) -> str:
    """Return a text without characters that mean something there. Raises: FormatError if it has one."""
    for character in text:
        if character in refused:
            raise refusal(text, language, f'it has "{printable(character)}" in it')
    return text


def plain(text: str, language: str, refused: str = "") -> str:
    """Return a text that needs no quotes. ``refused`` are the characters that mean something there.

    Raises: FormatError if the text is empty, begins or ends with a blank, or has a character in it that is
    refused or not printable, or is longer than the kernel takes.
    """
    for character in text:
        if not character.isprintable():
            raise refusal(text, language, f'it has "{printable(character)}" in it')
    held(text, language, refused)
    if len(text.encode()) > _LONGEST:
        raise refusal(text, language, f"it is longer than {_LONGEST} bytes")
    if not text:
        raise refusal(text, language, "it is empty")
    if text != text.strip():
        raise refusal(text, language, "it begins or ends with a blank")
    return text


def kernel_path(path: str, language: str) -> str:
    """Return the path of a kernel's file that no language takes for a pattern or a command.

    Raises: FormatError for a path with other characters than the kernel's own names have.
    """
    if not _PATH.fullmatch(path):
        raise refusal(path, language, "it is not a path of letters, digits and . _ : ! @ + , ~ -")
    return path


def setting_name(name: str, language: str) -> str:
    """Return the name of a setting. Raises: FormatError if PostgreSQL would not read it without quotes."""
    if not _SETTING.fullmatch(name) or name.lower() in _YAML_WORDS:
        raise refusal(name, language, "it is not the name of a setting")
    return name


def printable(text: str) -> str:
    """Return a text with escapes in place of unprintable characters."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def refusal(text: str, language: str, why: str) -> FormatError:
    """Return the error that says which text a language cannot hold, and why."""
    shown = printable(text[:_SHOWN]) + ("…" if len(text) > _SHOWN else "")
    return FormatError(f'cannot write "{shown}" into {language}', detail=why)
