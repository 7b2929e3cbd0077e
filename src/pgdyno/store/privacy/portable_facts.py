"""The facts about a host and a server that a bundle contains. Pure.

A fact is kept only if it is listed here: facts added to ``host/`` or ``postgres/`` later are left out until a
developer decides that they identify nobody. Only names assigned by the kernel or by PostgreSQL remain.

Remove everything that identifies people, hosts or networks from an experiment. Pure.

Facts are kept only if they are on a list of harmless ones; names in the other facts are also removed from all
other texts: from questions, notes, log lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from pgdyno.host.cpu_idling import AwakeMeans
from pgdyno.model.experiments.experiment import CELL_OPTION, DesignKind, Stopping
from pgdyno.model.experiments.step_record import StallCause
from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.experiments.workload import ResetPolicy
from pgdyno.model.plans.plan import Effect, Layer, Risk
from pgdyno.postgres.secrets import REDACTED, is_postgresqls, redacted
from pgdyno.store.privacy.redaction import SETTING_VALUES, portable_text, rewritten, setting_name

LEFT_OUT = "left out of the bundle"

Kept: TypeAlias = "Mapping[str, Kept] | Callable[[Any], Any]"
"""The members that are kept, or a function that converts a value."""

_HARMLESS_VALUES = frozenset({"", "on", "off", "default", "none", REDACTED})
PUBLIC_TEXTS = frozenset(
    {
        *("archive_library", "backtrace_functions", "client_encoding", "createrole_self_grant", "DateStyle"),
        *("debug_io_direct", "default_table_access_method", "default_text_search_config", "jit_provider"),
        *("lc_collate", "lc_ctype", "lc_messages", "lc_monetary", "lc_numeric", "lc_time"),
        *("local_preload_libraries", "session_preload_libraries", "shared_preload_libraries"),
        *("log_connections", "log_destination", "restrict_nonsystem_relation_kind", "server_encoding"),
        *("server_version", "ssl_ciphers", "ssl_ecdh_curve", "ssl_groups", "ssl_library"),
        *("ssl_tls13_ciphers", "timezone_abbreviations", "wal_consistency_checking"),
    }
)
"""PostgreSQL's built-in settings of type string that do not identify a person, place or network."""

PRIVATE_TEXTS = frozenset(
    {
        *("TimeZone", "application_name", "archive_cleanup_command", "archive_command", "bonjour_name"),
        *("cluster_name", "config_file", "data_directory", "default_tablespace", "dynamic_library_path"),
        *("event_source", "extension_control_path", "extension_destdir", "external_pid_file", "hba_file"),
        *("ident_file", "krb_server_keyfile", "listen_addresses", "log_directory", "log_filename"),
        *("log_line_prefix", "log_timezone", "oauth_validator_libraries", "output_plugin_libraries"),
        *("primary_conninfo", "primary_slot_name", "promote_trigger_file", "recovery_end_command"),
        *("recovery_target", "recovery_target_lsn", "recovery_target_name", "recovery_target_time"),
        *("recovery_target_timeline", "recovery_target_xid", "restore_command", "role", "search_path"),
        *("session_authorization", "ssl_ca_file", "ssl_cert_file", "ssl_crl_dir", "ssl_crl_file"),
        *("ssl_dh_params_file", "ssl_key_file", "ssl_passphrase_command", "stats_temp_directory"),
        *("synchronized_standby_slots", "synchronous_standby_names", "syslog_ident", "temp_tablespaces"),
        *("unix_socket_directories", "unix_socket_group"),
    }
)
_PUBLIC, _PRIVATE = (frozenset(map(str.lower, names)) for names in (PUBLIC_TEXTS, PRIVATE_TEXTS))
_PUBLIC_FILES = frozenset({"postgresql.conf", "postgresql.auto.conf", "postgresql.base.conf"})
_PUBLIC_DEVICE = re.compile(r"/dev/((sd|vd|xvd|hd|nvme|mmcblk|md|dm-)[0-9a-z]*|root)|overlay|tmpfs|none")
_PUBLIC_OPTION = re.compile(r"[a-z0-9_]+(=(\d+(\.\d)?[kKmMgG]?|ordered|writeback|journal))?")


def portable_setting(name: str, value: str, vartype: str | None = None) -> str:
    """Return a setting's value, redacted if it may be identifying; ``vartype`` None: judged by name."""
    is_text = name.lower() in _PRIVATE if vartype is None else vartype == "string"
    is_private = is_text and name.lower() not in _PUBLIC and value.lower() not in _HARMLESS_VALUES
    return REDACTED if is_private else redacted(name, value)


def portable_host(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a host's facts for a bundle."""
    return _members(document, _HOST)


def portable_server(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a server's facts for a bundle. Reasons are left out: they may name databases and roles."""
    kept = _members(document, _SERVER)
    return {key: _without_reason(value) for key, value in kept.items()}


def _kept(node: Any, rule: Kept) -> Any:
    if isinstance(node, list):
        return [_kept(item, rule) for item in node]
    if _is_fact(node):
        others = {key: portable_text(str(text)) for key, text in node.items() if key != "value"}
        return {"value": _kept(node["value"], rule), **others} if "value" in node else others
    if callable(rule):
        return rule(node)
    return _members(node, rule) if isinstance(node, Mapping) else REDACTED


def _members(node: Mapping[str, Any], rules: Mapping[str, Kept]) -> dict[str, Any]:
    """Return the members that have a rule; other facts are marked as left out."""
    return {
        key: _kept(value, rules[key]) if key in rules else {"unknown": LEFT_OUT, "source": LEFT_OUT}
        for key, value in node.items()
        if key in rules or _is_fact(value)
    }


def _without_reason(node: Any) -> Any:
    if _is_fact(node) and "unknown" in node:
        return {**node, "unknown": LEFT_OUT}
    if isinstance(node, dict) and not _is_fact(node):
        return {key: _without_reason(value) for key, value in node.items()}
    return node


def _is_fact(node: Any) -> bool:
    return isinstance(node, Mapping) and "source" in node and ("value" in node or "unknown" in node)


def _whole(node: Any) -> Any:
    """Return a value with all its members; texts are made portable."""
    if isinstance(node, Mapping):
        return {key: _kept(value, _whole) for key, value in node.items()}
    return portable_text(node) if isinstance(node, str) else node


def _settings(node: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _guc(name, guc)
        for name, guc in node.items()
        if isinstance(guc, Mapping) and is_postgresqls(name)
    }


def _guc(name: str, guc: Mapping[str, Any]) -> dict[str, Any]:
    vartype = guc.get("vartype")
    values = {
        key: portable_setting(name, guc[key], vartype)
        for key in ("setting", "boot_val", "reset_val")
        if isinstance(guc.get(key), str)
    }
    file = guc.get("sourcefile")
    if isinstance(file, str):
        base = PurePosixPath(file).name
        values["sourcefile"] = base if base in _PUBLIC_FILES else REDACTED
    return {**{key: guc[key] for key in _GUC_MEMBERS if key in guc}, **values}


def _override(node: Mapping[str, Any]) -> dict[str, Any]:
    name = str(node.get("name", ""))
    return {
        "role": None if node.get("role") is None else REDACTED,
        "database": None if node.get("database") is None else REDACTED,
        "name": name if is_postgresqls(name) else REDACTED,
        "value": portable_setting(name, str(node.get("value", ""))),
        "connection_limit": node.get("connection_limit"),
    }


def _target(path: str) -> str:
    return path if path == "/" else REDACTED


def _device(device: str) -> str:
    return device if _PUBLIC_DEVICE.fullmatch(device) else REDACTED


def _option(option: str) -> str:
    return option if _PUBLIC_OPTION.fullmatch(option) else f"{option.partition('=')[0]}={REDACTED}"


_GUC_MEMBERS = (
    *("name", "setting", "unit", "vartype", "context", "source", "boot_val", "reset_val", "min_val"),
    *("max_val", "enumvals", "sourcefile", "sourceline", "pending_restart"),
)
_HOST: Mapping[str, Kept] = {
    "cpu": _whole,
    "memory": _whole,
    "limits": _whole,
    "kernel": _whole,
    "block_devices": _whole,  # named by the kernel: nvme0n1, dm-0, md127
    "mounts": {
        "target": _target,
        "device": _device,
        "filesystem": _whole,
        "options": _option,
        "available_bytes": _whole,
        "disk": _whole,
    },
    "nics": {"rx_queues": _whole, "tx_queues": _whole, "rps_cpus": _whole},
}
_SERVER: Mapping[str, Kept] = {
    "version_num": _whole,
    "version": _whole,
    "build": _whole,
    "settings": _settings,
    "capabilities": _whole,
    "overrides": _override,
    "databases_bytes": _whole,
    "shared_memory_bytes": _whole,
    "standbys": {"state": _whole, "sync_state": _whole},
    "is_in_recovery": _whole,
    "is_superuser": _whole,
    "is_colocated": _whole,
    "managers": {"name": _whole},
    "program": {
        "atomics": _whole,
        "allocator": _whole,
        "malloc_variables": _whole,
        "scheduling_policy": _whole,
        "has_huge_pages": _whole,
    },
}


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
