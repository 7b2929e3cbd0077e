"""Options of configure: the same libraries and flags for every version, for comparability.

The only exception is ``--with-liburing``, which only newer versions have; the notes mention it. Nothing here
examines the host: ``builds/needs/prerequisites.py`` does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import UsageError
from pgdyno.builds.spec.features import Features
from pgdyno.builds.spec.foreign import Foreign

DEFAULT_CFLAGS = "-O2 -fno-omit-frame-pointer"
"""The flags of the ``o2nofp`` builds in the published Insert Benchmark studies."""
OLDEST_MAJOR = 14  # the oldest version with settings known to pgdyno
_EXTENSIONS = ("pg_stat_statements", "pg_prewarm", "btree_gin", "pgstattuple", "amcheck")
_SAFE_FLAGS = re.compile(r"[\w+=,./:@%\- ]*")  # make passes them to a shell


@dataclass(frozen=True)
class Library:
    """A library that PostgreSQL can be built with; ``since`` is the first version with the option."""

    name: str
    header: str
    linked: str  # argument of the linker's -l: ssl
    package: str
    option: str
    opposite: str = ""  # the option that disables it, if it is enabled by default
    since: int = OLDEST_MAJOR


LIBURING = Library("liburing", "liburing.h", "uring", "liburing-dev", "--with-liburing", since=18)
STRICT = "--enable-option-checking=fatal"  # by default configure only warns about unknown options
SSL = Library("OpenSSL", "openssl/ssl.h", "ssl", "libssl-dev", "--with-ssl=openssl")
LIBRARIES = (
    Library(
        "readline",
        "readline/readline.h",
        "readline",
        "libreadline-dev",
        "--with-readline",
        "--without-readline",
    ),
    Library("ICU", "unicode/ucol.h", "icui18n", "libicu-dev", "--with-icu", "--without-icu"),
    SSL,
    Library("lz4", "lz4.h", "lz4", "liblz4-dev", "--with-lz4"),
    Library("zstd", "zstd.h", "zstd", "libzstd-dev", "--with-zstd", since=15),
)
"""Used if the host can compile and link with them, and every requested version has the option."""


@dataclass(frozen=True)
class ConfigureOptions:
    """The common options of all requested versions."""

    compiler: str
    cflags: str
    libraries: tuple[Library, ...]
    wants_liburing: bool
    left_out: tuple[str, ...]  # sentences on features that are left out
    features: tuple[str, ...] | None = None  # another installation's; None: by ``libraries``

    def arguments(self, major: int) -> tuple[str, ...]:
        """Return configure's arguments for a version, without the prefix."""
        chosen = self._by_libraries(major) if self.features is None else self.features
        return (STRICT, *chosen, f"CC={self.compiler}", f"CFLAGS={self.cflags}")

    def _by_libraries(self, major: int) -> tuple[str, ...]:
        chosen = [one.option if one in self.libraries else one.opposite for one in LIBRARIES]
        if self.wants_liburing and major >= LIBURING.since:
            chosen.append(LIBURING.option)
        return tuple(filter(None, chosen))

    def arguments_for(self, major: int, prefix: Path) -> tuple[str, ...]:
        """Return configure's arguments for a version, with the prefix."""
        return (f"--prefix={prefix}", *self.arguments(major))

    @property
    def extensions(self) -> tuple[str, ...]:
        """The installed contrib modules; pgcrypto requires OpenSSL."""
        return (*_EXTENSIONS, "pgcrypto") if SSL in self.libraries else _EXTENSIONS

    @property
    def directories(self) -> tuple[str, ...]:
        """The directories of a tree to build: PostgreSQL itself, then the contrib modules."""
        return (".", *(f"contrib/{name}" for name in self.extensions))

    def notes(self, major: int) -> tuple[str, ...]:
        """Return sentences on features that this build lacks."""
        if self.wants_liburing and major < LIBURING.since:
            return (*self.left_out, f"without liburing: supported since PostgreSQL {LIBURING.since}")
        return self.left_out


def plan_options(
    majors: Sequence[int],
    headers: Collection[str],
    compiler: str,
    cflags: str,
    *,
    wants_liburing: bool | None,
    foreign: Foreign | None = None,
) -> ConfigureOptions:
    """Return the options for all ``majors``, given the headers of the host.

    ``wants_liburing`` None: use it where the host and a version support it, like every other library.
    ``foreign``: the target machine; None: this one.
    Raises: UsageError if liburing is requested and no version supports it, or for flags with characters that
    make would interpret.
    """
    if not _SAFE_FLAGS.fullmatch(cflags):
        raise UsageError(
            f'--cflags "{cflags}" has characters that make would interpret',
            detail="only letters, digits, spaces and + = , . / : @ % _ - are passed unchanged",
        )
    if wants_liburing and max(majors) < LIBURING.since:
        raise UsageError(
            f"--with-liburing needs PostgreSQL {LIBURING.since} or newer",
            detail=f"requested: {', '.join(map(str, majors))}",
        )
    used = tuple(one for one in LIBRARIES if one.header in headers and one.since <= min(majors))
    left_out = [_why_without(one, headers, foreign) for one in LIBRARIES if one not in used]
    if wants_liburing is None:
        wants_liburing = LIBURING.header in headers and max(majors) >= LIBURING.since
        if not wants_liburing and max(majors) >= LIBURING.since:
            left_out.append(_why_without(LIBURING, headers, foreign))
    return ConfigureOptions(compiler, cflags, used, wants_liburing, tuple(left_out))


def options_like(features: Features, compiler: str) -> ConfigureOptions:
    """Return the options for a build with exactly the inherited features of another installation."""
    used = tuple(one for one in LIBRARIES if one.option in features.options)
    return ConfigureOptions(
        compiler,
        cflags="",
        libraries=used,
        wants_liburing=False,
        left_out=features.left_out,
        features=features.options,
    )


def parse_majors(text: str) -> tuple[int, ...]:
    """Parse ``17,18``. Raises: UsageError for anything but supported major versions."""
    parts = [part.strip() for part in text.split(",")]
    wrong = [part for part in parts if not re.fullmatch(r"[1-9][0-9]", part) or int(part) < OLDEST_MAJOR]
    if wrong:
        raise UsageError(
            f'--from-source "{text}": "{wrong[0]}" is not a major version',
            detail=f"versions from {OLDEST_MAJOR} on can be built",
            hint="pgdyno server install --from-source 17,18",
        )
    return tuple(dict.fromkeys(int(part) for part in parts))


def _why_without(library: Library, headers: Collection[str], foreign: Foreign | None) -> str:
    if library.header not in headers:
        package = library.package if foreign is None else foreign.package(library.package)
        return f"without {library.name}: {package} is not installed"
    return f"without {library.name}: not every requested version supports it"
