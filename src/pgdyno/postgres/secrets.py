"""Keep secrets out of pgdyno's output, stored data and exports. Pure.

Settings can contain secrets: ``primary_conninfo`` a password, ``archive_command`` a cloud key, a custom
setting anything. A setting with a dot in its name is custom unless a module shipped with PostgreSQL defines
it. A custom setting's value is shown only if it cannot be a secret.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

REDACTED = "********"

_SENSITIVE = (
    r"passw(?:or)?d|passphrase|pwd|secret|token|credential|scram_(?:client|server)_key|bearer|signature"
    r"|(?:api|access|account|private)[_-]?key|auth(?:orization)?(?![a-z])|(?<![a-z])(?:pass|sig)(?![a-z])"
)
_SECRET_NAMES = re.compile(rf"{_SENSITIVE}|salt|(?:^|[._])pin$|(?:^|[._])key$|_command$", re.IGNORECASE)
_NOT_SECRET_NAMES = frozenset({"oauth_validator_libraries", "password_encryption", "session_authorization"})
_NOT_SECRET_VALUES = frozenset({"", "on", "off", "true", "false", "(disabled)"})
_NOT_SECRET_AMOUNT = re.compile(r"-?\d{1,9}(\.\d{1,9})?\s?[A-Za-z]{0,3}")  # a number with an optional unit

_MODULES = re.compile(
    r"(auth_delay|auto_explain|basic_archive|isn|passwordcheck|pg_prewarm|pg_stat_statements"
    r"|pg_trgm|pgcrypto|plperl|plpgsql|pltcl|pltclu|plpython3|postgres_fdw|sepgsql)\."
)
"""Prefixes of modules shipped with PostgreSQL (contrib/ and src/pl/). None of their settings is secret."""

_HIDDEN = "\0"  # placeholder for a secret until all are found
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_COMMENT = r"(?:--[^\n]{0,200}\n|/\*(?:[^*]|\*(?!/)){0,200}+\*/)"
_GAP = rf"\s*+(?:{_COMMENT}\s{{0,200}}+){{0,4}}+"
"""White space and SQL comments, bounded: repeated "password/*" would otherwise cause quadratic scanning."""
_PAIR = (
    rf"(?<![\w.-])(?=[\w.-]*(?:{_SENSITIVE}))(?P<name>[\w.-]++)(?P<equals>[\"']?{_GAP}[=:]{_GAP})"
    rf"(?!{_HIDDEN})(?:(?:bearer|basic)\s+)?"
)
_TWICE_QUOTED = r"''(?:(?!'').)+''"  # in a connection string inside an SQL literal
_SECRET_PAIR = re.compile(rf"{_PAIR}(?:{_TWICE_QUOTED}|{_QUOTED}|(?:\\.|\S)+)", re.IGNORECASE)
"""In libpq's syntax, "\\ " does not end a value."""
_SQL_TEXT = r"(?:[en]|u&)?'(?:[^'\\]|''|\\.)*(?:'|$)|\$(?P<tag>\w*)\$.*?(?:\$(?P=tag)\$|$)"
"""A literal without a closing quote extends to the end of the text."""
_SECRET_OF_SQL = re.compile(
    rf"(?<![\w.-])(?=[\w.-]*(?:{_SENSITIVE}))(?P<name>[\w.-]++)"
    rf"(?P<equals>[\"']?{_GAP}(?:,{_GAP})?(?:to\b{_GAP})?)(?:{_SQL_TEXT})",
    re.IGNORECASE | re.DOTALL,
)
"""A role's PASSWORD 'x', a foreign server's OPTIONS (password 'b c'), SET a.token TO 'x', set_config()."""
_SECRET_PARAMETER = re.compile(rf"{_PAIR}[^\s&]+", re.IGNORECASE)
_URI = re.compile(r"(?<![=\w+.-])\w[\w+.-]*://\S*")  # not a parameter's value, which may be a password
_ENCODED_NAME = re.compile(r"(?<![\w.%-])[\w.-]*+%[\w.%-]++(?=\s*=)")
_BEARER = re.compile(r"\b(bearer\s+)[^\s'\"]+", re.IGNORECASE)
_USER_OF_URI = re.compile(r"\w://[^:/@\s]*:")


def redacted(name: str, value: str) -> str:
    """Return a setting's value with secrets replaced, by its contents and, where needed, by its name.

    With an empty name, ``value`` is arbitrary text.
    """
    if value.lower() in _NOT_SECRET_VALUES or name.lower() in _NOT_SECRET_NAMES:
        return value
    if "." in name and is_postgresqls(name):
        return _without_pairs(value)
    if _SECRET_NAMES.search(name):
        return REDACTED
    if not is_postgresqls(name) and not _NOT_SECRET_AMOUNT.fullmatch(value):
        return REDACTED
    return _without_pairs(value)


def is_postgresqls(name: str) -> bool:
    """Whether PostgreSQL or a module shipped with it defines the setting, by its name."""
    return "." not in name or _MODULES.match(name.lower()) is not None


def _without_pairs(text: str) -> str:
    """Return a text without the values of ``password=…``, of SQL's PASSWORD '…', and passwords in URIs."""
    text = _ENCODED_NAME.sub(_decoded, text).replace(_HIDDEN, "")
    text = re.sub(r"\S+", _without_password, text)
    text = _URI.sub(lambda uri: _SECRET_PARAMETER.sub(_pair, uri[0]), text)
    text = _SECRET_OF_SQL.sub(_pair, _BEARER.sub(_hidden, _SECRET_PAIR.sub(_pair, text)))
    return text.replace(_HIDDEN, REDACTED)


def _decoded(name: re.Match[str]) -> str:
    """Return a URI parameter's percent-decoded name if it names a secret; otherwise the name unchanged."""
    decoded = unquote(name[0])
    return decoded if re.search(_SENSITIVE, decoded, re.IGNORECASE) else name[0]


def _hidden(match: re.Match[str]) -> str:
    return f"{match[1]}{_HIDDEN}"


def _without_password(word: re.Match[str]) -> str:
    """Return a word without a URI's password: the text between the user and the last "@"."""
    before, _, behind = word[0].rpartition("@")
    user = _USER_OF_URI.search(before)
    return word[0] if user is None else f"{before[: user.end()]}{_HIDDEN}@{behind}"


def _pair(match: re.Match[str]) -> str:
    if match["name"].lower() in _NOT_SECRET_NAMES:
        return match[0]
    equals = re.sub(_COMMENT, "", match["equals"])  # a comment may be the start of a password
    return f"{match['name']}{equals}{_HIDDEN}"
