"""Remove secrets from an experiment before display: passwords, keys, commands with them. Pure.

It works on the document, so it also covers facts and notes added in the future. More is removed from
exported experiments: see ``results/bundle.py``.

Paths, addresses and quoted names are removed from free texts of people and servers: questions, notes, log
lines. These rules are for texts only; facts are kept by a list, see ``portable_facts.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pgdyno.postgres.secrets import REDACTED, redacted

SETTING_VALUES = ("setting", "boot_val", "reset_val", "value", "current", "requested", "effective")
"""Members with a value of the setting named by the ``name`` or ``key`` of the same object."""
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


def without_secrets(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return an experiment's document without passwords and without commands that may contain them."""
    shown: dict[str, Any] = rewritten(dict(document), redacted, lambda text: redacted("", text))
    return shown


def rewritten(node: Any, setting: Callable[[str, str], str], text: Callable[[str], str]) -> Any:
    """Return a document with every setting's value rewritten by ``setting(name, value)``, then by ``text``.

    All other texts are rewritten by ``text`` alone; keys stay.
    """
    if isinstance(node, str):
        return text(node)
    if isinstance(node, list):
        return [rewritten(item, setting, text) for item in node]
    if not isinstance(node, dict):
        return node
    name = setting_name(node)
    return {
        key: text(setting(name, value))
        if name is not None and key in SETTING_VALUES and isinstance(value, str)
        else _plain_settings(value, setting, text)
        if key == "settings" and _is_plain(value)
        else rewritten(value, setting, text)
        for key, value in node.items()
    }


def setting_name(node: Mapping[str, Any]) -> str | None:
    """Return the setting that an object (Guc, difference, override, change) describes; else None."""
    name = node.get("name", node.get("key"))
    return name if isinstance(name, str) and any(key in node for key in SETTING_VALUES) else None


def _is_plain(value: Any) -> bool:
    """Whether settings are a mapping from name to value, as in variants."""
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _plain_settings(
    settings: Mapping[str, str], setting: Callable[[str, str], str], text: Callable[[str], str]
) -> dict[str, str]:
    return {name: text(setting(name, value)) for name, value in settings.items()}


def portable_text(text: str) -> str:
    """Return a text without secrets, connections, quoted names, places and addresses."""
    text = redacted("", _URI.sub(f"postgresql://{REDACTED}", text))
    text = _CONNECTION_WORD.sub(rf"\1\2{REDACTED}", text)
    text = _QUOTED_NAME.sub(rf'\1\2"{REDACTED}"', text)
    return _IPV6.sub("(address)", _IPV4.sub("(address)", _without_places(text)))


def _without_places(text: str) -> str:
    """Remove all paths except the kernel's, and parent units and network interfaces in these."""
    text = _CONTROL_GROUP.sub(r"/sys/fs/cgroup/…/\1", text)
    text = _INTERFACE.sub(r"\1/…", text)
    return _PATH.sub(lambda match: match[0] if _PUBLIC_PATH.match(match[0]) else "(path)", text)
