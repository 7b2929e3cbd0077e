"""Find workloads by name, and make one from the user's own scripts."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from pgdyno.model.errors import UsageError
from pgdyno.model.experiments.experiment import ResetPolicy
from pgdyno.model.experiments.workload import USER_SCRIPTS, PgbenchScripts, Script, Workload
from pgdyno.workloads import load as bundled_workloads
from pgdyno.workloads._pgbench import PGBENCH_DATA


def find_workloads(
    names: tuple[str, ...],
    scripts: tuple[str, ...] = (),
    scale: int | None = None,
    generator: str | None = None,
) -> dict[str, Workload]:
    """Return workloads by name, the user's scripts as one more, all at ``scale`` if it is given.

    ``generator`` issues them instead of our driver.
    Raises: UsageError for an unknown name, a script that is not there, or a generator that cannot issue one.
    """
    known = bundled_workloads()
    for name in names:
        if name not in known:
            raise UsageError(f'no workload "{name}"', hint=f"known: {', '.join(sorted(known))}")
    chosen = {name: known[name] for name in names}
    if scripts:
        parsed = tuple(_parse_script(text) for text in scripts)
        chosen[USER_SCRIPTS] = Workload(
            name=USER_SCRIPTS,
            title=f"pgbench scripts: {', '.join(scripts)}",
            data_set=PGBENCH_DATA,
            reset=ResetPolicy.RESTORE,
            kind=PgbenchScripts(parsed),
            generator="pgbench",
        )
    if generator is not None:
        chosen = {name: _issued_by(generator, workload) for name, workload in chosen.items()}
    if scale is None:
        return chosen
    return {n: replace(w, data_set=replace(w.data_set, scale=scale)) for n, w in chosen.items()}


def _issued_by(generator: str, workload: Workload) -> Workload:
    if generator not in workload.generators:
        raise UsageError(
            f'the generator "{generator}" cannot issue {workload.name}',
            hint=f"choose --generator {' or '.join(workload.generators)}",
        )
    return replace(workload, generator=generator)


def _parse_script(text: str) -> Script:
    """Parse ``FILE[@WEIGHT]``."""
    name, at, weight = text.rpartition("@")
    file, count = (name, weight) if at else (text, "1")
    if not count.isdigit() or int(count) < 1:
        raise UsageError(f'"{text}" has no valid weight', hint="write --script file.sql@3")
    if not os.access(file, os.R_OK):
        raise UsageError(f'could not read script "{file}"', hint="write --script path/to/file.sql[@weight]")
    return Script(name=Path(file).name, weight=int(count), file=str(Path(file).resolve()))
