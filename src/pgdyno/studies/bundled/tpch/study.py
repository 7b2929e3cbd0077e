"""A TPC-H-like workload: 22 queries alone and in streams, with refresh functions, in passes.

A pass is a power run and a throughput run on one variant's server, restarted on a fresh copy of the loaded
data. Passes of all variants alternate in random order, with the same values in a round.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from pgdyno.base.errors import UsageError
from pgdyno.load.tpch_tables import data_set
from pgdyno.measure.bundled_study import BundledStudy, Sizing, StudyContext
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.step_record import (
    DISCLAIMER,
    POWER_RUN,
    PREFIX,
    REFRESHES,
    THROUGHPUT_RUN,
    scale_text,
)
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import ResetPolicy, TpchStep, Workload
from pgdyno.studies.bundled.tpch.queries import MOST_STREAMS, NUMBERS, usual_streams

_NAMES = (*(f"q{number}" for number in NUMBERS), *REFRESHES, POWER_RUN, THROUGHPUT_RUN)
_USUAL_SCALE = 0.1
_TITLES = {
    "rf1": "refresh function 1 of the power run: inserts new orders",
    "rf2": "refresh function 2 of the power run: deletes old orders",
    POWER_RUN: "the power run: geometric mean of its 22 queries and 2 refresh functions",
    THROUGHPUT_RUN: "the throughput run: concurrent streams of queries and one of refresh functions",
}


def workloads(sizing: Sizing) -> Mapping[str, Workload]:
    """Return the workloads that a pass measures.

    Raises: UsageError for a scale that is not a multiple of 0.001, or for too many streams.
    """
    thousandths, streams = _thousandths(sizing), _streams(sizing)
    scale = scale_text(thousandths)
    label = f"{DISCLAIMER}; scale {scale}, {streams} streams in the throughput run"
    return {
        f"{PREFIX}{name}": Workload(
            f"{PREFIX}{name}",
            _TITLES.get(name, f"query {name[1:]} of the power run"),
            data_set(thousandths),
            ResetPolicy.RESTORE,
            kind=TpchStep(name, streams, label),
        )
        for name in _NAMES
    }


def study(context: StudyContext) -> Study:
    """Return a study of the baseline; factors add the other variants."""
    scale = scale_text(_thousandths(context.sizing))
    return Study(
        name="tpch",
        question=f"How do the variants do on the 22 queries of a TPC-H-like workload at scale {scale}?",
        variants=(context.baseline,),
        workloads=context.workloads,
        design=context.design,
    )


def _thousandths(sizing: Sizing) -> int:
    scale = _USUAL_SCALE if sizing.scale is None else sizing.scale
    thousandths = round(scale * 1000) if isfinite(scale) else 0
    if thousandths < 1 or abs(thousandths - scale * 1000) > 1e-6:
        raise UsageError(
            f"--scale {scale:g} is not a multiple of 0.001",
            hint="--scale 1 is 1.8 GB on disk, --scale 0.1 a tenth of that",
        )
    return thousandths


def _streams(sizing: Sizing) -> int:
    streams = sizing.clients or usual_streams(_thousandths(sizing))
    if streams > MOST_STREAMS:
        raise UsageError(
            f"there are at most {MOST_STREAMS} streams, not {streams}",
            detail="--clients is the number of streams of the throughput run, each with its own order",
            hint=f"choose --clients {MOST_STREAMS} or fewer",
        )
    return streams


STUDY = BundledStudy(
    title="22 queries like TPC-H's, alone and in streams; --scale 0.1, vary a setting with --factor",
    study=study,
    workloads=workloads,
    passes=f"{__package__}.passes",
    design=Design(is_isolated=False),  # the client is mostly idle: the server may use all CPUs
    takes_scale=True,
)
