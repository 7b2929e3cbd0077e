"""Whether other server binaries can run an existing cluster with its data and configuration. Pure.

The check is stricter than pg_upgrade's, which rewrites files where formats differ. Here other binaries read
the same files: catalogs, page sizes, libraries and collations must match.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

_KEYTAB = "krb_server_keyfile"
_REACHED_BY = frozenset({"port", "unix_socket_directories", "listen_addresses", _KEYTAB})
"""Settings that clients need to connect. Unset ones have compiled-in defaults."""
_SEEN_OTHERWISE = frozenset(
    {"llvm", "icu", "ssl", "openssl", "lz4", "zstd", "libxml", "tcl", "perl", "python", "uuid", "ossp-uuid"}
    | {"gssapi", "ldap", "pam", "bsd-auth", "pgport"}
)
"""configure options checked through the features that the server uses, not by name."""
_LIBRARY_DIRECTORY = "$libdir/"  # the binaries' own library directory
_IRRELEVANT = frozenset({"extra-version", "includes", "libraries", "krb-srvnam", "template"})


@dataclass(frozen=True)
class Requirements:
    """A server's requirements. ``layout``: compiled-in numbers in its control file."""

    layout: Mapping[str, str]
    extensions: frozenset[tuple[str, str]]  # name, version
    libraries: frozenset[str]  # named by functions and settings
    auth_methods: frozenset[str]  # in pg_hba.conf
    has_ssl: bool
    compressions: frozenset[str]  # supported by its binaries: values or WAL may be compressed by these
    has_xml: bool  # tables or functions use the type
    search_files: frozenset[str]  # of text search dictionaries, without file extensions
    collator: str | None  # ICU's collation version; None: nothing is sorted by ICU
    has_jit: bool
    defaults: Mapping[str, str | None]  # compiled-in defaults of settings that are not set anywhere
    options: frozenset[str] | None  # configure's: lz4 for --with-lz4; None: not recorded in its binaries


@dataclass(frozen=True)
class Offers:
    """Capabilities of server binaries, read from a scratch server; fields as in ``Requirements``."""

    layout: Mapping[str, str]
    extensions: frozenset[tuple[str, str]]  # available for CREATE EXTENSION
    refused: Mapping[str, str]  # libraries that could not be loaded, with the reason
    unsupported_methods: frozenset[str]
    has_ssl: bool
    compressions: frozenset[str]
    has_xml: bool
    search_files: frozenset[str]
    collator: str | None
    has_jit: bool
    defaults: Mapping[str, str | None]
    options: frozenset[str] | None


def lacking(demands: Requirements, offers: Offers) -> tuple[str, ...]:
    """Return one sentence per missing capability; empty if nothing is missing."""
    return (*_lacking_in_data(demands, offers), *_lacking_in_configuration(demands, offers))


def changed(demands: Requirements, offers: Offers) -> tuple[str, ...]:
    """Return one sentence per change in the server's behaviour."""
    notes = []
    if demands.has_jit and not offers.has_jit:
        notes.append("without JIT compilation, which its current binaries have")
    if demands.options is not None and offers.options is not None:
        lost = demands.options - offers.options - _SEEN_OTHERWISE - _IRRELEVANT
        notes += [f"without {option}, which its current binaries are built with" for option in sorted(lost)]
    for name, was, becomes in _other_defaults(demands, offers):
        if name not in _REACHED_BY:
            notes.append(f"{name} is not set anywhere and changes from {was} to {becomes}")
    return tuple(notes)


def foreign(demands: Requirements, own: Collection[str], *, has_paths: bool) -> tuple[str, ...]:
    """Return a server's extensions and libraries that are not in ``own``, a build's own ones.

    ``has_paths``: the server sets library paths, so a name without ``$libdir/`` may resolve anywhere.
    """
    extensions = {name for name, _ in demands.extensions} - {*own}
    libraries = {one for one in demands.libraries if not _is_own(one, own, has_paths=has_paths)}
    return (*sorted(extensions), *sorted(libraries))


def _is_own(library: str, own: Collection[str], *, has_paths: bool) -> bool:
    name = library.removeprefix(_LIBRARY_DIRECTORY)
    return name.removesuffix(".so") in own and (name != library or not has_paths)


def version_conflict(running: str, running_major: int, offered: str, offered_major: int) -> str | None:
    """Return why binaries of version ``offered`` cannot run a server's data; None if they can.

    PostgreSQL does not support downgrading to an older minor release.
    """
    both = f"the server runs PostgreSQL {running}, these binaries are {offered}"
    if running_major != offered_major:
        return f"{both}: a different major version requires pg_upgrade"
    if _release(offered) < _release(running):
        return f"{both}: an older release than the one that wrote the data"
    return None


def options_in(configure: str | None) -> frozenset[str] | None:
    """Return configure's --with options; None if unknown, as for Meson builds."""
    return frozenset(re.findall(r"--with-([a-z0-9-]+)", configure)) if configure else None


def _lacking_in_data(demands: Requirements, offers: Offers) -> Iterator[str]:
    for name, wanted in demands.layout.items():
        if offers.layout.get(name) != wanted:
            yield f"{name} is {wanted} in its control file, but {offers.layout.get(name)} in these binaries"
    for name, version in sorted(demands.extensions - offers.extensions):
        yield f"extension {name} {version} is missing"
    for library in sorted(demands.libraries & offers.refused.keys()):
        yield f"library {library} cannot be loaded: {offers.refused[library]}"
    for method in sorted(demands.compressions - offers.compressions):
        yield f"values or WAL may be compressed with {method}, which these binaries do not support"
    if demands.has_xml and not offers.has_xml:
        yield "it uses the type xml, which these binaries do not support"
    for file in sorted(demands.search_files - offers.search_files):
        yield f"text search dictionaries use a file {file}, which the binaries' tsearch_data lacks"
    if demands.collator not in (None, offers.collator):
        theirs = "have no ICU" if offers.collator is None else f"have version {offers.collator}"
        yield f"text is sorted by ICU collations of version {demands.collator}, but these binaries {theirs}"


def _lacking_in_configuration(demands: Requirements, offers: Offers) -> Iterator[str]:
    for method in sorted(demands.auth_methods & offers.unsupported_methods):
        yield f'pg_hba.conf uses the method "{method}", which these binaries do not support'
    if demands.has_ssl and not offers.has_ssl:
        yield "it offers SSL, which these binaries do not support"
    for name, was, becomes in _other_defaults(demands, offers):
        if name in _REACHED_BY:
            yield f"{name} is not set anywhere and would change from {was} to {becomes}: set it to {was}"


def _other_defaults(demands: Requirements, offers: Offers) -> Iterator[tuple[str, str, str]]:
    for name, was in sorted(demands.defaults.items()):
        becomes = offers.defaults.get(name, was)
        is_used = name != _KEYTAB or "gss" in demands.auth_methods
        if becomes != was and is_used:
            yield name, was or "empty", becomes or "empty"


def _release(version: str) -> tuple[int, ...]:
    """Return a version's numbers: 18.6 (Debian 18.6-1) → 18, 6; for 19beta1 only the first."""
    return tuple(int(number) for number in re.findall(r"^\d+|(?<=^\d\d\.)\d+", version))
