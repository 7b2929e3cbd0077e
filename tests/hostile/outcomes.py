"""What a series of attacks came to: the table of docs/results/trust/hostile.md, and its faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.hostile.attack import Outcome


def require_no_fault(outcomes: Sequence[Outcome]) -> None:
    """Print what was seen, and fail with everything that should not have been."""
    for command in dict.fromkeys(one.command for one in outcomes):
        some = [one for one in outcomes if one.command == command]
        codes = Counter(str(one.exit_code) for one in some)
        ends = ", ".join(f"{code}: {count}" for code, count in sorted(codes.items()))
        print(  # noqa: T201 — the table of docs/results/trust/hostile.md
            f"| {command} | {len(some)} | {sum(one.has_acted for one in some)} | {ends} "
            f"| {max(one.wall_s for one in some):.1f} | {max(one.rss_bytes for one in some) >> 20} |"
        )
    faults = [
        f"{one.command}, {one.case.name}: {'; '.join(found)}\n{one.err[-1500:]!a}"
        for one in outcomes
        if (found := one.faults())
    ]
    assert not faults, "\n".join(faults)


def require_met(outcomes: Sequence[Outcome]) -> None:
    """Fail if most commands came to an end before the server did anything to them."""
    assert sum(one.has_acted for one in outcomes) > len(outcomes) / 2
