"""Check whether two PostgreSQL builds differ in more than their version.

If they do, a comparison of their versions is confounded.

Compared are the output of ``pg_config``, the compiler's version, and whether the data have checksums (initdb
enables them by default since version 18). Differences that cannot affect measurements are ignored:
directories, warnings, debugging information, languages, documentation.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pgdyno.base.errors import ServerError
from pgdyno.model.plans.recipe import patches_in

_VERSION = re.compile(r"PostgreSQL ((\d+)\S*)(?: \((.*)\))?")
_COMPILED_BY = re.compile(r"compiled by (.*), \d+-bit")
_NOT_RECORDED = frozenset({"", "not recorded"})
_CODE_NEUTRAL = re.compile(
    r"-W(?!l,).*|-g\d?|-ggdb\d?|-pipe|-I.*|-L.*|-D_GNU_SOURCE|-f(?:debug|file|macro)-prefix-map=.*|-O[0-3s]?"
)
"""Compiler and linker flags that do not change the code. The optimisation level is compared separately."""
_LINK_NEUTRAL = re.compile(r"-Wl,(?:--as-needed|-rpath,.*|--enable-new-dtags)|-L.*|-I.*")
_NEUTRAL_OPTIONS = re.compile(
    r"(?:prefix|exec-prefix|.*dir|build|host|(?:build|host)_alias|extra-version|docs|nls|tap-tests|rpath"
    r"|option-checking|silent-rules|maintainer-mode|dependency-tracking|debug|depend|thread-safety|gnu-ld"
    r"|perl|python|tcl|uuid|libxml|libxslt|pam|ldap|bonjour|bsd-auth|gssapi|systemd|readline|libedit-preferred"
    r"|pgport|system-tzdata|krb-srvnam|includes|libraries|libcurl|injection-points|selinux)"
)


@dataclass(frozen=True)
class Feature:
    """An optional feature of a PostgreSQL build; versions before ``since`` cannot have it."""

    name: str
    options: tuple[str, ...]
    since: int = 0
    default_since: int | None = None  # built in from this version on unless disabled


_FEATURES = (
    Feature("SSL", ("ssl", "openssl")),
    Feature("ICU", ("icu",), default_since=16),
    Feature("lz4 compression", ("lz4",), since=14),
    Feature("zstd compression", ("zstd",), since=15),
    Feature("LLVM JIT compilation", ("llvm",)),
    Feature("io_uring", ("liburing",), since=18),
    Feature("libnuma", ("libnuma",), since=18),
    Feature("DTrace probes", ("dtrace",)),
    Feature("assertions", ("cassert",)),
)


@dataclass(frozen=True)
class Build:
    """One PostgreSQL build. ``options`` None: it does not record them; None elsewhere: not determined.

    ``options`` maps a configure option without its ``--with-`` to its value: "yes", "no", or as given.
    """

    name: str  # as in a variant
    version: str
    major: int
    vendor: str | None  # the packager, in brackets behind the version
    options: Mapping[str, str] | None
    cc: str  # the compiler's name
    compiler: str | None  # with its version
    cflags: tuple[str, ...]
    cppflags: tuple[str, ...]
    ldflags: tuple[str, ...]
    has_checksums: bool | None = None

    def has(self, feature: Feature) -> bool:
        """Whether the build has a feature; valid only if the build records its options."""
        given = [value for name, value in (self.options or {}).items() if name in feature.options]
        if given:
            return given[-1] != "no"
        return feature.default_since is not None and self.major >= feature.default_since


@dataclass(frozen=True)
class BuildDifference:
    """A difference of two builds, as a sentence."""

    sentence: str
    is_confounder: bool  # False: it is due to the version


def parse_build(
    name: str, pg_config: str, *, version_text: str = "", has_checksums: bool | None = None
) -> Build:
    """Return the build that ``pg_config``, called without arguments, describes.

    ``version_text`` is the result of ``SELECT version()``; without it, the compiler's version is unknown.
    Raises: ServerError for a text that is not pg_config's output.
    """
    lines = dict(_line(line) for line in pg_config.splitlines() if " =" in line)
    version = _VERSION.match(lines.get("VERSION", ""))
    if version is None:
        raise ServerError(f'pg_config of "{name}" has no VERSION', detail=f"its output: {pg_config[:200]!r}")
    configure = lines.get("CONFIGURE", "")
    compiled_by = _COMPILED_BY.search(version_text)
    return Build(
        name=name,
        version=version[1],
        major=int(version[2]),
        vendor=version[3],
        options=None if configure in _NOT_RECORDED else _options(_words(configure)),
        cc=lines.get("CC", ""),
        compiler=None if compiled_by is None else compiled_by[1],
        cflags=_words(lines.get("CFLAGS", "")),
        cppflags=_words(lines.get("CPPFLAGS", "")),
        ldflags=_words(lines.get("LDFLAGS", "")) + _words(lines.get("LDFLAGS_EX", "")),
        has_checksums=has_checksums,
    )


def build_differences(one: Build, other: Build) -> tuple[BuildDifference, ...]:
    """Return the differences of two builds other than their version, confounders first."""
    found = [
        *_compiler(one, other),
        *_features(one, other),
        *_other_options(one, other),
        *_vendor(one, other),
        *_checksums(one, other),
    ]
    return tuple(sorted(found, key=lambda difference: not difference.is_confounder))


def is_confounded(differences: Iterable[BuildDifference]) -> bool:
    """Whether any difference is a confounder."""
    return any(difference.is_confounder for difference in differences)


def _compiler(one: Build, other: Build) -> list[BuildDifference]:
    found = []
    first, second = one.compiler, other.compiler
    if first is None or second is None:  # compare the compilers' names instead
        first, second = one.cc, other.cc
    if first != second:
        found.append(_confounder(f"{one.name} was compiled with {first}, {other.name} with {second}"))
    if (level := optimisation_level(one)) != (other_level := optimisation_level(other)):
        found.append(_confounder(f"{one.name} was optimised with {level}, {other.name} with {other_level}"))
    for build, rest in ((one, other), (other, one)):
        only = [flag for flag in code_flags(build) if flag not in code_flags(rest)]
        if only:
            found.append(_confounder(f"only {build.name} was compiled and linked with {' '.join(only)}"))
    return found


def _features(one: Build, other: Build) -> list[BuildDifference]:
    for build in (one, other):
        if build.options is None:
            return [_confounder(f"{build.name} does not record the options it was built with")]
    found = []
    for feature in _FEATURES:
        if one.has(feature) == other.has(feature):
            continue
        owner, rest = (one, other) if one.has(feature) else (other, one)
        if rest.major < feature.since:
            sentence = (
                f"only {owner.name} has {feature.name}, which exists from PostgreSQL {feature.since} on"
            )
            found.append(BuildDifference(sentence, is_confounder=False))
        else:
            found.append(_confounder(f"{owner.name} is built with {feature.name}, {rest.name} without"))
    return found


def _other_options(one: Build, other: Build) -> list[BuildDifference]:
    if one.options is None or other.options is None:
        return []
    known = {option for feature in _FEATURES for option in feature.options}
    names = [*one.options, *(name for name in other.options if name not in one.options)]
    return [
        _confounder(
            f"configure option {name}: {one.options.get(name, 'not given')} for {one.name}, "
            f"{other.options.get(name, 'not given')} for {other.name}"
        )
        for name in names
        if name not in known and not _NEUTRAL_OPTIONS.fullmatch(name)
        if one.options.get(name) != other.options.get(name)
    ]


def _vendor(one: Build, other: Build) -> list[BuildDifference]:
    return [
        _confounder(f"{build.name} is a distribution's package ({build.vendor}), which may carry patches")
        for build, rest in ((one, other), (other, one))
        if build.vendor is not None and rest.vendor is None
    ]


def _checksums(one: Build, other: Build) -> list[BuildDifference]:
    if None in (one.has_checksums, other.has_checksums) or one.has_checksums == other.has_checksums:
        return []
    owner, rest = (one, other) if one.has_checksums else (other, one)
    return [_confounder(f"the data of {owner.name} have checksums, those of {rest.name} have none")]


def _confounder(sentence: str) -> BuildDifference:
    return BuildDifference(sentence, is_confounder=True)


def optimisation_level(build: Build) -> str:
    """Return the compiler's optimisation level; the last of several flags wins."""
    levels = [flag for flag in build.cflags if flag.startswith("-O")]
    return levels[-1] if levels else "no -O"


def relevant_options(build: Build) -> dict[str, str] | None:
    """Return the options that may affect measurements; None: not recorded."""
    if build.options is None:
        return None
    known = {option for feature in _FEATURES for option in feature.options}
    others = {
        name: value
        for name, value in build.options.items()
        if name not in known and not _NEUTRAL_OPTIONS.fullmatch(name)
    }
    return {**{one.name: "yes" if build.has(one) else "no" for one in _FEATURES}, **others}


def code_flags(build: Build) -> tuple[str, ...]:
    """Return the compiler and linker flags that change the code, without the optimisation level."""
    compiled = [flag for flag in (*build.cflags, *build.cppflags) if not _CODE_NEUTRAL.fullmatch(flag)]
    linked = [flag for flag in build.ldflags if not _LINK_NEUTRAL.fullmatch(flag)]
    return tuple(dict.fromkeys([*compiled, *linked]))


def _line(line: str) -> tuple[str, str]:
    name, _, value = line.partition(" =")
    return name.strip(), value.strip()


def _words(text: str) -> tuple[str, ...]:
    """Split as a shell does; at spaces if the quoting is invalid."""
    try:
        return tuple(shlex.split(text))
    except ValueError:
        return tuple(text.split())


def _options(words: Iterable[str]) -> dict[str, str]:
    """Return configure's options and the patches, without other variables, whose effect pg_config shows."""
    options: dict[str, str] = {}
    for word in words:
        if patches := patches_in(word):
            options["patches"] = ", ".join(patches)
        if not word.startswith("--"):
            continue
        name, is_set, value = word.removeprefix("--").partition("=")
        kind, dash, rest = name.partition("-")
        if dash and kind in {"with", "enable"}:
            options[rest] = value if is_set else "yes"
        elif dash and kind in {"without", "disable"}:
            options[rest] = "no"
        else:
            options[name] = value
    return options
