"""The recipe of a build: its optimisations, as parts joined with ``+``.

    o2, o3    the optimisation level; o3 unless o2 is given
    native    for exactly the CPU of the build host
    lto       link-time optimisation of the whole program
    pgo       profile-guided optimisation by execution counts under load; built twice
    bolt      code layout of the finished program by BOLT, from branches taken under load
    hugetext  moves its machine code to huge pages at startup
    unhardened  at fixed addresses, without stack protection, without checked libc calls
    patched   from sources changed by pgdyno's patches

A recipe with more than a level is also compiled for this CPU, unless another target is given. ``unhardened``
is never chosen automatically: it makes bugs in the server easier to exploit. Neither is ``patched``: it
differs from the released PostgreSQL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from pgdyno.base.errors import UsageError

LEVELS = ("o2", "o3")
UNHARDENED = "unhardened"
HUGE_TEXT = "hugetext"
PATCHED = "patched"
PARTS = (*LEVELS, "native", "lto", "pgo", "bolt", HUGE_TEXT, UNHARDENED, PATCHED)
_OF_ANY_CPU = {*LEVELS, HUGE_TEXT, UNHARDENED, PATCHED}
NATIVE = "native"
STRONGEST = "pgo+lto+bolt"
WITHOUT_BOLT = "pgo+lto"
PLAIN = "o2"  # the reference for faster builds
PATCHES_VARIABLE = "PGDYNO_PATCHES"
"""Passed to configure with the names of patches; the server then reports them in pg_config's CONFIGURE."""
_PATCHES = re.compile(rf"\b{PATCHES_VARIABLE}=([a-z0-9,-]+)")
_TARGET = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]*")
TRAINED_ON = ("sysbench-read-only", "sysbench-read-write", "sysbench-write-only", "pgbench-tpcb")
"""The default training workloads of a build."""
TRAINING_S = 20.0  # with each; with 40 s the build was equally fast, within 2 % (docs/results)
AUTO = "auto"  # the strongest recipe available here, the first complete compiler
COMPILERS = ("clang", "gcc")
"""In the order in which they are tried: trained builds were faster with clang (measured)."""


@dataclass(frozen=True)
class Recipe:
    """The optimisations of a build. ``parts`` are unique, in the order of ``PARTS``."""

    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The recipe's name on the command line."""
        return "+".join(self.parts)

    @property
    def optimisation(self) -> str:
        """The compiler flag of the optimisation level."""
        return "-O2" if "o2" in self.parts else "-O3"

    @property
    def target(self) -> str | None:
        """The default target CPU; None: every CPU of the architecture."""
        return NATIVE if set(self.parts) - _OF_ANY_CPU else None

    @property
    def is_linked_whole(self) -> bool:
        """Whether the program is optimised at link time."""
        return "lto" in self.parts

    @property
    def is_hardened(self) -> bool:
        """Whether it keeps the distributions' hardening flags."""
        return UNHARDENED not in self.parts

    @property
    def is_counted(self) -> bool:
        """Whether the compiler gets a training profile."""
        return "pgo" in self.parts

    @property
    def is_rearranged(self) -> bool:
        """Whether BOLT optimises the code layout."""
        return "bolt" in self.parts

    @property
    def is_on_huge_pages(self) -> bool:
        """Whether its machine code is moved to huge pages."""
        return HUGE_TEXT in self.parts

    @property
    def is_patched(self) -> bool:
        """Whether its sources are patched."""
        return PATCHED in self.parts

    @property
    def is_trained(self) -> bool:
        """Whether any part needs training under load."""
        return self.is_counted or self.is_rearranged


def parse_recipe(text: str) -> Recipe:
    """Parse ``pgo+lto``.

    Raises: UsageError for an unknown part, a repeated part, or two levels.
    """
    parts = text.strip().lower().split("+")
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise UsageError(
            f'--recipe "{text}": unknown part "{unknown[0]}"',
            detail=f"parts are {', '.join(PARTS)}, joined with +",
            hint=f"for example {STRONGEST}, or {AUTO} for the strongest available here",
        )
    if len(set(parts)) < len(parts) or set(LEVELS) <= set(parts):
        raise UsageError(f'--recipe "{text}" names a part twice, or two levels')
    return Recipe(tuple(part for part in PARTS if part in parts))


def patched(recipe: Recipe) -> Recipe:
    """Return the same recipe for patched sources."""
    return replace(recipe, parts=(*(part for part in recipe.parts if part != PATCHED), PATCHED))


def patches_in(configure: str) -> tuple[str, ...]:
    """Return the patches listed in a server's CONFIGURE; empty: none."""
    found = _PATCHES.search(configure)
    return () if found is None else tuple(found[1].split(","))


def target_flag(target: str, machine: str) -> str:
    """Return the compiler flag for a CPU. On Arm, -mcpu sets both the instruction set and the tuning."""
    return f"-mcpu={target}" if machine == "aarch64" else f"-march={target}"


def parse_target(text: str | None) -> str | None:
    """Return the target CPU of the compiler. Raises: UsageError for an invalid name."""
    if text is not None and not _TARGET.fullmatch(text):
        raise UsageError(
            f'--portable "{text}" is not a CPU name', hint="for example x86-64-v3, neoverse-n1, or native"
        )
    return text


_WORTH = {"hugetext": -1, "cspgo": -1, PATCHED: 1, "lto": 2, "pgo": 4, "bolt": 8}
"""The ranking of builds: measured, each part gained more than all those before it together, or came in
addition to them (docs/results/builds.md). hugetext, which takes memory, and cspgo, which builds made before
29 November 2026 may have, showed no gain in addition to bolt."""


@dataclass(frozen=True)
class KnownBuild:
    """An installed build, verified to behave like the released PostgreSQL."""

    name: str  # built-0123456789ab
    version: str  # 18.6; of releases only
    compiler: str
    recipe: str  # lto+pgo+bolt
    training: tuple[str, ...]
    tests: int  # of PostgreSQL's own, all passed

    @property
    def major(self) -> int:
        """The major version."""
        return self.release[0]

    @property
    def is_patched(self) -> bool:
        """Whether it was built from sources patched by pgdyno."""
        return PATCHED in self.recipe.split("+")

    @property
    def strength(self) -> int:
        """The rank of its recipe among builds of the same version."""
        return sum(_WORTH.get(part, 0) for part in self.recipe.split("+"))

    @property
    def release(self) -> tuple[int, ...]:
        """The version as numbers."""
        return tuple(map(int, self.version.split(".")))
