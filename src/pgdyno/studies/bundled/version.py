"""Two PostgreSQL servers with default settings: major versions, or builds of one major version.

Differences other than the version (compiler, flags, libraries, a distribution's patches) confound the
comparison; --accept compares the builds nevertheless.
"""

from __future__ import annotations

from pgdyno.base.errors import UsageError
from pgdyno.measure.bundled_study import BundledStudy, StudyContext
from pgdyno.model.experiments.study import SERVER_FACTOR, Study


def study(context: StudyContext) -> Study:
    """Return the study; the factor adds the variants. Raises: UsageError for fewer than two servers."""
    servers = context.factors.get(SERVER_FACTOR, ())
    if len(servers) < 2:
        raise UsageError(
            f"a comparison of versions takes two servers, not {len(servers)}",
            hint="name them with --factor server=A,B; pgdyno server list shows the known servers",
        )
    first, *others = servers
    return Study(
        name="version",
        question=f"How does PostgreSQL of {' and '.join(others)} compare with that of {first}?",
        variants=(context.baseline,),
        workloads=context.workloads,
        design=context.design,
    )


STUDY = BundledStudy(
    title="two PostgreSQL versions: name them with --factor server=A,B",
    study=study,
    measures=("sysbench-read-only", "sysbench-read-write", "pgbench-select"),
)
