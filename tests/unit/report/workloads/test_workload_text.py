"""A captured workload as a terminal shows it: what its sessions do between transactions."""

from __future__ import annotations

from pgdyno.model.experiments.captured import CapturedCall, CapturedTransaction, CapturedWorkload
from pgdyno.report.workloads.workload_text import workload_text


def shown(pauses_s: tuple[float, ...]) -> str:
    transaction = CapturedTransaction(600.0, (CapturedCall("s", 1.0),))
    workload = CapturedWorkload(
        "w", "18", 1, "d", 60.0, 2, (), (transaction,), pauses_s=pauses_s, sessions=9 if pauses_s else None
    )
    return workload_text(workload).replace("\N{NO-BREAK SPACE}", " ")


def test_pauses_are_shown_with_what_replays_them() -> None:
    assert (
        "  9 sessions, which pause between two transactions for 20 ms (median; 1.01 s on average): "
        "replay --pauses does so, too\n"
    ) in shown((0.01, 0.02, 3.0))


def test_sessions_that_do_not_pause_are_said_not_to() -> None:
    assert "sessions begin the next transaction at once" in shown((0.0, 0.0))
    assert "pause" not in shown(())
