"""The complete specification of a build, which determines its name and every flag of its programs.

The distribution's hardening is kept unless the recipe is ``unhardened``: position-independent executable,
stack protector, fortified libc calls. RELRO is always full. Floating-point contraction (FMA) is off for every
target, so results are bit-identical.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from pgdyno.builds.compilers._contract import Compiler
from pgdyno.builds.optimise import bolt, huge_text
from pgdyno.builds.patching.patches import Patch
from pgdyno.builds.source.extensions import Extensions
from pgdyno.builds.source.source import major_of
from pgdyno.builds.spec.configure_options import ConfigureOptions
from pgdyno.builds.spec.foreign import Foreign
from pgdyno.model.plans.recipe import PATCHES_VARIABLE, PLAIN, Recipe, target_flag

NAME = "built"  # means the newest build; each is named built-<id>
_FORMAT = 2  # incremented when the build procedure changes, so that equal requests are built again
_ID_LENGTH = 12
_SAME_RESULTS = ("-ffp-contract=off",)
_LINKED = ("-Wl,-z,relro", "-Wl,-z,now")
_OF_ANY_CPU = {"aarch64": ("-moutline-atomics",)}
"""Flags by machine for code that runs on every CPU of it. Outlined helpers check the CPU for LSE atomics,
which the oldest CPUs lack. Only newer compilers enable this by default."""


@dataclass(frozen=True)
class _Hardening:
    """Flags by tool."""

    compiling: tuple[str, ...]
    preprocessing: tuple[str, ...]
    linking: str
    making: tuple[str, ...] = ()  # hidden from configure, which links its test programs with default flags


_HARDENING = _Hardening(("-fstack-protector-strong", "-fPIE"), ("CPPFLAGS=-D_FORTIFY_SOURCE=2",), "-pie")
_NO_HARDENING = _Hardening(("-fno-stack-protector",), (), "-no-pie", ("-fno-pie",))
ALWAYS: Mapping[str, str] = MappingProxyType({"rpathdir": "$$ORIGIN/../lib:$$ORIGIN/.."})
"""Make variables of every build: programs in bin/ and libraries in lib/postgresql/ find lib/."""


@dataclass(frozen=True)
class BuildPlan:
    """One build. ``target`` None: every CPU of the architecture.

    ``training``: workloads in order, each with its server's settings, in the syntax of ``--train``.
    """

    source_sha256: str
    version: str
    recipe: Recipe
    compiler: Compiler
    compiler_version: str
    target: str | None
    machine: str  # x86_64
    configure: ConfigureOptions
    training: tuple[str, ...]
    bolt: bolt.Bolt | None = None  # None: the recipe does not use BOLT
    extensions: Extensions = Extensions()  # noqa: RUF009 — frozen; in addition to those of every build
    foreign: Foreign | None = None  # None: this machine
    wanted: tuple[str, ...] = ()  # extensions of the installation to replace, for the notes only
    patches: tuple[Patch, ...] = ()  # in the order of application

    @property
    def major(self) -> int:
        """The major version."""
        return major_of(self.version)

    @property
    def is_plain(self) -> bool:
        """Whether this is a baseline build, the reference for optimised builds of the same source."""
        return self.recipe.name == PLAIN and self.target is None

    @property
    def name(self) -> str:
        """The server's name, equal for equal requests."""
        document = {
            "format": _FORMAT,
            "source": self.source_sha256,
            "profile": self.recipe.name,  # the recipe's former key, kept so that names do not change
            "compiler": self.compiler_version,
            "options": self.options,
            "training": self.training if self.recipe.is_trained else (),
            "bolt": self.bolt.version if self.bolt else "",
            **({"extensions": self.extensions.identity} if self.extensions.identity else {}),
            **({"huge_text": huge_text.identity()} if self.recipe.is_on_huge_pages else {}),
            **({"patches": [[one.name, one.sha256] for one in self.patches]} if self.patches else {}),
        }
        digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
        return f"{NAME}-{digest[:_ID_LENGTH]}"

    @property
    def options(self) -> tuple[str, ...]:
        """The arguments of configure except the prefix."""
        hardening = self._hardening
        cflags = [self.recipe.optimisation, *_SAME_RESULTS, *hardening.compiling]
        if self.bolt is not None:
            cflags += self.compiler.movable()
        if self.target is not None:
            cflags.append(target_flag(self.target, self.machine))
        else:
            cflags += _OF_ANY_CPU.get(self.machine, ())
        configure = replace(self.configure, compiler=self.compiler.cc, cflags=" ".join(cflags))
        return (
            *configure.arguments(self.major),
            *(() if self.foreign is None else self.foreign.options),
            *hardening.preprocessing,
            f"LDFLAGS={' '.join((*_LINKED, *self.compiler.linker))}",
            f"LDFLAGS_EX={' '.join(self._linking)}",
            *((f"{PATCHES_VARIABLE}={','.join(one.name for one in self.patches)}",) if self.patches else ()),
        )

    def counting(self, counts: Path) -> Mapping[str, str]:
        """Return make's variables for the instrumented program."""
        # Instrumented code calls exit functions, which libpq's build rejects unless coverage is enabled.
        flags = (*self._hardening.making, *self.compiler.counting(counts))
        return {**ALWAYS, "PROFILE": " ".join(flags), "enable_coverage": "yes"}

    def final(self, counts: Path, objects: Path) -> Mapping[str, str]:
        """Return make's variables for the installed program; ``objects`` are linked into it."""
        flags = [
            *self._hardening.making,
            *(self.compiler.counted(counts) if self.recipe.is_counted else ()),
            *self._linked_whole,
        ]
        compiling = {"PROFILE": " ".join(flags)} if flags else {}
        is_linked = self.recipe.is_on_huge_pages
        linked = huge_text.make_variables(objects / huge_text.OBJECT) if is_linked else {}
        return {**ALWAYS, **compiling, **linked, **self.compiler.make_variables(self.recipe)}

    @property
    def _linking(self) -> tuple[str, ...]:
        """The flags for linking programs, not libraries."""
        return (self._hardening.linking, *((bolt.LINKING,) if self.bolt else ()))

    @property
    def _linked_whole(self) -> tuple[str, ...]:
        return self.compiler.linked_whole() if self.recipe.is_linked_whole else ()

    @property
    def _hardening(self) -> _Hardening:
        return _HARDENING if self.recipe.is_hardened else _NO_HARDENING
