"""Options of configure: the same libraries and flags for every version, for comparability.

An option that only newer versions have (``--with-liburing``) is the one exception; it is noted. Nothing here
reaches outside: what the host has is found out in ``builds/needs/prerequisites.py``.
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
"""The flags of the published Insert Benchmark studies, whose builds are named ``o2nofp``."""
OLDEST_MAJOR = 14  # the oldest version that pgdyno knows the settings of
_EXTENSIONS = ("pg_stat_statements", "pg_prewarm", "btree_gin", "pgstattuple", "amcheck")
_SAFE_FLAGS = re.compile(r"[\w+=,./:@%\- ]*")  # make hands them to a shell


@dataclass(frozen=True)
class Library:
    """A library that PostgreSQL can be built with; ``since`` is the first version that has the option."""

    name: str
    header: str
    linked: str  # by this name: -lssl
    package: str
    option: str
    opposite: str = ""  # what switches it off where it is on by default
    since: int = OLDEST_MAJOR


LIBURING = Library("liburing", "liburing.h", "uring", "liburing-dev", "--with-liburing", since=18)
STRICT = "--enable-option-checking=fatal"  # configure merely warns of an option that it does not know
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
"""Used where they can be compiled and linked with, and every version asked for has the option."""


@dataclass(frozen=True)
class ConfigureOptions:
    """The common options of all requested versions."""

    compiler: str
    cflags: str
    libraries: tuple[Library, ...]
    wants_liburing: bool
    left_out: tuple[str, ...]  # sentences
    features: tuple[str, ...] | None = None  # another installation's; None: what the libraries make possible

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
        """Return all of configure's arguments."""
        return (f"--prefix={prefix}", *self.arguments(major))

    @property
    def extensions(self) -> tuple[str, ...]:
        """The contrib modules that are installed; pgcrypto cannot be built without OpenSSL."""
        return (*_EXTENSIONS, "pgcrypto") if SSL in self.libraries else _EXTENSIONS

    @property
    def directories(self) -> tuple[str, ...]:
        """The directories of a tree that are built: PostgreSQL itself, then the contrib modules."""
        return (".", *(f"contrib/{name}" for name in self.extensions))

    def notes(self, major: int) -> tuple[str, ...]:
        """Return sentences on features that this build lacks."""
        if self.wants_liburing and major < LIBURING.since:
            return (*self.left_out, f"without liburing: PostgreSQL has it from version {LIBURING.since} on")
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
    """Return the options for all ``majors``, given which headers the host has.

    ``wants_liburing`` None: where the host and a version have it, like every other library.
    ``foreign``: the machine that it is for, if it is another one than this.
    Raises: UsageError if liburing is asked for and no version can have it, or for flags that would not
    reach the compiler as they are written.
    """
    if not _SAFE_FLAGS.fullmatch(cflags):
        raise UsageError(
            f'--cflags "{cflags}" has characters that make would interpret',
            detail="letters, digits, spaces and + = , . / : @ % _ - are passed on as they are",
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
    """Return how a build is made that has another installation's features, no fewer and no more."""
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
    """Parse ``17,18``. Raises: UsageError for anything but major versions that pgdyno knows."""
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
    return f"without {library.name}: not every requested version can have it"
