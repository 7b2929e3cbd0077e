"""Remove everything that identifies people, hosts or networks from an experiment. Pure.

Facts are kept only if they are on a list of harmless ones; names in the other facts are also removed from all
other texts: from questions, notes, log lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pgdyno.host.cpu_idling import AwakeMeans
from pgdyno.model.experiments.experiment import CELL_OPTION, DesignKind, Stopping
from pgdyno.model.experiments.step_record import StallCause
from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.experiments.workload import ResetPolicy
from pgdyno.model.plans.plan import Effect, Layer, Risk
from pgdyno.postgres.secrets import REDACTED
from pgdyno.store.privacy.portable_facts import portable_host, portable_server, portable_setting
from pgdyno.store.privacy.redaction import SETTING_VALUES, portable_text, rewritten, setting_name

_NAME_MEMBERS = frozenset(
    {
        *("hostname", "data_directory", "socket_directory", "listen_address"),
        *("role", "database", "application_name", "owner", "target", "device"),
    }
)
_HOME_OWNER = re.compile(r"/(?:home|Users)/([^/\s'\":,;)]+)")
_WORD = re.compile(r"[\w.-]+")
_BELOW = r"(?:/[^\s'\",:;)]*)?"
_LONG_ENOUGH = 8  # characters; a shorter value of a setting could be an ordinary word in other texts
_COMMON_NAMES = frozenset(
    {
        *("localhost", "postgres", "template0", "template1", "public", "root", "admin", "user", "ubuntu"),
        *("debian", "default", "none", "overlay", "tmpfs"),
    }
)


def portable(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return an experiment's document without data that identify people, hosts or their network."""
    structural = _structural_texts(document)
    rest: dict[str, Any] = dict(document)
    host, server = rest.pop("host"), rest.pop("server")
    names = _pattern({*_names([host, server, rest]), *_statements(rest)} - structural)
    rest = rewritten(
        rest,
        lambda name, value: portable_setting(name, value, _vartype(server, name)),
        lambda text: text if text in structural else portable_text(_without(names, text)),
    )
    _hide_installations(rest)
    _hide_statements(rest)
    _hide_cell(rest)
    rest |= {"host": portable_host(host), "server": portable_server(server)}
    return rest


def _without(names: re.Pattern[str] | None, text: str) -> str:
    return text if names is None else names.sub(REDACTED, text)


def _vartype(server: Mapping[str, Any], name: str) -> str | None:
    settings = server.get("settings")
    guc = settings.get(name) if isinstance(settings, Mapping) else None
    return guc.get("vartype") if isinstance(guc, Mapping) else None


def _hide_installations(document: dict[str, Any]) -> None:
    """Replace the servers of variants by numbers: the names are private, but not that they differ."""
    named = dict.fromkeys(v["server"] for v in document["variants"] if v["server"] is not None)
    numbers = {name: f"server-{number}" for number, name in enumerate(named, 1)}
    for variant in document["variants"]:
        variant["server"] = numbers.get(variant["server"])
    if document.get("installation") not in (None, "embedded"):
        document["installation"] = REDACTED


def _hide_statements(document: dict[str, Any]) -> None:
    """Replace the names of captured workloads' statements by numbers: they contain table names."""
    for likeness in document.get("likenesses", {}).values():
        for number, statement in enumerate(likeness["statements"], 1):
            statement["name"] = f"statement-{number}"
    names = {
        name: f"failed-statement-{number}" for number, name in enumerate(_failed_statements(document), 1)
    }
    for failure in _failures(document):
        failure["statement"] = names.get(failure["statement"], "")


def _hide_cell(document: dict[str, Any]) -> None:
    """Replace the names of a cell's file and of its load hosts, which are chosen by users."""
    if CELL_OPTION in document.get("options", {}):
        document["options"] = {**document["options"], CELL_OPTION: "hosts.toml"}
    hosts = document.get("load_hosts", [])
    known = list(dict.fromkeys(name for one in hosts for name in one["names"]))
    document["load_hosts"] = [
        {**one, "names": [f"load-host-{known.index(name) + 1}" for name in one["names"]]} for one in hosts
    ]


def _statements(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of captured workloads' statements: they contain table names, and notes mention them."""
    for likeness in document.get("likenesses", {}).values():
        yield from (one["name"] for one in likeness["statements"])
    yield from _failed_statements(document)


def _failed_statements(document: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(one["statement"] for one in _failures(document) if one["statement"]))


def _failures(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for block in document["blocks"]:
        for arm in block["arms"]:
            yield from arm.get("failures", ())


def _structural_texts(document: Mapping[str, Any]) -> set[str]:
    """Return names that the experiment itself refers to; they must stay unchanged."""
    enums = (DesignKind, Stopping, ResetPolicy, Decision, Layer, Risk, Effect, StallCause, AwakeMeans)
    names = {document[member] for member in ("id", "created", "baseline", "emulated_machine")}
    names |= {*document["workloads"], *document["operations"].values(), *document["generators"].values()}
    names |= {variant["name"] for variant in document["variants"]}
    names |= {cell["load"] for cell in document["cells"].values()}
    arms = [arm for block in document["blocks"] for arm in block["arms"]]
    names |= {metric for arm in arms for metric in arm["values"]}
    names |= {*_step_names(arm["step"] for arm in arms if arm["step"])}
    return names | {one["metric"] for one in document["verdicts"]} | {v.value for e in enums for v in e}


def _step_names(steps: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the counted units of steps, and the names of their client roles."""
    for step in steps:
        yield step["operations"]
        yield from (role["name"] for role in step["roles"])


def _pattern(values: Iterable[str]) -> re.Pattern[str] | None:
    """Return a pattern for private names, the longest first.

    Names that are words match whole words only; a path also matches all paths below it.
    """
    parts = [
        rf"(?<![\w-]){re.escape(value)}(?![\w-])"
        if _WORD.fullmatch(value)
        else re.escape(value) + (_BELOW if value.startswith("/") else "")
        for value in sorted(values, key=lambda value: (-len(value), value))
    ]
    return re.compile("|".join(parts)) if parts else None


def _names(node: Any) -> Iterator[str]:
    """Yield private names in the facts; other texts may contain them too."""
    if isinstance(node, str):
        yield from filter(_is_identifying, _HOME_OWNER.findall(node))
    elif isinstance(node, list):
        for item in node:
            yield from _names(item)
    elif isinstance(node, Mapping):
        setting = setting_name(node)
        for key, value in node.items():
            if key in _NAME_MEMBERS:
                yield from _names_in(value)
            elif setting is not None and key in SETTING_VALUES and isinstance(value, str):
                shown = portable_setting(setting, value, node.get("vartype"))
                is_builtin = value == node.get("boot_val")  # event_source is "PostgreSQL" everywhere
                if len(value) >= _LONG_ENOUGH and shown == REDACTED and not is_builtin:
                    yield value
            yield from _names(value)


def _names_in(member: Any) -> Iterator[str]:
    """Yield a name and its first label: ``db7`` of ``db7.corp.example``."""
    name = member.get("value") if isinstance(member, Mapping) else member
    if isinstance(name, str):
        yield from filter(_is_identifying, {name, name.partition(".")[0]})


def _is_identifying(name: str) -> bool:
    """Whether a name may identify its owner: it is neither short nor common."""
    return len(name) > 2 and name.lower() not in _COMMON_NAMES
