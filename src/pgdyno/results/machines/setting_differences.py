"""PostgreSQL settings that differ between two servers, and their weight. Pure.

Not compared are settings that bundles omit because they may be private (paths, names, addresses, commands),
values that the server computes, and values set by a connection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pgdyno.measure.records.recorded_facts import fact_at
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.machine_comparison import Difference, Weight
from pgdyno.postgres.guc import format_with_unit

_NUMBER = re.compile(r"-?\d{1,18}")
_UNIT = re.compile(r"[1-9]?[0-9]{0,3}[A-Za-z]{1,3}")
_REDACTED = "********"
_OF_A_CONNECTION = frozenset({"client", "session", "interactive"})
_MANUAL = "PostgreSQL's manual"


@dataclass(frozen=True)
class _Rule:
    """The effect of the settings with these names, and its maximum weight."""

    names: re.Pattern[str]
    weight: Weight
    reason: str


def _rule(weight: Weight, reason: str, *names: str) -> _Rule:
    return _Rule(re.compile("|".join(names)), weight, reason)


_RULES = (
    _rule(
        Weight.DECIDES,
        "commits may not wait for the disk, or full pages may not be written to WAL",
        "fsync",
        "full_page_writes",
        "synchronous_commit",
        "wal_sync_method",
    ),
    _rule(Weight.DECIDES, "a server with assertions checks itself all the time", "debug_assertions"),
    _rule(Weight.DECIDES, "a standby also replays the WAL of its primary", "in_hot_standby"),
    _rule(Weight.TENS, "how much of the data is cached", "shared_buffers"),
    _rule(
        Weight.TENS,
        "frequency of full-page writes and checkpoints",
        "max_wal_size",
        "checkpoint_(timeout|completion_target)",
        "wal_compression",
        "wal_level",
        "wal_segment_size",
    ),
    _rule(
        Weight.TENS, "page tables and TLB misses of every backend", "huge_pages(_status)?", "huge_page_size"
    ),
    _rule(
        Weight.TENS,
        "how uncached data are read",
        "io_method",
        "io_workers",
        "(effective|maintenance)_io_concurrency",
        "io_(max_)?combine_limit",
        "io_max_concurrency",
        "debug_io_direct",
    ),
    _rule(
        Weight.TENS,
        "plans may differ",
        "enable_.*",
        ".*_cost",
        "effective_cache_size",
        "plan_cache_mode",
        "jit.*",
        "geqo.*",
        "(from|join)_collapse_limit",
        "default_statistics_target",
        "constraint_exclusion",
        "cursor_tuple_fraction",
        "debug_parallel_query",
        "force_parallel_mode",
    ),
    _rule(
        Weight.TENS,
        "sorts and hashes in memory or in temporary files",
        "(maintenance_|autovacuum_)?work_mem",
        "hash_mem_multiplier",
        "logical_decoding_work_mem",
        "temp_buffers",
    ),
    _rule(
        Weight.TENS,
        "number of processes per query",
        "max_parallel_.*",
        "max_worker_processes",
        "min_parallel_.*",
        "parallel_leader_participation",
    ),
    _rule(Weight.TENS, "amount of vacuuming during the measurement", "autovacuum.*", "vacuum_.*"),
    _rule(
        Weight.TENS,
        "every statement is logged, timed or inspected",
        "log_(statement.*|duration)",
        "log_min_(duration|messages).*",
        "shared_preload_libraries",
        "session_preload_libraries",
        "local_preload_libraries",
        "log_(lock_waits|parser_stats|planner_stats|executor_stats)",
    ),
    _rule(
        Weight.TENS,
        "commits wait for each other, or for standbys",
        "commit_(delay|siblings)",
        "synchronous_standby_names",
    ),
    _rule(Weight.TENS, "different page layout", "block_size", "wal_block_size"),
    _rule(Weight.FEW, "a checksum per page read or written", "data_checksums"),
    _rule(Weight.FEW, "every statement and wait is timed or counted", "track_.*", "compute_query_id"),
    _rule(
        Weight.FEW,
        "how and when pages and WAL are written to disk",
        "bgwriter_.*",
        "backend_flush_after",
        "checkpoint_flush_after",
        "wal_(buffers|writer_.*|init_zero|recycle|skip_threshold)",
        "min_wal_size",
    ),
    _rule(Weight.FEW, "how texts are compared and sorted", "lc_collate", "lc_ctype", "server_encoding"),
    _rule(
        Weight.LITTLE,
        "transactions do not wait for it",
        "log_.*",
        "lc_.*",
        "DateStyle",
        "superuser_reserved_connections",
        "reserved_connections",
        "authentication_timeout",
        "port",
        "num_os_semaphores",
        "tcp_.*",
        "default_text_search_config",
        "max_(wal_senders|replication_slots)",
        "ssl.*",
        "password_encryption",
        "data_directory_mode",
        "unix_socket_.*",
        "bonjour",
    ),
    _rule(
        Weight.LITTLE,
        "shared memory is allocated for all, used or not",
        "max_connections",
        "max_prepared_transactions",
        "max_.*locks_per_.*",
        "autovacuum_worker_slots",
    ),
)
"""The first matching rule applies. An unlisted setting counts as a few percent."""

_UNLISTED = _Rule(re.compile(".*"), Weight.FEW, "its effect is not rated")
_COMPUTED = frozenset(
    {
        *("server_version", "server_version_num", "shared_memory_size", "shared_memory_size_in_huge_pages"),
        *("transaction_deferrable", "transaction_isolation", "transaction_read_only", "is_superuser"),
        *("num_os_semaphores", "ssl_library", "segment_size", "max_function_args", "max_identifier_length"),
        *("max_index_keys", "integer_datetimes", "port"),
    }
)
"""Not compared: derived from other reported facts, or irrelevant."""


def setting_differences(a: Experiment, b: Experiment) -> Iterator[Difference]:
    """Yield the settings that differ between the baselines' servers.

    Settings that only one of two major versions has are left out: the version is listed instead.
    """
    of_a, of_b = _settings(a), _settings(b)
    if of_a is None or of_b is None:
        recorded = [None if found is None else "recorded" for found in (of_a, of_b)]
        yield Difference("settings", recorded[0], recorded[1], Weight.DECIDES, "any may differ", _MANUAL)
        return
    for name in sorted({*of_a, *of_b}):
        if name not in of_a or name not in of_b:
            continue
        if of_a[name] != of_b[name]:
            rule = _rule_of(name)
            yield Difference(name, of_a[name], of_b[name], rule.weight, rule.reason, _MANUAL)


def variant_differences(a: Experiment, b: Experiment, variant: str) -> Iterator[Difference]:
    """Yield the settings of a variant whose effective values differ between its two servers."""
    of_a, of_b = (
        {one.name: one.effective for one in experiment.settings if one.variant == variant}
        for experiment in (a, b)
    )
    for name in sorted(of_a.keys() & of_b.keys()):
        if of_a[name] != of_b[name]:
            rule = _rule_of(name)
            subject = f"{name} in force for {variant}"
            yield Difference(subject, of_a[name], of_b[name], rule.weight, rule.reason, _MANUAL)


def _rule_of(name: str) -> _Rule:
    return next((rule for rule in _RULES if rule.names.fullmatch(name)), _UNLISTED)


def _settings(experiment: Experiment) -> dict[str, str] | None:
    """Return the settings that can be compared, in the form of SHOW; None if they were not recorded."""
    found = fact_at(experiment.server, "settings")
    if not isinstance(found, Mapping) or not found:
        return None
    return {
        str(name): _shown(guc)
        for name, guc in found.items()
        if isinstance(guc, Mapping) and name not in _COMPUTED and _is_compared(guc)
    }


def _is_compared(guc: Mapping[str, Any]) -> bool:
    values = (guc.get("setting"), guc.get("reset_val"))
    return str(guc.get("source")) not in _OF_A_CONNECTION and _REDACTED not in values


def _shown(guc: Mapping[str, Any]) -> str:
    setting, unit = str(guc.get("setting", "")), guc.get("unit")
    if _NUMBER.fullmatch(setting) and _UNIT.fullmatch(str(unit)):
        return format_with_unit(setting, str(unit))
    return setting or "''"
