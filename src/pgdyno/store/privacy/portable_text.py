"""Remove paths, addresses and quoted names from free texts. Pure.

Texts are what people and servers wrote: questions, notes, log lines. The rules are for texts only; facts go
by a list, see ``portable_facts.py``.
"""

from __future__ import annotations

import re

from pgdyno.postgres.secrets import REDACTED, redacted

_QUOTED_OR_WORD = r"(?:'(?:[^'\\]|\\.)*'|[^\s,;)]+)"
_URI = re.compile(r"postgres(?:ql)?://[^\s\"']+", re.IGNORECASE)
_CONNECTION_WORD = re.compile(
    r"\b(host|hostaddr|user|dbname|passfile|service|servicefile|sslkey|sslcert|sslrootcert|sslpassword|krbsrvname)"
    rf"(\s*=\s*){_QUOTED_OR_WORD}",
    re.IGNORECASE,
)
_QUOTED_NAME = re.compile(
    r"\b(at|from|host|role|user|database|schema|relation|table|tablespace|index|function)"
    r"(\s+)\"[^\"]*\"",
    re.IGNORECASE,
)
"""Names in the messages of PostgreSQL and of pgdyno."""

_IPV4 = re.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?:/\d{1,2})?(?![\w.-])")
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){3,7}[0-9A-Fa-f]{0,4}(?:/\d{1,3})?(?![\w:])")

_CONTROL_GROUP = re.compile(r"/sys/fs/cgroup/(?:[^\s,;:/]+/)*([^\s,;:/]+)")
_INTERFACE = re.compile(r"(/sys/class/net)/[^\s,;:/]+")
_PATH = re.compile(r"(?<![\w/.:~…*-])/[\w.@%+~$-][^\s'\",:;)]*")
_PUBLIC_PATH = re.compile(r"/(proc|sys|dev/shm)(/|$)|/(etc|usr/lib)/os-release$")


def portable_text(text: str) -> str:
    """Return a text without secrets, connections, quoted names, places and addresses."""
    text = redacted("", _URI.sub(f"postgresql://{REDACTED}", text))
    text = _CONNECTION_WORD.sub(rf"\1\2{REDACTED}", text)
    text = _QUOTED_NAME.sub(rf'\1\2"{REDACTED}"', text)
    return _IPV6.sub("(address)", _IPV4.sub("(address)", _without_places(text)))


def _without_places(text: str) -> str:
    """Leave only the kernel's own paths, and in these no units and no network interfaces."""
    text = _CONTROL_GROUP.sub(r"/sys/fs/cgroup/…/\1", text)
    text = _INTERFACE.sub(r"\1/…", text)
    return _PATH.sub(lambda match: match[0] if _PUBLIC_PATH.match(match[0]) else "(path)", text)
