"""Check the host for the programs and headers that a build needs, without installing anything.

Each prerequisite has the name of its Debian and Ubuntu package.

Source: Build-Depends of Debian's postgresql-15 and postgresql-18; configure of PostgreSQL 14 to 18.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import InstallationError, UsageError
from pgdyno.builds.spec.configure_options import LIBRARIES, LIBURING, ConfigureOptions, plan_options
from pgdyno.builds.spec.features import Features
from pgdyno.builds.spec.foreign import Foreign
from pgdyno.builds.spec.instructions import instructions
from pgdyno.host.architecture import is_foreign
from pgdyno.host.processes.running import capture, is_installed
from pgdyno.model.plans.recipe import NATIVE, target_flag

_ICU_BY_DEFAULT_SINCE = 16


@dataclass(frozen=True)
class Requirement:
    """A prerequisite: a program, a file, any one of several headers, or a library to link with.

    ``arguments``: a command that prints the compiler arguments for it.
    """

    name: str
    package: str
    program: str = ""
    path: str = ""
    headers: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


def _header(package: str, *headers: str, module: str = "") -> tuple[Requirement, ...]:
    """Return the requirement for any one of several headers; ``module``: pkg-config's, for its directory."""
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
    found = [one for name, value in on.items() for one in _needed_by(name, value)]
    return tuple(dict.fromkeys([*found, *_interpreters(on)]))


def _defaults(given: Mapping[str, str], major: int) -> dict[str, str]:
    """Return the libraries that configure uses by default, except zlib, which every build needs."""
    line_editor = {} if "libedit-preferred" in given else {"readline": "yes"}
    return {**line_editor, **({"icu": "yes"} if major >= _ICU_BY_DEFAULT_SINCE else {})}


def _needed_by(name: str, value: str) -> tuple[Requirement, ...]:
    if name == "system-tzdata":
        return (Requirement(value, "tzdata", path=str(Path(value) / "GMT")),)
    return _NEEDED.get(name, ()) or _NEEDED.get(f"{name}={value}", ())


def _interpreters(on: Mapping[str, str]) -> Iterator[Requirement]:
    """Yield the prerequisites of procedural languages; interpreters report where their headers are."""
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


_COMPILERS = ("gcc", "clang")  # the first one found
_PROBE_LIMIT_S = 20.0
_PROGRAM = "int main(void) { return 0; }\n"
_INCLUDING = "#include <stdio.h>\n#include <{}>\n"  # readline's header needs stdio.h


@dataclass(frozen=True)
class Need:
    """A missing prerequisite, and its Debian or Ubuntu package."""

    name: str
    package: str


PROGRAMS = (
    Need("make", "make"),
    Need("bison", "bison"),
    Need("flex", "flex"),
    Need("perl", "perl"),
    Need("pkg-config", "pkg-config"),
    Need("tar", "tar"),
    Need("bzip2", "bzip2"),  # for PostgreSQL's tarballs
    Need("setpriv", "util-linux"),
)
HEADERS = (Need("stdlib.h", "libc6-dev"), Need("zlib.h", "zlib1g-dev"))
_LINKED = {"stdlib.h": "c", "zlib.h": "z"}


def find_options(
    majors: Sequence[int],
    cflags: str,
    *,
    wants_liburing: bool | None,
    compiler: str | None = None,
    foreign: Foreign | None = None,
) -> ConfigureOptions:
    """Return the common configure options of ``majors`` on this host.

    ``wants_liburing`` None: use it where the host and the version support it. ``compiler``: one that was
    already checked for the prerequisites of every build; None: the first one found, after that check.
    ``foreign``: the target machine; None: this one.
    Raises: InstallationError naming all missing prerequisites and their packages; UsageError for flags that
    the compiler rejects.
    """
    found = compiler or next((name for name in _COMPILERS if is_installed(name)), None)
    missing = [] if found else [Need("gcc", "gcc")]
    if compiler is None:
        missing += [*missing_programs(), *(missing_headers(found) if found else ())]
    libraries = {one.header: one.linked for one in (*LIBRARIES, LIBURING)}
    headers = _there(found, libraries) if found else []
    if found is not None and wants_liburing and LIBURING.header not in headers:
        missing.append(Need(LIBURING.header, LIBURING.package))
    if missing or found is None:
        raise missing_error(missing, foreign)
    options = plan_options(majors, headers, found, cflags, wants_liburing=wants_liburing, foreign=foreign)
    _require_flags(options)
    return options


def missing_programs() -> list[Need]:
    """Return the missing programs that every build needs, other than the compiler."""
    return [need for need in PROGRAMS if not is_installed(need.name)]


def missing_headers(compiler: str, foreign: Foreign | None = None) -> list[Need]:
    """Return the missing headers that every build needs, as found by the compiler."""
    there = _there(compiler, {need.name: _LINKED[need.name] for need in HEADERS})
    lacking = [need for need in HEADERS if need.name not in there]
    return [need if foreign is None else _for_foreign(foreign, need) for need in lacking]


def missing_features(features: Features, major: int, compiler: str) -> list[Need]:
    """Return the missing prerequisites of a major version's features."""
    needed = requirements_of(features, major)
    return [Need(one.name, one.package) for one in needed if not _is_there(one, compiler)]


def _for_foreign(foreign: Foreign, need: Need) -> Need:
    return Need(f"{need.name} of {foreign.machine}", foreign.package(need.package))


def _there(compiler: str, libraries: Mapping[str, str]) -> list[str]:
    """Return the headers that compile and whose libraries link; ``libraries``: by header.

    A header alone may belong to another machine. All are tried at once first: usually that works.
    """
    found = _includable(compiler, list(libraries))
    if _has(compiler, found, [libraries[header] for header in found]):
        return found
    return [header for header in found if _has(compiler, [header], [libraries[header]])]


def _includable(compiler: str, headers: Sequence[str]) -> list[str]:
    source = "".join(f'#if __has_include(<{header}>)\n"{header}"\n#endif\n' for header in headers)
    argv = [*compiler.split(), "-E", "-P", "-x", "c", "-"]
    output = capture(argv, limit_s=_PROBE_LIMIT_S, stdin=source).stdout.splitlines()
    return [header for header in headers if f'"{header}"' in output]


def _has(compiler: str, headers: Sequence[str], libraries: Sequence[str]) -> bool:
    source = "".join(_INCLUDING.format(header) for header in headers) + _PROGRAM
    return compiles(compiler, [f"-l{library}" for library in libraries], source) is None


def _is_there(needed: Requirement, compiler: str) -> bool:
    if needed.program:
        return is_installed(needed.program)
    if needed.path:
        return Path(needed.path).exists()
    arguments: list[str] = []
    if needed.arguments:
        if not is_installed(needed.arguments[0]):
            return False
        arguments = capture(needed.arguments, limit_s=_PROBE_LIMIT_S).stdout.split()
    if needed.headers:
        return any(_has_header(compiler, header, arguments) for header in needed.headers)
    return compiles(compiler, arguments, _PROGRAM) is None


def require_target(compiler: str, target: str, machine: str) -> None:
    """Raise UsageError if the compiler does not support a CPU, or its code cannot run here.

    A build is trained and verified on this host. An emulator supports every CPU of its architecture.
    """
    failure = compiles(compiler, ["-c", target_flag(target, machine)], _PROGRAM)
    if failure is not None:
        raise UsageError(
            f'{compiler} does not support --portable "{target}"',
            detail=failure,
            hint="omit it, or name a CPU of this architecture that the compiler supports",
        )
    if is_foreign(machine):
        return
    lacking = instructions(compiler, target, machine) - instructions(compiler, NATIVE, machine)
    if lacking:
        raise UsageError(
            f'this CPU cannot run code for --portable "{target}"',
            detail=f"it lacks {', '.join(sorted(lacking))}; a build is trained and verified on this host",
            hint="build on a host with such a CPU, or name an older CPU",
        )


def compiler_version(compiler: str) -> str:
    """Return the first line of the compiler's version output."""
    done = capture([*compiler.split(), "--version"], limit_s=_PROBE_LIMIT_S)
    return (done.stdout.splitlines() or [compiler])[0]


def missing_error(missing: Sequence[Need], foreign: Foreign | None = None) -> InstallationError:
    """Return the error for missing prerequisites, with the packages to install."""
    packages = " ".join(dict.fromkeys(need.package for need in missing))
    return InstallationError(
        f"PostgreSQL cannot be built {'' if foreign is None else f'for {foreign.machine} '}on this host yet",
        detail=f"missing: {', '.join(dict.fromkeys(need.name for need in missing))}",
        hint=f"apt-get install {packages}" if foreign is None else foreign.installing(packages),
    )


def _has_header(compiler: str, header: str, arguments: Sequence[str] = ()) -> bool:
    return compiles(compiler, ["-E", *arguments], _INCLUDING.format(header)) is None


def _require_flags(options: ConfigureOptions) -> None:
    failure = compiles(options.compiler, ["-c", *options.cflags.split()], _PROGRAM)
    if failure is not None:
        raise UsageError(f'{options.compiler} does not accept --cflags "{options.cflags}"', detail=failure)


def compiles(compiler: str, options: Sequence[str], source: str) -> str | None:
    """Return None if a source compiles, else the first line of the compiler's error output."""
    argv = [*compiler.split(), "-x", "c", *options, "-o", "/dev/null", "-"]
    done = capture(argv, limit_s=_PROBE_LIMIT_S, stdin=source)
    return None if done.returncode == 0 else (done.stderr.splitlines() or ["no reason given"])[0]
