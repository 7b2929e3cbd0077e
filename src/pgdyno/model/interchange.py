"""Whether other programs can run a server as it is: what its data and its configuration ask of them. Pure.

This is more than pg_upgrade looks at, which has tables written anew where formats differ: here the very files
are read by other programs, which have to find the same catalogs, page sizes, libraries and collations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_TAKES = {  # a method of pg_hba.conf: the option of configure that a server takes for it
    "gss": "--with-gssapi",
    "ldap": "--with-ldap",
    "pam": "--with-pam",
    "bsd": "--with-bsd-auth",
    "oauth": "--with-libcurl",
}


_DATA_TAKE = {  # an option that data may need which are there already, and no catalog tells
    "lz4": "values and WAL may be compressed by it",
    "zstd": "WAL may be compressed by it",
    "libxml": "values of type xml are read by it",
}
_SEEN_OTHERWISE = frozenset({"llvm", "icu", "ssl", "openssl", "tcl", "perl", "python", "uuid", "ossp-uuid"})
"""Options whose loss is seen by what the server uses of them: as a library, a collation, a setting."""
_TELLS_NOTHING = frozenset({"pgport", "extra-version", "includes", "libraries", "krb-srvnam", "template"})


@dataclass(frozen=True)
class Demands:
    """What a server has: ``layout`` are the numbers of its control file that programs are compiled with."""

    layout: Mapping[str, str]
    extensions: frozenset[tuple[str, str]]  # name, version
    libraries: frozenset[str]  # that functions and settings name
    auth_methods: frozenset[str]
    has_ssl: bool
    icu_version: str | None  # None: no database and no column sorts by ICU
    has_jit: bool
    configure: str  # what configure was called with


@dataclass(frozen=True)
class Offers:
    """What programs can run, found out from a scratch server of theirs."""

    layout: Mapping[str, str]
    extensions: frozenset[tuple[str, str]]  # that could be created
    refused: Mapping[str, str]  # libraries that could not be loaded, and why
    configure: str  # what configure was called with
    has_ssl: bool
    icu_version: str | None
    has_jit: bool


def lacking(demands: Demands, offers: Offers) -> tuple[str, ...]:
    """Return, in sentences, what keeps the programs from running the server; empty: nothing does."""
    return tuple(_lacking(demands, offers))


def changed(demands: Demands, offers: Offers) -> tuple[str, ...]:
    """Return, in sentences, what the server would do otherwise than before."""
    notes = []
    if demands.has_jit and not offers.has_jit:
        notes.append("without JIT compilation, which the server's present programs have")
    lost = _options(demands.configure) - _options(offers.configure)
    lost -= {*_DATA_TAKE, *_SEEN_OTHERWISE, *_TELLS_NOTHING}
    if lost:
        notes.append(f"without {', '.join(sorted(lost))}, which the server's present programs are built with")
    return tuple(notes)


def unfit_version(running: str, running_major: int, offered: str, offered_major: int) -> str | None:
    """Return why programs of a version cannot run a server's data; None: they can.

    Going back to an older minor release is not supported by PostgreSQL.
    """
    both = f"the server runs PostgreSQL {running}, and they are {offered}"
    if running_major != offered_major:
        return f"{both}: another major version takes pg_upgrade"
    if _release(offered) < _release(running):
        return f"{both}: an older release than what has written the data"
    return None


def _release(version: str) -> tuple[int, ...]:
    """Return a version's numbers: 18.6 (Debian 18.6-1) → 18, 6; of 19beta1 the first one."""
    return tuple(int(number) for number in re.findall(r"^\d+|(?<=^\d\d\.)\d+", version))


def _lacking(demands: Demands, offers: Offers) -> Iterator[str]:
    for name, wanted in demands.layout.items():
        if offers.layout.get(name) != wanted:
            yield f"{name} is {wanted} in its control file, and {offers.layout.get(name)} in these programs"
    for name, version in sorted(demands.extensions - offers.extensions):
        yield f"extension {name} {version} is missing"
    for library in sorted(demands.libraries & offers.refused.keys()):
        yield f"library {library} cannot be loaded: {offers.refused[library]}"
    for method in sorted(demands.auth_methods & _TAKES.keys()):
        if _TAKES[method] not in offers.configure:
            yield f'pg_hba.conf has the method "{method}", and they are not built {_TAKES[method]}'
    for option in sorted((_options(demands.configure) - _options(offers.configure)) & _DATA_TAKE.keys()):
        yield f"its programs are built --with-{option}, and these are not: {_DATA_TAKE[option]}"
    if demands.has_ssl and not offers.has_ssl:
        yield "it offers SSL, and they are built without"
    if demands.icu_version not in (None, offers.icu_version):
        yield f"its texts are sorted by ICU {demands.icu_version}, and they have {_icu(offers.icu_version)}"


def _options(configure: str) -> set[str]:
    """Return what PostgreSQL was configured with: lz4 for '--with-lz4'."""
    return set(re.findall(r"--with-([a-z0-9-]+)", configure))


def _icu(version: str | None) -> str:
    return "no ICU" if version is None else f"ICU {version}"
