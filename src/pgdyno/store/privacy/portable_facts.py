"""The facts about a host and a server that a bundle contains. Pure.

A fact is kept only if it is listed here: facts added to ``host/`` or ``postgres/`` later are left out until a
developer decides that they identify nobody. Only names assigned by the kernel or by PostgreSQL remain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from pgdyno.postgres.secrets import REDACTED, is_postgresqls, redacted
from pgdyno.store.privacy.redaction import portable_text

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
