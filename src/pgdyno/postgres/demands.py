"""Whether other programs can run a server as it is, by its data and configuration. Pure.

This is more than pg_upgrade looks at, which has files written anew where formats differ: here the very files
are read by other programs, which have to find the same catalogs, page sizes, libraries and collations.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

_KEYTAB = "krb_server_keyfile"
_REACHED_BY = frozenset({"port", "unix_socket_directories", "listen_addresses", _KEYTAB})
"""Settings without which clients find no way in. They are compiled in where nobody sets them."""
_SEEN_OTHERWISE = frozenset(
    {"llvm", "icu", "ssl", "openssl", "lz4", "zstd", "libxml", "tcl", "perl", "python", "uuid", "ossp-uuid"}
    | {"gssapi", "ldap", "pam", "bsd-auth", "pgport"}
)
"""Options of configure whose loss is seen by what the server uses of them."""
_LIBRARY_DIRECTORY = "$libdir/"  # of the programs themselves
_TELL_NOTHING = frozenset({"extra-version", "includes", "libraries", "krb-srvnam", "template"})


@dataclass(frozen=True)
class Demands:
    """A server's requirements. ``layout``: numbers in its control file that are compiled in."""

    layout: Mapping[str, str]
    extensions: frozenset[tuple[str, str]]  # name, version
    libraries: frozenset[str]  # that functions and settings name
    auth_methods: frozenset[str]  # of pg_hba.conf
    has_ssl: bool
    compressions: frozenset[str]  # that its programs know, so that values or WAL may be compressed by them
    has_xml: bool  # tables or functions have the type
    search_files: frozenset[str]  # of text search dictionaries, without their endings
    collator: str | None  # ICU's; None: nothing is sorted by ICU
    has_jit: bool
    defaults: Mapping[str, str | None]  # compiled in, of settings that nobody sets
    options: frozenset[str] | None  # configure's: lz4 for --with-lz4; None: its programs do not say


@dataclass(frozen=True)
class Offers:
    """Capabilities of programs, read from their own scratch server; members as in ``Demands``."""

    layout: Mapping[str, str]
    extensions: frozenset[tuple[str, str]]  # that could be created
    refused: Mapping[str, str]  # libraries that could not be loaded, and why
    unsupported_methods: frozenset[str]
    has_ssl: bool
    compressions: frozenset[str]
    has_xml: bool
    search_files: frozenset[str]
    collator: str | None
    has_jit: bool
    defaults: Mapping[str, str | None]
    options: frozenset[str] | None


def lacking(demands: Demands, offers: Offers) -> tuple[str, ...]:
    """Return sentences on missing capabilities of the programs; empty: nothing is missing."""
    return (*_lacking_in_data(demands, offers), *_lacking_in_configuration(demands, offers))


def changed(demands: Demands, offers: Offers) -> tuple[str, ...]:
    """Return sentences on how the server would behave differently."""
    notes = []
    if demands.has_jit and not offers.has_jit:
        notes.append("without JIT compilation, which its present programs have")
    if demands.options is not None and offers.options is not None:
        lost = demands.options - offers.options - _SEEN_OTHERWISE - _TELL_NOTHING
        notes += [f"without {option}, which its present programs are built with" for option in sorted(lost)]
    for name, was, becomes in _other_defaults(demands, offers):
        if name not in _REACHED_BY:
            notes.append(f"{name} is not set anywhere, and changes from {was} to {becomes}")
    return tuple(notes)


def foreign(demands: Demands, own: Collection[str], *, has_paths: bool) -> tuple[str, ...]:
    """Return the extensions and libraries of a server that are not among a build's ``own``.

    With paths for libraries of the server's own, a name without ``$libdir/`` may lead anywhere.
    """
    extensions = {name for name, _ in demands.extensions} - {*own}
    libraries = {one for one in demands.libraries if not _is_own(one, own, has_paths=has_paths)}
    return (*sorted(extensions), *sorted(libraries))


def _is_own(library: str, own: Collection[str], *, has_paths: bool) -> bool:
    name = library.removeprefix(_LIBRARY_DIRECTORY)
    return name.removesuffix(".so") in own and (name != library or not has_paths)


def unfit_version(running: str, running_major: int, offered: str, offered_major: int) -> str | None:
    """Return why programs of a version cannot run a server's data; None: they can.

    Going back to an older minor release is not supported by PostgreSQL.
    """
    both = f"the server runs PostgreSQL {running}, and they are {offered}"
    if running_major != offered_major:
        return f"{both}: another major version takes pg_upgrade"
    if _release(offered) < _release(running):
        return f"{both}: an older release than the one that has written the data"
    return None


def options_in(configure: str | None) -> frozenset[str] | None:
    """Return configure's options; None if unknown, as for builds by meson."""
    return frozenset(re.findall(r"--with-([a-z0-9-]+)", configure)) if configure else None


def _lacking_in_data(demands: Demands, offers: Offers) -> Iterator[str]:
    for name, wanted in demands.layout.items():
        if offers.layout.get(name) != wanted:
            yield f"{name} is {wanted} in its control file, and {offers.layout.get(name)} in these programs"
    for name, version in sorted(demands.extensions - offers.extensions):
        yield f"extension {name} {version} is missing"
    for library in sorted(demands.libraries & offers.refused.keys()):
        yield f"library {library} cannot be loaded: {offers.refused[library]}"
    for method in sorted(demands.compressions - offers.compressions):
        yield f"values or WAL may be compressed by {method}, which they are built without"
    if demands.has_xml and not offers.has_xml:
        yield "it uses the type xml, which they are built without"
    for file in sorted(demands.search_files - offers.search_files):
        yield f"text search dictionaries use a file {file}, which their tsearch_data does not have"
    if demands.collator not in (None, offers.collator):
        theirs = "have no ICU" if offers.collator is None else f"have version {offers.collator}"
        yield f"texts are sorted by ICU's collations of version {demands.collator}, and they {theirs}"


def _lacking_in_configuration(demands: Demands, offers: Offers) -> Iterator[str]:
    for method in sorted(demands.auth_methods & offers.unsupported_methods):
        yield f'pg_hba.conf has the method "{method}", which they are built without'
    if demands.has_ssl and not offers.has_ssl:
        yield "it offers SSL, which they are built without"
    for name, was, becomes in _other_defaults(demands, offers):
        if name in _REACHED_BY:
            yield f"{name} is not set anywhere, and would change from {was} to {becomes}: set it to {was}"


def _other_defaults(demands: Demands, offers: Offers) -> Iterator[tuple[str, str, str]]:
    for name, was in sorted(demands.defaults.items()):
        becomes = offers.defaults.get(name, was)
        is_used = name != _KEYTAB or "gss" in demands.auth_methods
        if becomes != was and is_used:
            yield name, was or "empty", becomes or "empty"


def _release(version: str) -> tuple[int, ...]:
    """Return a version's numbers: 18.6 (Debian 18.6-1) → 18, 6; of 19beta1 the first one."""
    return tuple(int(number) for number in re.findall(r"^\d+|(?<=^\d\d\.)\d+", version))
