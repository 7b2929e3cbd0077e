"""Takes out of an experiment what must not leave the machine, before anything is shown or exported. Pure.

    without_secrets   for reports: passwords, keys and commands that may carry them
    portable          for bundles: besides, connection strings, paths of people and of the server, names of
                      hosts, roles and databases, addresses

It works on the document, so that a fact or a note added tomorrow is covered as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from pgdyno.model.experiment import DesignKind, Experiment, ResetPolicy, Stopping
from pgdyno.model.plan import Effect, Layer, Risk
from pgdyno.model.verdict import Decision
from pgdyno.server.redaction import REDACTED, redacted
from pgdyno.store.documents import dump_experiment, load_experiment

_LEFT_OUT = "left out of the bundle"
_SETTING_VALUES = ("setting", "boot_val", "reset_val", "value", "current", "requested", "effective")
"""Members that hold a value of the setting named by ``name`` or ``key`` beside them."""

_PRIVATE_SETTINGS = re.compile(
    r"(_file|_dir|_directory|_directories|_path|_command|conninfo|_hostname|tablespaces?)$"
    r"|^(listen_addresses|cluster_name|synchronous_standby_names|synchronized_standby_slots|primary_slot_name"
    r"|application_name|bonjour_name|krb_.*|role|session_authorization|syslog_ident|event_source)$"
)
_HARMLESS_VALUES = frozenset({"", "on", "off", "default", "none", REDACTED})
_PRIVATE_MEMBERS = frozenset(
    {
        *("hostname", "data_directory", "socket_directory", "listen_address"),
        *("role", "database", "application_name", "owner"),
    }
)
_FILE_MEMBERS = frozenset({"sourcefile", "file"})

_QUOTED_OR_WORD = r"(?:'(?:[^'\\]|\\.)*'|[^\s,;)]+)"
_URI = re.compile(r"postgres(?:ql)?://[^\s\"']+", re.IGNORECASE)
_CONNECTION_WORD = re.compile(
    r"\b(host|hostaddr|user|dbname|passfile|service|servicefile|sslkey|sslcert|sslrootcert|sslpassword|krbsrvname)"
    rf"(\s*=\s*){_QUOTED_OR_WORD}",
    re.IGNORECASE,
)
_HOME = re.compile(
    r"(?:/(?:var/|export/|usr/)?home/[^/\s'\":,;)]+|/Users/[^/\s'\":,;)]+|/root(?![\w-])"
    r"|[A-Za-z]:\\Users\\[^\\\s'\"]+)"
)
_ADDRESS = re.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?:/\d{1,2})?(?![\w.-])")
_HOME_OWNER = re.compile(r"(?:/home/|/Users/|\\Users\\)([^/\\\s'\":,;)]+)")
_NETWORK_DEVICE = re.compile(r"//|[\w.-]+:/")
_NAME = re.compile(r"[\w.-]+")
_LONG_ENOUGH = 8  # characters; a shorter value of a setting could be an ordinary word elsewhere
_COMMON_NAMES = _HARMLESS_VALUES | frozenset(
    ["localhost", "postgres", "template0", "template1", "public", "root", "admin", "user", "ubuntu", "debian"]
)


def without_secrets(experiment: Experiment) -> Experiment:
    """Return the experiment without passwords and without commands that may hold them."""
    return _rewritten(experiment, _Rewriter(redacted, lambda text: redacted("", text)))


def portable(experiment: Experiment) -> Experiment:
    """Return the experiment without anything that identifies people, hosts or their network."""
    kept = _structural_texts(experiment)
    private = _pattern(set(_private_values(dump_experiment(experiment))) - kept)
    rewriter = _Rewriter(
        _portable_value,
        lambda text: text if text in kept else _portable_text(text, private),
        is_portable=True,
    )
    return _rewritten(experiment, rewriter)


@dataclass(frozen=True)
class _Rewriter:
    """How settings and other texts are rewritten. ``is_portable`` also leaves out private members."""

    setting: Callable[[str, str], str]
    text: Callable[[str], str]
    is_portable: bool = False


def _rewritten(experiment: Experiment, rewriter: _Rewriter) -> Experiment:
    document = _walk(dump_experiment(experiment), rewriter)
    for variant in document["variants"]:
        variant["settings"] = _settings(variant["settings"], rewriter)
    return load_experiment(document)


def _settings(settings: Mapping[str, str], rewriter: _Rewriter) -> dict[str, str]:
    return {name: rewriter.setting(name, value) for name, value in settings.items()}


def _walk(node: Any, rewriter: _Rewriter) -> Any:
    if isinstance(node, str):
        return rewriter.text(node)
    if isinstance(node, list):
        return [_walk(item, rewriter) for item in node]
    if not isinstance(node, dict):
        return node
    name = _setting_name(node)
    return {key: _member(key, value, name, rewriter) for key, value in node.items()}


def _member(key: str, value: Any, name: str | None, rewriter: _Rewriter) -> Any:
    if name is not None and key in _SETTING_VALUES and isinstance(value, str):
        return rewriter.text(rewriter.setting(name, value))
    if rewriter.is_portable and key in _FILE_MEMBERS and isinstance(value, str):
        return PurePosixPath(value).name
    if rewriter.is_portable and key in _PRIVATE_MEMBERS and isinstance(value, str):
        return REDACTED
    if rewriter.is_portable and key in _PRIVATE_MEMBERS and isinstance(value, dict) and "value" in value:
        return {"unknown": _LEFT_OUT, "source": _LEFT_OUT}
    if rewriter.is_portable and key == "device" and _NETWORK_DEVICE.match(str(value)):
        return REDACTED
    return _walk(value, rewriter)


def _setting_name(node: Mapping[str, Any]) -> str | None:
    """Return which setting an object is about, if it is: a Guc, a difference, an override, a change."""
    name = node.get("name", node.get("key"))
    return name if isinstance(name, str) and any(key in node for key in _SETTING_VALUES) else None


def _portable_value(name: str, value: str) -> str:
    if value.lower() in _HARMLESS_VALUES:
        return value
    return REDACTED if _PRIVATE_SETTINGS.search(name) else redacted(name, value)


def _portable_text(text: str, private: re.Pattern[str] | None) -> str:
    if private is not None:
        text = private.sub(REDACTED, text)
    text = redacted("", _URI.sub(f"postgresql://{REDACTED}", text))
    text = _CONNECTION_WORD.sub(rf"\1\2{REDACTED}", text)
    return _ADDRESS.sub("(address)", _HOME.sub("~", text))


def _structural_texts(experiment: Experiment) -> set[str]:
    """Return texts that other parts of the experiment refer to: they stay, whatever the host is called."""
    enums = (DesignKind, Stopping, ResetPolicy, Decision, Layer, Risk, Effect)
    names = {experiment.id, experiment.created, experiment.baseline, *experiment.workloads}
    names |= {variant.name for variant in experiment.variants}
    names |= {metric for block in experiment.blocks for arm in block.arms for metric in arm.values}
    return names | {verdict.metric for verdict in experiment.verdicts} | {v.value for e in enums for v in e}


def _pattern(values: set[str]) -> re.Pattern[str] | None:
    """Return a pattern for private values; names are found as whole words only, the longest first."""
    parts = [
        rf"(?<![\w-]){re.escape(value)}(?![\w-])" if _NAME.fullmatch(value) else re.escape(value)
        for value in sorted(values, key=lambda value: (-len(value), value))
    ]
    return re.compile("|".join(parts)) if parts else None


def _private_values(node: Any) -> Iterator[str]:
    """Yield private values, which may stand in other texts too: in a note, a log line, a source."""
    if isinstance(node, str):
        yield from (match[1] for match in _HOME_OWNER.finditer(node) if _is_telling(match[1]))
    elif isinstance(node, list):
        for item in node:
            yield from _private_values(item)
    elif isinstance(node, dict):
        name = _setting_name(node)
        for key, value in node.items():
            if name is not None and key in _SETTING_VALUES and isinstance(value, str):
                if len(value) >= _LONG_ENOUGH and _portable_value(name, value) == REDACTED:
                    yield value
            elif key in _PRIVATE_MEMBERS:
                text = value.get("value") if isinstance(value, dict) else value
                if isinstance(text, str):
                    yield from filter(_is_telling, {text, text.partition(".")[0]})
            yield from _private_values(value)


def _is_telling(name: str) -> bool:
    """Whether a name says something about whose it is."""
    return len(name) > 2 and name.lower() not in _COMMON_NAMES
