"""The recipe of a build: its optimisations beyond compiling, as parts joined with ``+``.

    o2, o3    the level of optimisation; o3 unless o2 is named
    native    for exactly the CPU that it is built on
    lto       optimised as a whole, at link time
    pgo       optimised by counts of what it does under load, for which it is built twice
    bolt      rearranged, when it is finished, by the branches that it takes under load
    hugetext  moves its machine code to huge pages when it starts
    unhardened  at fixed addresses, without a protected stack, without checked calls of libc
    patched   from sources that patches of pgdyno's have changed

Whatever makes use of more than a level is for this CPU too, unless another target is named. ``unhardened`` is
never chosen by itself: what an attacker can make of a mistake in the server becomes worse by it. Nor is
``patched``: it is another PostgreSQL than the one that was released.
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
PLAIN = "o2"  # what faster builds are held against
PATCHES_VARIABLE = "PGDYNO_PATCHES"
"""Given to configure with the patches' names, so that the server says them itself: CONFIGURE of pg_config."""
_PATCHES = re.compile(rf"\b{PATCHES_VARIABLE}=([a-z0-9,-]+)")
_TARGET = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]*")
TRAINED_ON = ("sysbench-read-only", "sysbench-read-write", "sysbench-write-only", "pgbench-tpcb")
"""What a build is trained on unless something else is asked for."""
TRAINING_S = 20.0  # with each; after 40 s the build was as fast, to 2 % (docs/results)
AUTO = "auto"  # what can be had here: the strongest recipe, the first complete compiler
COMPILERS = ("clang", "gcc")
"""In the order in which they are tried: with clang, what was trained was faster (measured)."""


@dataclass(frozen=True)
class Recipe:
    """The optimisations of a build beyond compiling. ``parts`` are in the order of ``PARTS``, each once."""

    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The recipe's name on the command line."""
        return "+".join(self.parts)

    @property
    def optimisation(self) -> str:
        """The compiler's flag for the level."""
        return "-O2" if "o2" in self.parts else "-O3"

    @property
    def target(self) -> str | None:
        """The default target; None: every CPU of the architecture."""
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
        """Whether the compiler gets counts of training."""
        return "pgo" in self.parts

    @property
    def is_rearranged(self) -> bool:
        """Whether BOLT gets them."""
        return "bolt" in self.parts

    @property
    def is_on_huge_pages(self) -> bool:
        """Whether its machine code gets onto huge pages."""
        return HUGE_TEXT in self.parts

    @property
    def is_patched(self) -> bool:
        """Whether patches change its sources."""
        return PATCHED in self.parts

    @property
    def is_trained(self) -> bool:
        """Whether any part depends on training under load."""
        return self.is_counted or self.is_rearranged


def parse_recipe(text: str) -> Recipe:
    """Parse ``pgo+lto``.

    Raises: UsageError for an unknown part, one named twice, or two levels.
    """
    parts = text.strip().lower().split("+")
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise UsageError(
            f'--recipe "{text}": there is no "{unknown[0]}"',
            detail=f"parts are {', '.join(PARTS)}, joined with +",
            hint=f"for example {STRONGEST}, or {AUTO} for the strongest that can be had here",
        )
    if len(set(parts)) < len(parts) or set(LEVELS) <= set(parts):
        raise UsageError(f'--recipe "{text}" names a part twice, or two levels')
    return Recipe(tuple(part for part in PARTS if part in parts))


def patched(recipe: Recipe) -> Recipe:
    """Return the recipe of the same build from patched sources."""
    return replace(recipe, parts=(*(part for part in recipe.parts if part != PATCHED), PATCHED))


def patches_in(configure: str) -> tuple[str, ...]:
    """Return the patches that a server's CONFIGURE names; empty: it was built without."""
    found = _PATCHES.search(configure)
    return () if found is None else tuple(found[1].split(","))


def target_flag(target: str, machine: str) -> str:
    """Return the compilers' flag for a CPU. On Arm one name stands for its instructions and its pipeline."""
    return f"-mcpu={target}" if machine == "aarch64" else f"-march={target}"


def parse_target(text: str | None) -> str | None:
    """Return the CPU that code is compiled for. Raises: UsageError for an invalid name."""
    if text is not None and not _TARGET.fullmatch(text):
        raise UsageError(
            f'--portable "{text}" is no name of a CPU', hint="for example x86-64-v3, neoverse-n1, or native"
        )
    return text


_WORTH = {"hugetext": -1, "cspgo": -1, PATCHED: 1, "lto": 2, "pgo": 4, "bolt": 8}
"""By which builds are ranked: measured, each part was worth more than those before it together, or joined
them (docs/results/builds.md). Of hugetext, which takes memory, and of cspgo, which builds of before
29 November 2026 may have, no gain was found beside bolt."""


@dataclass(frozen=True)
class KnownBuild:
    """A build that is installed here, and was verified to be the same PostgreSQL."""

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
        """Whether pgdyno has changed its source."""
        return PATCHED in self.recipe.split("+")

    @property
    def strength(self) -> int:
        """The rank of its recipe among builds of the same program."""
        return sum(_WORTH.get(part, 0) for part in self.recipe.split("+"))

    @property
    def release(self) -> tuple[int, ...]:
        """The version as numbers."""
        return tuple(map(int, self.version.split(".")))
