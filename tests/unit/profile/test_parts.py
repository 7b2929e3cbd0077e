"""Stacks of PostgreSQL 18, as they were sampled, and the parts of its work that they belong to."""

from __future__ import annotations

import pytest

from pgdyno.profile import parts
from pgdyno.profile.cycles import kernel_entry

BELOW = "PortalRunSelect PortalRun PostgresMain BackendMain postmaster_child_launch main"


@pytest.mark.parametrize(
    ("stack", "part"),
    [
        ("hash_search_with_hash_value FetchPreparedStatement PostgresMain main", parts.HANDLING),
        (
            f"__memmove_avx512_unaligned_erms socket_putmessage printtup standard_ExecutorRun {BELOW}",
            parts.ROWS_OUT,
        ),
        (f"varstrfastcmp_locale.isra.0 qsort_ssup tuplesort_performsort ExecSort {BELOW}", parts.SORTING),
        (
            f"_bt_search _bt_first btgettuple IndexNext ExecSort standard_ExecutorRun {BELOW}",
            parts.INDEX_LOOKUPS,
        ),
        (
            f"_bt_search _bt_doinsert btinsert ExecInsertIndexTuples ExecModifyTable {BELOW}",
            parts.INDEX_CHANGES,
        ),
        (f"pg_pread FileReadV mdreadv ReadBuffer_common heap_fetch IndexNext {BELOW}", parts.PAGES_READ),
        (
            f"StrategyGetBuffer GetVictimBuffer StartReadBuffer _bt_getbuf _bt_search {BELOW}",
            parts.PAGES_READ,
        ),
        (f"XLogWrite XLogFlush FlushBuffer GetVictimBuffer StartReadBuffer {BELOW}", parts.WAL_FLUSH),
        (f"PinBuffer BufTableLookup StartReadBuffer heap_fetch IndexNext {BELOW}", parts.ROWS_READ),
        (
            f"pg_comp_crc32c_sse42 XLogInsertRecord XLogInsert heap_update ExecUpdate {BELOW}",
            parts.WAL_RECORDS,
        ),
        (f"heap_update ExecUpdate ExecModifyTable standard_ExecutorRun {BELOW}", parts.ROW_CHANGES),
        (
            "_bt_search get_actual_variable_range scalarineqsel standard_planner GetCachedPlan PostgresMain",
            parts.PLANNING,
        ),
        ("LockAcquireExtended LockRelationOid BuildCachedPlan GetCachedPlan PostgresMain", parts.PLANNING),
        ("LockAcquireExtended LockRelationOid AcquireExecutorLocks GetCachedPlan PostgresMain", parts.LOCKS),
        (
            "pg_fdatasync issue_xlog_fsync XLogWrite XLogFlush RecordTransactionCommit CommitTransaction",
            parts.WAL_FLUSH,
        ),
        ("AllocSetDelete MemoryContextDelete CommitTransaction CommitTransactionCommand", parts.TRANSACTIONS),
        (
            "finish_task_switch __schedule do_epoll_wait epoll_wait WaitEventSetWait secure_read pq_recvbuf",
            parts.RECEIVING,
        ),
        (
            "unix_stream_sendmsg __send secure_write internal_flush_buffer socket_flush PostgresMain",
            parts.SENDING,
        ),
        (
            "SearchCatCache1 plpgsql_exec_function plpgsql_call_handler ExecInterpExpr ExecResult",
            parts.PLPGSQL,
        ),
        (f"int4pl ExecInterpExpr ExecResult standard_ExecutorRun {BELOW}", parts.FUNCTIONS),
        ("ExecInitExprRec ExecInitIndexScan InitPlan standard_ExecutorStart PortalStart", parts.EXECUTOR),
        ("pg_usleep BackgroundWriterMain main", parts.OTHER),
        ("", parts.OTHER),
    ],
)
def test_a_stack_belongs_to_the_part_that_called_its_helpers(stack: str, part: str) -> None:
    assert parts.part_of(stack.split()) == part


@pytest.mark.parametrize(
    ("stack", "entry"),
    [
        ("unix_stream_sendmsg __sys_sendto __x64_sys_sendto do_syscall_64 __send socket_flush", "sendto"),
        (
            "schedule do_epoll_wait __arm64_sys_epoll_pwait invoke_syscall el0_svc WaitEventSetWait",
            "epoll_pwait",
        ),
        (
            "clear_page_erms do_user_addr_fault exc_page_fault asm_exc_page_fault heap_form_tuple",
            "page faults",
        ),
        ("irqentry_exit_to_user_mode asm_sysvec_reschedule_ipi varstrfastcmp_locale", "interrupts"),
        (
            "asm_sysvec_apic_timer_interrupt copy_from_iter __x64_sys_pwrite64 do_syscall_64 pwrite",
            "pwrite64",
        ),
        ("finish_task_switch schedule exit_to_user_mode_loop do_syscall_64", "giving way to other processes"),
        ("do_syscall_64 entry_SYSCALL_64_after_hwframe epoll_wait", "entering and leaving system calls"),
        ("psi_task_switch", "others"),
    ],
)
def test_the_outermost_frame_of_the_kernel_says_how_it_was_entered(stack: str, entry: str) -> None:
    assert kernel_entry(stack.split()) == entry
