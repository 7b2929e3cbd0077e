"""The manifest of a built server: a JSON file in its prefix.

It is written before the prefix is renamed to its final name, so a prefix with a manifest is complete.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NoReturn

from pydantic import AliasChoices, Field, TypeAdapter, ValidationError

from pgdyno.base.facts import Fact, Unknown, to_document
from pgdyno.host.architecture import is_foreign

SCHEMA_VERSION = 1
FILE = "manifest.json"
_RECIPE = AliasChoices("recipe", "profile")  # its name, and that in manifests up to November 2026


@dataclass(frozen=True)
class Trained:
    """A workload that a build was trained on.

    It has the syntax of ``--train``, with the settings of its server; the name of a captured one ends in a
    digest of its contents.
    """

    workload: str  # sysbench-read-only:plan_cache_mode=force_generic_plan
    seconds: float


@dataclass(frozen=True)
class Rearranged:
    """BOLT's changes to a server's program; branches are those of its training."""

    bolt: str  # 19.1.7
    functions: int  # covered by training
    taken_branches: int  # before rearranging
    taken_branches_left: int  # after it


@dataclass(frozen=True)
class AppliedPatch:
    """A patch that pgdyno applied to a build's source. ``sha256``: of its diff."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Patched:
    """The patches of a build, which make it differ from the release.

    ``own``: names of its extensions and libraries, built from the same patched source, unlike all others.
    """

    patches: tuple[AppliedPatch, ...]
    own: tuple[str, ...]

    @property
    def names(self) -> str:
        """The names of the patches."""
        return ", ".join(patch.name for patch in self.patches)


@dataclass(frozen=True)
class Optimised:
    """Optimisations of a build beyond compiling with default flags.

    ``source``, ``recipe``, ``target`` and ``training`` are from the plan; all other fields were read from the
    finished build.
    """

    source: str
    recipe: Annotated[str, Field(validation_alias=_RECIPE)]
    target: str | None  # None: every CPU of the architecture
    common_flags: tuple[str, ...]  # of every object file, from the installed program's build log
    other_flags: tuple[tuple[str, int], ...]  # of some object files, with their number
    linking_flags: tuple[str, ...]  # of the server's program
    objects: int
    training: tuple[Trained, ...]
    reached: str  # "4012 functions"; empty if the compiler used no profile
    text_bytes: int  # machine code of the server's program
    rearranged: Rearranged | None = None
    instructions: tuple[str, ...] = ()  # sets that the CPU must support: AVX2; empty: unknown, or any CPU
    atomics: str = ""  # on Arm: where the server's program has LSE's atomic instructions
    patched: Patched | None = None


@dataclass(frozen=True)
class Passed:
    """A suite of PostgreSQL's own tests, all of which passed."""

    suite: str  # regress
    tests: int


@dataclass(frozen=True)
class Verified:
    """Checks that a build passed before it was installed."""

    suites: tuple[Passed, ...]
    reference: str  # the plain build of the same source it was compared with; empty: it is itself plain
    answers: int  # result lines, bit-identical to the reference's
    crashes: int  # under load, of both builds, without data loss
    seconds: float
    huge_text_bytes: int | None = (
        None  # machine code on huge pages, the minimum over its processes; None: not in the recipe
    )
    is_emulated: bool = False  # verified under an emulator, on a different machine


@dataclass(frozen=True)
class Manifest:
    """One built server."""

    name: str  # source-17
    server_version: str  # 17.11
    package: str  # postgresql-17; empty, like the next two, if it is not from an archive
    package_version: str  # the distribution's: 17.11-0+deb13u1
    suite: str  # the release's own name: trixie
    tarball: str  # empty if the source was a directory
    tarball_sha256: str
    unpacked: str  # the program used, and the part of the package
    compiler: str  # the first line of its version output
    configure: tuple[str, ...]  # arguments of configure, without the prefix
    cflags: str  # as the built pg_config prints them
    extensions: tuple[str, ...]
    notes: tuple[str, ...]  # features that this build lacks, and why
    build_s: float  # configure to installation, wall time
    installed_at: str  # ISO 8601, UTC
    optimised: Optimised | None = None
    verified: Verified | None = None
    machine: str = field(default_factory=platform.machine)  # not in older manifests, all for this machine

    @property
    def flags(self) -> str:
        """The requested compiler flags."""
        flags = [one.removeprefix("CFLAGS=") for one in self.configure if one.startswith("CFLAGS=")]
        return " ".join(flags)

    @property
    def summary(self) -> str:
        """One line for a list of servers."""
        recipe = self.optimised.recipe if self.optimised else ""
        if self.patched:
            recipe += f" ({self.patched.names})"
        options = " ".join(one for one in self.configure if one.startswith("--with-"))
        machine = f"for {self.machine}" if is_foreign(self.machine) else ""
        return ", ".join(filter(None, (self.origin, machine, recipe, self.compiler, self.flags, options)))

    @property
    def training(self) -> str:
        """The training workloads, in one line; empty: not trained."""
        return ", ".join(one.workload for one in self.optimised.training) if self.optimised else ""

    @property
    def patched(self) -> Patched | None:
        """The patches to its source; None: it is unpatched."""
        return self.optimised.patched if self.optimised else None

    @property
    def origin(self) -> str:
        """The origin of the source: a package's suite and version, or the named tarball or directory."""
        if self.package:
            return f"{self.suite} {self.package_version}"
        return self.tarball or (self.optimised.source if self.optimised else "")

    @property
    def verification(self) -> str:
        """The passed checks, in one line."""
        if self.verified is None:
            return "not verified"
        tests = sum(suite.tests for suite in self.verified.suites)
        how = "verified, emulated" if self.verified.is_emulated else "verified"
        text = f"{how}: {tests} of PostgreSQL's own tests, {self.verified.crashes} crashes"
        if self.verified.huge_text_bytes is not None:
            text += f", {self.verified.huge_text_bytes >> 20} MB of machine code on huge pages"
        if not self.verified.reference:
            return f"{text}; baseline for the verification of other builds"
        return f"{text}, {self.verified.answers} results and all data the same as {self.verified.reference}'s"


def dump_manifest(manifest: Manifest) -> str:
    """Return a manifest as JSON text."""
    body = to_document(manifest)
    assert isinstance(body, dict)  # noqa: S101 — a dataclass becomes an object
    return json.dumps({"schema_version": SCHEMA_VERSION, **body}, indent=2, ensure_ascii=False) + "\n"


def parse_manifest(text: str) -> Manifest | Unknown:
    """Return the manifest of a JSON text; unknown members are ignored."""
    try:
        document = json.loads(text, parse_constant=_refuse_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        return Unknown(f"not a JSON document: {error}")
    if not isinstance(document, dict) or document.get("schema_version") != SCHEMA_VERSION:
        return Unknown(f"not a manifest of schema version {SCHEMA_VERSION}")
    return _from_document(document)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_number(text)


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def read_manifest(prefix: Path) -> Fact[Manifest]:
    """Return the manifest in a prefix; unknown for a prefix that pgdyno did not build."""
    path = prefix / FILE
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return Fact(Unknown("not built by pgdyno"), str(path))
    except OSError as error:
        return Fact(Unknown(str(error.strerror).lower()), str(path))
    return Fact(parse_manifest(text), str(path))


def _from_document(document: Mapping[str, Any]) -> Manifest | Unknown:
    try:
        return TypeAdapter(Manifest).validate_python(dict(document), strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return Unknown(f'its member "{".".join(map(str, first["loc"]))}" is missing or wrong')
