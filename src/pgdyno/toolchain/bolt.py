"""BOLT: lays a linked program out anew, by the branches that it took under load.

Without a processor that records branches, the program is instrumented: its counters lie in memory that all
its processes share, and a watcher writes them to one file now and then. So every other start of that program
would overwrite it: nothing but the trained server is ever started from the instrumented installation.

Source: LLVM, bolt/docs/OptimizingClang.md and bolt/README.md; llvm-project issue 128282 on services.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

WRITTEN_EVERY_S = 10  # the watcher's interval: so long training has to go on before what counts is on disk
KEPT_RELOCATIONS = "-Wl,--emit-relocs"
_NOT_UNDERSTOOD = "ExecInterpExpr.*"
"""A function that jumps through a table of addresses: BOLT before LLVM 21.1 gets it wrong in programs that
are independent of their position (llvm-project, pull request 120267). It is left as it is."""


@dataclass(frozen=True)
class Bolt:
    """llvm-bolt of one version; ``suffix`` is what its name ends with: ``-19``, or nothing."""

    suffix: str

    @property
    def program(self) -> str:
        """What is run."""
        return f"llvm-bolt{self.suffix}"

    @property
    def package(self) -> str:
        """What it is installed by."""
        return f"bolt{self.suffix}"

    def instrument(self, program: Path, counting: Path, counts: Path) -> tuple[str, ...]:
        """Return the command that makes ``counting``, which writes ``counts``, of a linked program."""
        return (
            self.program,
            str(program),
            "-instrument",
            f"-o={counting}",
            f"--instrumentation-file={counts}",
            f"--instrumentation-sleep-time={WRITTEN_EVERY_S}",
            "--instrumentation-no-counters-clear",
            f"--skip-funcs={_NOT_UNDERSTOOD}",
        )

    def lay_out(self, program: Path, laid_out: Path, counts: Path) -> tuple[str, ...]:
        """Return the command that makes ``laid_out`` of the program that was instrumented."""
        return (
            self.program,
            str(program),
            f"-o={laid_out}",
            f"-data={counts}",
            "-reorder-blocks=ext-tsp",
            "-reorder-functions=cdsort",
            "-split-functions",
            "-split-all-cold",
            "-split-eh",
            "-dyno-stats",
            f"--skip-funcs={_NOT_UNDERSTOOD}",
        )
