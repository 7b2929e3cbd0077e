"""Settings of PostgreSQL that no variant may have.

They say where a server is, who enters it, or what it runs. Given on the command line of a server that pgdyno
starts, they would win over its own.

Source: ``postgres --describe-config`` of 15 and 18, the documentation's chapter 20, and Debian's patches; of
extensions in contrib. Endings stand for what other versions and extensions have.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Group:
    """Names, as patterns, that are refused for one reason."""

    patterns: tuple[str, ...]
    reason: str


CONFIGURATION = Group(
    ("config_file", "data_directory", "include", "include_dir", "include_if_exists"),
    "it would bring other data or a configuration that is unchecked, fsync = off included",
)
"""These can also hide that a server is not durable."""

REFUSED = (
    CONFIGURATION,
    Group(
        ("listen_addresses", "port", "unix_socket_*", "bonjour*"),
        "a scratch server trusts everybody who reaches it, and is reached by its private socket alone",
    ),
    Group(
        ("hba_file", "ident_file", "krb_server_keyfile", "ssl_*_file", "ssl_crl_dir", "oauth_*"),
        "it decides who may enter the server",
    ),
    Group(
        ("primary_conninfo", "primary_slot_name", "recovery_target*", "promote_trigger_file"),
        "a scratch server follows no other server",
    ),
    Group(("*_command", "*.command", "plperl.on_*", "pltcl*.start_proc"), "it names a program that is run"),
    Group(
        ("*_library", "oauth_validator_libraries", "output_plugin_libraries", "jit_provider"),
        "it names code that the server loads",
    ),
    Group(
        ("*_file", "*_filename", "*_directory", "*_directories", "*_dir", "*_path", "extension_destdir"),
        "it names a file or a directory",
    ),
)
"""What is refused and why; the first group that has a name counts."""

_HARMLESS = frozenset({"search_path"})  # of schemas
_LIBRARY = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
_PRELOADED = {
    "shared_preload_libraries": re.compile(_LIBRARY),
    "session_preload_libraries": re.compile(_LIBRARY),
    "local_preload_libraries": re.compile(rf"(\$libdir/plugins/)?{_LIBRARY}"),
}


def why_refused(name: str, value: str) -> str | None:
    """Return why a variant may not have this setting, or this value of it; None if it may."""
    if name in _PRELOADED:
        return _why_not_loaded(_PRELOADED[name], value)
    if name in _HARMLESS:
        return None
    return next((group.reason for group in REFUSED if belongs(name, group)), None)


def belongs(name: str, group: Group) -> bool:
    """Whether a setting is one of a group's."""
    return any(fnmatchcase(name, pattern) for pattern in group.patterns)


def _why_not_loaded(allowed: re.Pattern[str], value: str) -> str | None:
    libraries = [one.strip().strip('"') for one in value.split(",")] if value.strip() else []
    wrong = [one for one in libraries if not allowed.fullmatch(one)]
    return f'"{wrong[0]}" is not the plain name of a library' if wrong else None
