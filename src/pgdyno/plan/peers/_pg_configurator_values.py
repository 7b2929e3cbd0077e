"""The values that pg-configurator 0.11.1 gives every server without replicas, by duty."""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.plan.peers._contract import Purpose

ALWAYS: Mapping[str, str] = {
    "autovacuum": "on",
    "autovacuum_analyze_threshold": "50",
    "autovacuum_freeze_max_age": "200000000",
    "autovacuum_multixact_freeze_max_age": "400000000",
    "autovacuum_vacuum_insert_scale_factor": "0.02",
    "autovacuum_vacuum_insert_threshold": "50",
    "autovacuum_vacuum_threshold": "50",
    "authentication_timeout": "30s",
    "bgwriter_delay": "200ms",
    "bgwriter_lru_maxpages": "100",
    "bgwriter_lru_multiplier": "2.0",
    "checkpoint_completion_target": "0.9",
    "commit_delay": "0",
    "commit_siblings": "5",
    "default_toast_compression": "pglz",
    "fsync": "on",
    "full_page_writes": "on",
    "hot_standby": "on",
    "hot_standby_feedback": "off",
    "max_files_per_process": "1000",
    "max_logical_replication_workers": "0",
    "max_replication_slots": "0",
    "max_slot_wal_keep_size": "0MB",
    "max_sync_workers_per_subscription": "0",
    "max_wal_senders": "0",
    "password_encryption": "scram-sha-256",
    "seq_page_cost": "1",
    "shared_preload_libraries": "pg_stat_statements,auto_explain",
    "ssl_min_protocol_version": "TLSv1.2",
    "synchronous_commit": "on",
    "synchronous_standby_names": "",
    "wal_buffers": "-1",
    "wal_compression": "on",
    "wal_keep_size": "0MB",
    "wal_level": "replica",
    "wal_log_hints": "on",
    "wal_receiver_status_interval": "0",
    "wal_receiver_timeout": "0",
    "wal_sender_timeout": "0",
    "wal_writer_delay": "200ms",
    "wal_writer_flush_after": "1MB",
}
"""For all supported versions and duties."""

SINCE: Mapping[int, tuple[tuple[str, str], ...]] = {
    15: (("wal_compression", "pglz"),),
    16: (("max_parallel_apply_workers_per_subscription", "0"),),
    18: (
        ("autovacuum_vacuum_max_threshold", "100000"),
        ("idle_replication_slot_timeout", "0"),
        ("io_max_concurrency", "-1"),
        ("io_method", "worker"),
    ),
}
"""Values that later versions add or change, by major version."""

BY_PURPOSE: Mapping[Purpose, Mapping[str, str]] = {
    Purpose.TRANSACTIONS: {
        "autovacuum_analyze_scale_factor": "0.0075",
        "autovacuum_naptime": "20s",
        "autovacuum_vacuum_scale_factor": "0.015",
        "checkpoint_timeout": "10min",
        "client_connection_check_interval": "10s",
        "deadlock_timeout": "1s",
        "hash_mem_multiplier": "1.5",
        "idle_in_transaction_session_timeout": "10min",
        "idle_session_timeout": "6h",
        "jit": "off",
        "jit_above_cost": "100000",
        "jit_inline_above_cost": "500000",
        "jit_optimize_above_cost": "500000",
        "lock_timeout": "10s",
        "max_standby_streaming_delay": "45s",
        "max_wal_size": "4800MB",
        "min_parallel_index_scan_size": "1MB",
        "min_parallel_table_scan_size": "16MB",
        "min_wal_size": "1200MB",
        "parallel_setup_cost": "1500",
        "parallel_tuple_cost": "0.12",
        "statement_timeout": "15min",
        "tcp_keepalives_count": "6",
        "tcp_keepalives_idle": "90s",
        "tcp_keepalives_interval": "15s",
        "tcp_user_timeout": "180s",
    },
    Purpose.WAREHOUSE: {
        "autovacuum_analyze_scale_factor": "0.01",
        "autovacuum_naptime": "30s",
        "autovacuum_vacuum_scale_factor": "0.02",
        "checkpoint_timeout": "30min",
        "client_connection_check_interval": "30s",
        "deadlock_timeout": "2s",
        "hash_mem_multiplier": "2.0",
        "idle_in_transaction_session_timeout": "1h",
        "idle_session_timeout": "24h",
        "jit": "on",
        "jit_above_cost": "50000",
        "jit_inline_above_cost": "250000",
        "jit_optimize_above_cost": "250000",
        "lock_timeout": "1min",
        "max_standby_streaming_delay": "5min",
        "max_wal_size": "14GB",
        "min_parallel_index_scan_size": "256kB",
        "min_parallel_table_scan_size": "4MB",
        "min_wal_size": "3600MB",
        "parallel_setup_cost": "500",
        "parallel_tuple_cost": "0.05",
        "statement_timeout": "4h",
        "tcp_keepalives_count": "3",
        "tcp_keepalives_idle": "300s",
        "tcp_keepalives_interval": "30s",
        "tcp_user_timeout": "390s",
    },
}
"""For all supported versions, for its duties oltp and statistic.

max_wal_size follows from its assumption of 4 MB/s of WAL between checkpoints.
"""
