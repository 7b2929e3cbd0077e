"""Keep secrets out of what pgdyno shows, stores and exports. Pure.

Settings do carry secrets: ``primary_conninfo`` a password, ``archive_command`` a cloud key, a custom
setting such as ``app.jwt_secret`` whatever its owner put there.
"""

from __future__ import annotations

import re

REDACTED = "********"

_SECRET_NAMES = re.compile(r"password|passphrase|secret|token|salt|_command$|(^|[._])key$", re.IGNORECASE)
_NOT_SECRET_NAMES = frozenset({"password_encryption"})
_NOT_SECRET_VALUES = frozenset({"", "on", "off", "true", "false", "(disabled)"})
_PASSWORD_PAIR = re.compile(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)", re.IGNORECASE)
_PASSWORD_IN_URI = re.compile(r"(\w://[^:/@\s]*:)[^\s]*@")


def redacted(name: str, value: str) -> str:
    """Return a setting's value with every secret in it replaced; names decide where contents cannot."""
    if value.lower() in _NOT_SECRET_VALUES or name in _NOT_SECRET_NAMES:
        return value
    if _SECRET_NAMES.search(name):
        return REDACTED
    without_pairs = _PASSWORD_PAIR.sub(rf"\1{REDACTED}", value)
    return _PASSWORD_IN_URI.sub(rf"\1{REDACTED}@", without_pairs)
