"""Check that an interrupted experiment matches the present request, so that it can continue."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.experiment import CELL_OPTION, Experiment


def require_same(
    stored: Experiment, asked: Experiment, labels: AbstractSet[str], *, is_imported: bool
) -> None:
    """Raise UsageError if ``stored`` was imported, or is another experiment than ``asked``.

    ``labels`` are the notes that say how the workloads are run: the stored one must have them.
    """
    if is_imported:
        raise UsageError(
            f"experiment {stored.id} was imported: a measurement here would not be comparable",
            hint="repeat its command line without --resume",
        )
    if (CELL_OPTION in stored.options) != (CELL_OPTION in asked.options):
        was = "other hosts" if CELL_OPTION in stored.options else "this machine"
        raise UsageError(
            f"experiment {stored.id} had its load from {was}",
            hint="repeat its command line, with --cell or without it as it was, and add --resume",
        )
    if stored.variants != asked.variants or stored.workloads != asked.workloads:
        was = " ".join(str(variant) for variant in stored.variants)
        raise UsageError(
            f"experiment {stored.id} compared other variants or workloads",
            detail=f"it compared {was} on {', '.join(stored.workloads)}",
            hint="repeat its command line and add --resume",
        )
    if (stored.scales, stored.installation) != (asked.scales, asked.installation):
        raise UsageError(
            f"experiment {stored.id} used other data or another PostgreSQL",
            detail=f"it ran {stored.installation} at scale {_scale(stored)}, not "
            f"{asked.installation} at scale {_scale(asked)}",
            hint="repeat its command line and add --resume",
        )
    if not labels <= {*stored.notes}:
        raise UsageError(
            f"experiment {stored.id} was run in another mode or at another size",
            detail=f"requested: {'; '.join(sorted(labels - {*stored.notes}))}",
            hint="repeat its command line and add --resume",
        )
    if stored.generators != asked.generators:
        issued = ", ".join(f"{workload} by {name}" for workload, name in stored.generators.items())
        raise UsageError(
            f"experiment {stored.id} used another load generator",
            detail=f"it had {issued or 'an older pgdyno'}",
            hint="repeat its command line, --generator included, and add --resume",
        )
    if stored.design.is_isolated != asked.design.is_isolated:
        raise UsageError(
            f"experiment {stored.id} pinned client and server in another way",
            hint="repeat its command line, --isolate or --no-isolate included, and add --resume",
        )


def _scale(experiment: Experiment) -> str:
    if experiment.tpch:
        return experiment.tpch.scale
    return ", ".join(sorted({str(scale) for scale in experiment.scales.values()}))
