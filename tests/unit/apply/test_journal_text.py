"""What people read after apply, revert and status."""

from __future__ import annotations

from pgdyno.apply.journal_text import apply_text, revert_text, status_text
from pgdyno.model.plans.journal import (
    ApplyResult,
    Drift,
    OtherJournal,
    Outcome,
    ReceiptState,
    RevertResult,
    StatusEntry,
    StatusReport,
)
from pgdyno.model.plans.plan import Finding

BUFFERS = Outcome("shared_buffers", "shared_buffers", "128MB", None, "6GB", "6GB", ReceiptState.VERIFIED)
WAL = Outcome("wal_buffers", "wal_buffers", "4MB", None, "-1", "16MB", ReceiptState.VERIFIED)


def test_apply_shows_before_and_after_and_what_the_server_chose() -> None:
    result = ApplyResult(
        "20261121T052400Z-1a2b3c", "host=/run port=5432", (BUFFERS, WAL),
        statements=(), restarts=1, notes=("the server's files are not accessible",),
        revert_command="pgdyno revert --dsn service=production",
    )  # fmt: skip
    assert apply_text(result) == (
        "2 changes in force on host=/run port=5432, after a restart\n"
        "\n"
        "    shared_buffers  128MB → 6GB\n"
        "    wal_buffers     4MB → -1     in force: 16MB\n"
        "\n"
        "undo: pgdyno revert --dsn service=production --allow-restart --restart-command '…'\n"
        "note: the server's files are not accessible\n"
    )


def test_a_dry_run_shows_statements_and_restarts() -> None:
    result = ApplyResult(
        None, "host=/run port=5432", (), ("ALTER SYSTEM SET jit = 'off';",), restarts=0, is_dry_run=True
    )
    assert apply_text(result) == (
        "Would run 1 statement on host=/run port=5432; needs no restart\n"
        "\n"
        "    ALTER SYSTEM SET jit = 'off';\n"
    )


def test_apply_shows_what_was_found_about_the_server_first() -> None:
    found = Finding(
        "warning", "work_mem = 1GB is set for role app", "remove it with ALTER ROLE app RESET work_mem"
    )
    result = ApplyResult(None, "host=/run", (), (), restarts=0, findings=(found,))
    assert apply_text(result) == (
        "WARNING: work_mem = 1GB is set for role app\n"
        "    hint: remove it with ALTER ROLE app RESET work_mem\n"
        "\n"
        "Nothing to change.\n"
    )


def test_nothing_to_revert_may_be_in_another_journal() -> None:
    result = RevertResult(
        "host=/run", (), (), other_journals=(OtherJournal("/var/lib/pgdyno/journal", None),)
    )
    assert revert_text(result) == (
        "Nothing to revert on host=/run.\n"
        "another journal: /var/lib/pgdyno/journal (it may contain changes; this user cannot read it)\n"
    )


def test_revert_shows_what_is_back_what_was_left_alone_and_what_waits() -> None:
    back = Outcome("jit", "jit", "on", None, "off", "on", ReceiptState.REVERTED)
    result = RevertResult(
        "host=/run port=5432",
        outcomes=(back, BUFFERS),
        statements=(),
        drifted=(Drift("work_mem", None, "8MB", "5MB"), Drift("fillfactor", None, "9", None)),
        pending_restart=("shared_buffers",),
    )
    assert not result.is_complete
    assert revert_text(result) == (
        "1 change undone on host=/run port=5432\n"
        "\n"
        "    jit  off → on\n"
        "\n"
        "Left alone: work_mem: someone else set it to 5MB after pgdyno changed it to 8MB\n"
        "    pgdyno revert --drifted=overwrite restores the original values,\n"
        "    --drifted=keep keeps the present ones\n"
        "\n"
        "Left alone: fillfactor: someone else removed it after pgdyno changed it to 9\n"
        "    pgdyno revert --drifted=overwrite restores the original values,\n"
        "    --drifted=keep keeps the present ones\n"
        "\n"
        "Waiting for a restart: shared_buffers\n"
        "    the files are restored; "
        "pgdyno revert --allow-restart --restart-command '…' puts them into effect\n"
    )


def test_a_group_of_tasks_that_may_be_somebody_elses_is_removed_by_hand() -> None:
    drift = Drift("/sys/fs/resctrl/pgdyno/schemata", None, "L3:0=ff for /srv/pg", "L3:0=fffff")
    text = revert_text(RevertResult("db1", outcomes=(BUFFERS,), statements=(), drifted=(drift,)))
    assert (
        "someone else set it to L3:0=fffff after pgdyno changed it to L3:0=ff for /srv/pg\n"
        "    it was made by another program or an interrupted apply; if no program needs it, as root,\n"
        "    rmdir /sys/fs/resctrl/pgdyno, then pgdyno revert\n"
    ) in text


def test_revert_says_what_was_gone_by_itself() -> None:
    gone = Outcome(
        "/proc/sys/vm/swappiness", "swappiness", "60", "60", "10", "30", ReceiptState.REVERTED,
        note="discarded by a restart of the machine",
    )  # fmt: skip
    assert revert_text(RevertResult("db1", outcomes=(gone,), statements=())) == (
        "1 change undone on db1\n\n    vm.swappiness  10 → 30  discarded by a restart of the machine\n"
    )


def test_a_damaged_journal_is_never_complete() -> None:
    result = RevertResult("host=/run", (), (), damage=("line 2 of the journal cannot be read",))
    assert not result.is_complete
    assert revert_text(result) == (
        "Nothing to revert on host=/run.\n"
        "\n"
        "The journal is damaged; the contents of these lines are unknown:\n"
        "    line 2 of the journal cannot be read\n"
    )


def test_status_shows_every_apply_with_what_became_of_it() -> None:
    entry = StatusEntry(
        "20261121T052400Z-1a2b3c", "2026-11-21T05:24:00+00:00", "dba@db1, process 4711", "host=/run",
        "work_mem", "work_mem", found="6MB", wanted="8MB", state=ReceiptState.VERIFIED, effective="5MB",
        drift="it was set to 5MB",
    )  # fmt: skip
    unfinished = StatusEntry(
        "20261121T060000Z-4d5e6f", "2026-11-21T06:00:00+00:00", "dba@db1, process 4812", "host=/run",
        "jit", "jit", found=None, wanted="off", state=ReceiptState.WRITTEN,
    )  # fmt: skip
    report = StatusReport(
        "/var/lib/pgdyno/journal",
        (entry, unfinished),
        other_journals=(
            OtherJournal("/home/ann/j", 1, "runuser -u ann -- pgdyno revert"),
            OtherJournal("/home/bob/j", None),
        ),
    )
    assert status_text(report) == (
        "20261121T052400Z-1a2b3c  2026-11-21T05:24:00+00:00  by dba@db1, process 4711, on host=/run\n"
        "    work_mem  8MB (was 6MB)  in force: 5MB\n"
        "    changed since: work_mem: it was set to 5MB\n"
        "\n"
        "20261121T060000Z-4d5e6f  2026-11-21T06:00:00+00:00  by dba@db1, process 4812, on host=/run\n"
        "    jit  off (was not set)  [written]\n"
        "\n"
        "journal: /var/lib/pgdyno/journal\n"
        "another journal: /home/ann/j (1 change applied)\n"
        "    undo: runuser -u ann -- pgdyno revert\n"
        "another journal: /home/bob/j (it may contain changes; this user cannot read it)\n"
    )
