"""Remove secrets from an experiment before display: passwords, keys, commands with them. Pure.

It works on the document, so that a fact or a note added tomorrow is covered as well. What leaves the machine
loses more: see ``portable.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pgdyno.postgres.secrets import redacted

SETTING_VALUES = ("setting", "boot_val", "reset_val", "value", "current", "requested", "effective")
"""Members that hold a value of the setting named by ``name`` or ``key`` beside them."""


def without_secrets(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return an experiment's document without passwords and without commands that may hold them."""
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
    """Return which setting an object is about, if it is: a Guc, a difference, an override, a change."""
    name = node.get("name", node.get("key"))
    return name if isinstance(name, str) and any(key in node for key in SETTING_VALUES) else None


def _is_plain(value: Any) -> bool:
    """Whether settings are written as name → value, as variants have them."""
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _plain_settings(
    settings: Mapping[str, str], setting: Callable[[str, str], str], text: Callable[[str], str]
) -> dict[str, str]:
    return {name: text(setting(name, value)) for name, value in settings.items()}
