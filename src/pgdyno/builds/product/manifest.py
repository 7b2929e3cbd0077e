"""The manifest of a built server: a JSON file in its prefix.

It is written before the prefix gets its name, so that a prefix with a manifest is complete.
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

from pgdyno.base.document import to_document
from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.architecture import is_foreign

SCHEMA_VERSION = 1
FILE = "manifest.json"
_RECIPE = AliasChoices("recipe", "profile")  # as it is called, and as it was in manifests up to November 2026


@dataclass(frozen=True)
class Trained:
    """A workload that a build was trained on.

    It is written as ``--train`` takes it, with the settings of its server; the name of a captured one ends in
    a digest of its contents.
    """

    workload: str  # sysbench-read-only:plan_cache_mode=force_generic_plan
    seconds: float


@dataclass(frozen=True)
class Rearranged:
    """BOLT's changes to a server's program; branches are those of its training."""

    bolt: str  # 19.1.7
    functions: int  # that training has reached
    taken_branches: int  # before
    taken_branches_left: int


@dataclass(frozen=True)
class AppliedPatch:
    """A patch of pgdyno's that has changed a build's sources. ``sha256``: of its diff."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Patched:
    """The patches of a build, by which it is another PostgreSQL than the release.

    ``own``: names of its extensions and libraries, which were made from the same sources; others were not.
    """

    patches: tuple[AppliedPatch, ...]
    own: tuple[str, ...]

    @property
    def names(self) -> str:
        """The names of the patches."""
        return ", ".join(patch.name for patch in self.patches)


@dataclass(frozen=True)
class Optimised:
    """Optimisations of a build beyond compiling with equal flags.

    ``source``, ``recipe``, ``target`` and ``training`` were planned; all else was found in the build.
    """

    source: str
    recipe: Annotated[str, Field(validation_alias=_RECIPE)]
    target: str | None  # None: every CPU of the architecture
    common_flags: tuple[str, ...]  # of every object file, from the log of what was installed
    other_flags: tuple[tuple[str, int], ...]  # of so many of them
    linking_flags: tuple[str, ...]  # of the server's program
    objects: int
    training: tuple[Trained, ...]
    reached: str  # "4012 functions"; empty if the compiler had no counts
    text_bytes: int  # machine code of the server's program
    rearranged: Rearranged | None = None
    instructions: tuple[str, ...] = ()  # sets that its CPU must know: AVX2; empty: not known, or just any
    atomics: str = ""  # on Arm: LSE's atomic instructions in the server's program, where they are
    patched: Patched | None = None


@dataclass(frozen=True)
class Passed:
    """Tests of PostgreSQL's own, all of which passed."""

    suite: str  # regress
    tests: int


@dataclass(frozen=True)
class Verified:
    """Checks that a build passed before it was installed."""

    suites: tuple[Passed, ...]
    reference: str  # the plain build of the same source that it was compared with; empty: it is plain itself
    answers: int  # lines of answers, equal to the reference's to the last bit
    crashes: int  # under load, of either build, after which nothing was missing
    seconds: float
    huge_text_bytes: int | None = (
        None  # the least machine code that any process of it has on huge pages; None: not to be there
    )
    is_emulated: bool = False  # by an emulator, on another machine than it is for


@dataclass(frozen=True)
class Manifest:
    """One built server."""

    name: str  # source-17
    server_version: str  # 17.11
    package: str  # postgresql-17; empty, like the next two, if it came from no archive
    package_version: str  # the distribution's: 17.11-0+deb13u1
    suite: str  # the release's own name: trixie
    tarball: str  # empty if the source was a directory
    tarball_sha256: str
    unpacked: str  # with which program, and what of the package
    compiler: str  # the first line of what it says of itself
    configure: tuple[str, ...]  # as configure was called, without the prefix
    cflags: str  # as the built pg_config prints them
    extensions: tuple[str, ...]
    notes: tuple[str, ...]  # what this build does without, and why
    build_s: float  # configure to installation, wall time
    installed_at: str  # ISO 8601, UTC
    optimised: Optimised | None = None
    verified: Verified | None = None
    machine: str = field(default_factory=platform.machine)  # not in older manifests, nor built for others

    @property
    def flags(self) -> str:
        """The requested compiler flags."""
        asked = [one.removeprefix("CFLAGS=") for one in self.configure if one.startswith("CFLAGS=")]
        return " ".join(asked)

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
        """The workloads of its training, in one line; empty: it was not trained."""
        return ", ".join(one.workload for one in self.optimised.training) if self.optimised else ""

    @property
    def patched(self) -> Patched | None:
        """The patches to its source; None: it is PostgreSQL as it was released."""
        return self.optimised.patched if self.optimised else None

    @property
    def origin(self) -> str:
        """Where the source came from: an archive, or the tarball or directory that was named."""
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
        said = f"{how}: {tests} tests of PostgreSQL's own, {self.verified.crashes} crashes"
        if self.verified.huge_text_bytes is not None:
            said += f", {self.verified.huge_text_bytes >> 20} MB of machine code on huge pages"
        if not self.verified.reference:
            return f"{said}; baseline for the verification of other builds"
        return f"{said}, {self.verified.answers} answers and all data the same as {self.verified.reference}'s"


def dump_manifest(manifest: Manifest) -> str:
    """Return a manifest as JSON text."""
    body = to_document(manifest)
    assert isinstance(body, dict)  # noqa: S101 — a dataclass becomes an object
    return json.dumps({"schema_version": SCHEMA_VERSION, **body}, indent=2, ensure_ascii=False) + "\n"


def parse_manifest(text: str) -> Manifest | Unknown:
    """Return the manifest of a JSON text; members that are not known are ignored."""
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
    raise ValueError(f"{text} is no number of JSON")


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
