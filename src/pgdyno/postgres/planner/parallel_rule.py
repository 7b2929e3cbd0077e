"""PostgreSQL's rules for the number of parallel workers, equal in 14 to 18. Pure.

Source: ``compute_parallel_worker`` and ``add_paths_to_append_rel`` in src/backend/optimizer/path/allpaths.c.
"""

from __future__ import annotations

_OVERFLOW = (2**31 - 1) // 3  # PostgreSQL stops tripling there: INT_MAX / 3


def workers_by_size(pages: int, threshold: int, *, is_child: bool = False) -> int:
    """Return how many workers the size of a scan gives: one from the threshold, one more per tripling.

    ``is_child``: of a partitioned or inherited table, of which even the smallest gets one.
    """
    if pages < threshold and not is_child:
        return 0
    workers, step = 1, max(threshold, 1)
    while pages >= step * 3:
        workers, step = workers + 1, step * 3
        if step > _OVERFLOW:
            break
    return workers


def threshold_for(pages: int, workers: int) -> int | None:
    """Return the largest threshold at which ``pages`` pages get ``workers`` workers.

    None: there are too few pages.
    """
    if workers < 1:
        return None
    threshold = pages // 3 ** (workers - 1)
    return threshold if threshold >= 1 else None


def workers_by_children(children: int) -> int:
    """Return the least that a Parallel Append takes: the binary logarithm of its children, plus one."""
    return children.bit_length()
