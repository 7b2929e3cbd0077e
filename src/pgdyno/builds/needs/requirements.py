"""Prerequisites of PostgreSQL's features on the host, with their Debian and Ubuntu packages.

Source: Build-Depends of Debian's postgresql-15 and postgresql-18; configure of PostgreSQL 14 to 18.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pgdyno.builds.spec.configure_options import LIBRARIES, LIBURING
from pgdyno.builds.spec.features import Features

_ICU_BY_DEFAULT_SINCE = 16


@dataclass(frozen=True)
class Requirement:
    """Something that must be there: a program, a file, one of some headers, or else a library to link with.

    ``arguments``: a command that prints the compiler's arguments for it.
    """

    name: str
    package: str
    program: str = ""
    path: str = ""
    headers: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


def _header(package: str, *headers: str, module: str = "") -> tuple[Requirement, ...]:
    """Return the requirement of any of some headers, which a module of pkg-config's may have for itself."""
    arguments = ("pkg-config", "--cflags", module) if module else ()
    return (Requirement(headers[0], package, headers=headers, arguments=arguments),)


_NEEDED: Mapping[str, tuple[Requirement, ...]] = {
    **{
        one.option.removeprefix("--with-").partition("=")[0]: _header(one.package, one.header)
        for one in (*LIBRARIES, LIBURING)
    },
    "libedit-preferred": _header("libedit-dev", "editline/readline.h"),
    "gssapi": _header("libkrb5-dev", "gssapi/gssapi.h"),
    "ldap": _header("libldap2-dev", "ldap.h"),
    "libcurl": _header("libcurl4-openssl-dev", "curl/curl.h"),
    "libnuma": _header("libnuma-dev", "numa.h"),
    "libxml": _header("libxml2-dev", "libxml/parser.h", module="libxml-2.0"),
    "libxslt": _header("libxslt1-dev", "libxslt/xslt.h", module="libxslt"),
    "nls": (Requirement("msgfmt", "gettext", program="msgfmt"),),
    "pam": _header("libpam0g-dev", "security/pam_appl.h"),
    "selinux": _header("libselinux1-dev", "selinux/selinux.h"),
    "systemd": _header("libsystemd-dev", "systemd/sd-daemon.h"),
    "uuid=e2fs": _header("uuid-dev", "uuid/uuid.h"),
    "uuid=ossp": _header("libossp-uuid-dev", "ossp/uuid.h", "uuid.h"),
    "ossp-uuid": _header("libossp-uuid-dev", "ossp/uuid.h", "uuid.h"),
}
_PRINT_INCLUDE = "import sysconfig; print('-I' + sysconfig.get_path('include'))"


def requirements_of(features: Features, major: int) -> tuple[Requirement, ...]:
    """Return the prerequisites of a build with these features, each once."""
    given = features.values
    on = {name: value for name, value in (_defaults(given, major) | given).items() if value != "no"}
    found = [one for name, value in on.items() for one in _of(name, value)]
    return tuple(dict.fromkeys([*found, *_interpreters(on)]))


def _defaults(given: Mapping[str, str], major: int) -> dict[str, str]:
    """Return the libraries that configure uses by default; zlib is needed for every build."""
    line_editor = {} if "libedit-preferred" in given else {"readline": "yes"}
    return {**line_editor, **({"icu": "yes"} if major >= _ICU_BY_DEFAULT_SINCE else {})}


def _of(name: str, value: str) -> tuple[Requirement, ...]:
    if name == "system-tzdata":
        return (Requirement(value, "tzdata", path=str(Path(value) / "GMT")),)
    return _NEEDED.get(name, ()) or _NEEDED.get(f"{name}={value}", ())


def _interpreters(on: Mapping[str, str]) -> Iterator[Requirement]:
    """Yield the prerequisites of procedural languages; each interpreter reports its location."""
    if "perl" in on:
        perl = on.get("PERL", "perl")
        yield Requirement(perl, "perl", program=perl)
        yield Requirement("libperl.so", "libperl-dev", arguments=(perl, "-MExtUtils::Embed", "-e", "ldopts"))
    if "python" in on:
        python = on.get("PYTHON", "python3")
        yield Requirement(python, "python3", program=python)
        include = (python, "-c", _PRINT_INCLUDE)
        yield Requirement("Python.h", "python3-dev", headers=("Python.h",), arguments=include)
    if "tcl" in on:
        tclsh = on.get("TCLSH", "tclsh")
        yield Requirement(tclsh, "tcl", program=tclsh)
        yield from _header("tcl-dev", "tcl.h", "tcl/tcl.h", "tcl8.6/tcl.h")
