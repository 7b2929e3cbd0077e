"""Workloads, conditions and design, from the options of the measuring commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.base.errors import UsageError
from pgdyno.cli.output import warn
from pgdyno.host.cpu_idling import AS_BOOTED_GIVEN
from pgdyno.model.experiments.experiment import Design, Phase
from pgdyno.model.experiments.workload import PREPARED

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.measure.conditions import Conditions, LoadSource
    from pgdyno.model.cells.cell import CellHosts
    from pgdyno.model.experiments.workload import Workload
    from pgdyno.model.variants.variant import Variant
    from pgdyno.postgres.process.installation import Installation


def parsed_variant(text: str) -> Variant:
    """Return a variant of the command line, with the contents of its file of SQL.

    Raises: VariantError; UsageError if the file cannot be read.
    """
    from pgdyno.model.variants.variant import parse_variant

    return parse_variant(text, _read_sql)


def _read_sql(path: str) -> str:
    from pgdyno.model.variants.schema_sql import MOST_CHARACTERS
    from pgdyno.store.files import open_plain

    try:
        with TextIOWrapper(open_plain(Path(path)), encoding="utf-8-sig") as file:
            return file.read(MOST_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(
            f'could not read the SQL file "{path}"',
            detail=reason,
            hint="name a file: idx:sql=orders.sql",
        ) from error


@dataclass(frozen=True)
class Measuring:
    """The options common to the measuring commands, as given on the command line."""

    embedded: bool
    pg_bin: Path | None
    workloads: tuple[str, ...]
    scripts: tuple[str, ...]
    scale: float | None
    generator: str | None
    clients: int | None
    blocks: int | None
    budget_s: float | None
    until: str | None
    block_s: float | None
    slice_s: float | None
    kind: str | None
    isolate: bool | None
    seed: int
    as_booted: bool
    unlike: bool
    resume: str | None
    gate: bool
    allow_files: tuple[str, ...] = ()
    phase: Phase = Phase.AFTER_CHECKPOINT
    protocol: str | None = None

    @property
    def whole_scale(self) -> int | None:
        """The scale for bundled workloads. Raises: UsageError for a fraction, or less than 1."""
        if self.scale is None or (self.scale >= 1 and self.scale.is_integer()):
            return None if self.scale is None else int(self.scale)
        raise UsageError(f"--scale {self.scale:g} is not an integer", hint="only tpch accepts fractions")

    def or_budget(self, usual_s: float | None) -> Measuring:
        """Return the same with the budget ``usual_s`` unless an option limits the duration."""
        is_limited = self.budget_s or self.blocks or self.until or usual_s is None
        return self if is_limited else replace(self, budget_s=usual_s)

    def or_workloads(self, usual: tuple[str, ...], generator: str | None) -> Measuring:
        """Return the same with the ``usual`` workloads and their load generator if none was requested."""
        if self.workloads or self.scripts:
            return self
        return replace(self, workloads=usual, generator=self.generator or generator)

    def chosen_workloads(self) -> dict[str, Workload]:
        """Return the requested workloads. Raises: UsageError for none, or an unknown one."""
        from pgdyno.workload.workload_choice import find_workloads

        if not self.workloads and not self.scripts:
            raise UsageError("no workload was named", hint="add for example --workload pgbench-select")
        if self.protocol is not None and not self.scripts:
            raise UsageError("--protocol requires --script", hint="omit it, or run pgdyno run clients")
        return find_workloads(
            self.workloads, self.scripts, self.whole_scale, self.generator, self.protocol or PREPARED
        )

    def installation(self) -> Installation | None:
        """Return the PostgreSQL of variants that name no server; None if none was given."""
        from pgdyno.postgres.process.registry import choose_installation

        return choose_installation(is_embedded=self.embedded, bin_directory=self.pg_bin)

    def conditions(
        self, base: Design | None = None, own_workloads: Mapping[str, Workload] | None = None
    ) -> Conditions:
        """Return the conditions to measure under; ``own_workloads`` are those of a study."""
        if own_workloads is not None:
            self._refuse_other_workloads()
            if any(workload.step for workload in own_workloads.values()):
                return self._pass_conditions(own_workloads, base)
        workloads = own_workloads or self.chosen_workloads()
        return self._conditions(workloads, self.design(base, workloads))

    def conditions_on(self, load_from: LoadSource | None) -> Conditions:
        """Return the conditions, with load hosts if ``load_from`` is given.

        Raises: UsageError for options and workloads that conflict with load hosts.
        """
        if load_from is not None:
            refuse_with_cell({"--isolate or --no-isolate": self.isolate is not None})
        return with_load_from(self.conditions(), load_from)

    def _pass_conditions(self, workloads: Mapping[str, Workload], base: Design | None) -> Conditions:
        """Return conditions for steps; these run in whole passes, each of one arm."""
        from pgdyno.measure.design.requested import in_passes

        self._refuse_what_passes_decide()
        clients = max(workload.step.clients for workload in workloads.values() if workload.step)
        design = in_passes(self.design(base), self.blocks, clients)
        return self._conditions(workloads, design)

    def _refuse_other_workloads(self) -> None:
        """Raise UsageError for options that would otherwise be ignored."""
        given = {
            "--workload": self.workloads,
            "--script": self.scripts,
            "--scale": self.scale,
            "--generator": self.generator,
        }
        if refused := [name for name, value in given.items() if value]:
            raise UsageError("this study has its own workloads", hint=f"leave out {' and '.join(refused)}")

    def _refuse_what_passes_decide(self) -> None:
        """Raise UsageError for options that would otherwise be ignored."""
        given = {
            "--block": self.block_s,
            "--slice": self.slice_s,
            "--design": self.kind,
            "--phase cycle": self.phase is Phase.CYCLE or None,
        }
        refused = [name for name, value in given.items() if value is not None]
        if refused:
            raise UsageError(
                f"this study runs its steps from beginning to end: it takes no {' and no '.join(refused)}",
                hint=f"leave out {' and '.join(refused)}",
            )

    def file_conditions(self) -> Conditions:
        """Return conditions for an experiment file; the file defines workloads and design."""
        return self._conditions({}, self.design())

    def _conditions(self, workloads: Mapping[str, Workload], design: Design) -> Conditions:
        """Return the conditions. Raises: UsageError, also for an invalid --allow-file."""
        from pgdyno.apply.allowed_files import allowed_file
        from pgdyno.measure.conditions import Conditions
        from pgdyno.measure.design.phase import require_writing

        if design.phase is Phase.CYCLE:
            require_writing(workloads.values())
        allowed = frozenset(map(allowed_file, self.allow_files))
        return Conditions(
            self.installation(),
            workloads,
            design,
            self.budget_s,
            self.resume,
            allowed_files=allowed,
            as_booted=AS_BOOTED_GIVEN if self.as_booted else "",
            accepts_unlike=self.unlike,
        )

    def design(self, base: Design | None = None, workloads: Mapping[str, Workload] | None = None) -> Design:
        """Return the requested design. Raises: UsageError for an invalid --until."""
        from pgdyno.measure.design.requested import RequestedDesign, design_of
        from pgdyno.model.experiments.workload import usual_clients

        requested = RequestedDesign(
            seed=self.seed,
            clients=self.clients or usual_clients((workloads or {}).values()),
            blocks=self.blocks,
            block_s=self.block_s,
            slice_s=self.slice_s,
            is_alternating=self.kind == "alternating",
            is_isolated=self.isolate,
            phase=self.phase,
            until=self.until,
        )
        return design_of(base or Design(), requested)


def refuse_with_cell(given: Mapping[str, object]) -> None:
    """Raise UsageError for any given option that conflicts with load hosts; ``given`` is keyed by option."""
    if refused := [name for name, value in given.items() if value]:
        raise UsageError(
            f"--cell cannot be combined with {' and '.join(refused)}",
            hint="load from other hosts takes no CPUs here, and goes to scratch servers",
        )


def warn_of_load(command: str, cell: CellHosts) -> None:
    """Warn that a command does not use the load hosts of a cell."""
    hosts = ", ".join(host.name for host in cell.loads)
    warn(f"{cell.server.name} generates the load itself: {command} does not use load hosts yet ({hosts})")


def with_load_from(conditions: Conditions, source: LoadSource | None) -> Conditions:
    """Return conditions with the load hosts of a cell; unchanged if ``source`` is None.

    Raises: UsageError for workloads that load hosts cannot issue. Workloads of an experiment file are read
    later and are not checked here.
    """
    if source is None:
        return conditions
    if conditions.workloads:
        source.require_issuable(conditions.workloads.values(), conditions.design)
    return replace(conditions, load_from=source)
