"""Huge pages: server memory on 4 kB, 2 MB and 1 GB pages, by database size and clients.

All servers have the same settings except for their pages. A pool of reserved pages has exactly the pages that
the servers using it need, so no other server gets one by accident. Transparent huge pages are switched at
each turn: for shared memory (shmem_enabled) in one arm, for private memory in another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pgdyno.base.errors import UsageError
from pgdyno.measure.bundled_study import BundledStudy, PageSupport, Pool, Sizing, StudyContext
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.studies.bundled._huge_pages_grid import DESIGN, PRESET, PUBLISHED_PRESET, grid_of

PRIVATE = "/sys/kernel/mm/transparent_hugepage/enabled"
SHARED = "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
NEVER, ALWAYS = "never", "always"
_KB, _MB, _GB = 1 << 10, 1 << 20, 1 << 30
_YOUNG = (
    "huge-pages: the clients of every cell connected only seconds before. With 4 kB pages many still touch "
    "pages of shared memory for the first time (see minor page faults); long-lived connections no longer do, "
    "and gain less"
)


def workloads(sizing: Sizing) -> Mapping[str, Workload]:
    """Return the cells that fit into the budget. Raises: UsageError, MemoryProofError."""
    return {cell.name: cell for cell in grid_of(sizing).cells}


def settings(sizing: Sizing) -> Mapping[str, str]:
    """Return the common settings of all servers, without those of their pages."""
    return grid_of(sizing).settings


def study(context: StudyContext) -> Study:
    """Return an arm per available kind of page. Raises: UsageError if only one kind is available."""
    pages = context.pages
    assert pages is not None  # noqa: S101 — the study needs it
    variants = tuple(_variants(context.baseline, pages))
    missing = tuple(_missing(pages))
    if len(variants) == 1:
        raise UsageError("huge pages are not available here", detail="; ".join(missing))
    return Study(
        name="huge-pages",
        question="What are huge pages worth for shared memory, by size of the database and clients?",
        variants=variants,
        workloads=context.workloads,
        design=context.design,
        notes=(*missing, *_left_out(context.sizing), *_published(context.sizing), _YOUNG),
    )


def _variants(baseline: Variant, pages: PageSupport) -> Iterator[Variant]:
    """Yield the variants; the first, 4 kB pages, is the baseline."""
    plain = {
        **{path: NEVER for path, choices in pages.choices.items() if NEVER in choices},
        **{pool.path: str(pool.found) for pool in pages.pools.values() if pool.obstacle is None},
    }
    small = {**baseline.settings, "huge_pages": "off", **plain}
    yield replace(baseline, name="4kB", settings=small)
    for name, path in (("thp-shared", SHARED), ("thp-private", PRIVATE)):
        if ALWAYS in pages.choices.get(path, ()):
            yield replace(baseline, name=name, settings={**small, path: ALWAYS})
    for size_bytes, pool in sorted(pages.pools.items()):
        if pool.obstacle is None:
            yield replace(baseline, name=_size(size_bytes), settings={**small, **_on(size_bytes, pool)})


def _on(size_bytes: int, pool: Pool) -> dict[str, str]:
    return {
        "huge_pages": "on",
        "huge_page_size": f"{size_bytes // _KB}kB",
        pool.path: str(pool.wanted),
    }


def _size(size_bytes: int) -> str:
    unit, name = next(one for one in ((_GB, "GB"), (_MB, "MB"), (_KB, "kB")) if size_bytes >= one[0])
    return f"{size_bytes // unit}{name}"


def _missing(pages: PageSupport) -> Iterator[str]:
    """Yield the unavailable kinds of page, with the reasons."""
    for size_bytes, pool in sorted(pages.pools.items()):
        if pool.obstacle is not None:
            yield f"pages of {_size(size_bytes)} are left out: {pool.obstacle}"
    for size_bytes in (2 * _MB, _GB):
        if size_bytes not in pages.pools:
            yield f"pages of {_size(size_bytes)} are left out: this kernel does not support them on this CPU"
    for path, what in ((SHARED, "shared"), (PRIVATE, "private")):
        if ALWAYS not in pages.choices.get(path, ()):
            yield f"transparent huge pages for {what} memory are left out: this kernel has no {path}"


def _left_out(sizing: Sizing) -> Iterator[str]:
    left_out = grid_of(sizing).left_out
    if left_out and sizing.budget_s is not None:
        names = ", ".join(cell.name for cell in left_out)
        yield f"left out because of the budget of {sizing.budget_s / 60:.0f} minutes: {names}"


def _published(sizing: Sizing) -> Iterator[str]:
    if sizing.of(PRESET) == PUBLISHED_PRESET:
        yield (
            "settings and sizes as published for PostgreSQL 11 in 2018, where every cell was the mean of "
            "three runs of 30 minutes: --block 30m gives blocks of this length"
        )


STUDY = BundledStudy(
    title="pages of 4 kB against transparent, 2 MB and 1 GB huge pages, by database size and clients",
    study=study,
    measures=("pgbench-select", "pgbench-tpcb"),
    workloads=workloads,
    settings=settings,
    design=DESIGN,
    budget_s=45 * 60.0,
    options=(PRESET,),
    needs_page_support=True,
)
