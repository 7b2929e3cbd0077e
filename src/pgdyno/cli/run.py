"""``pgdyno run``: bundled studies and experiment files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pgdyno.base.errors import PermissionNotGivenError, UsageError
from pgdyno.cli._measuring_options import measuring_options, workload_option
from pgdyno.cli.measuring import Measuring, refuse_with_cell, with_load_from
from pgdyno.cli.output import echo, json_option, print_json
from pgdyno.cli.study_options import StudyCommand, refuse_all_but, taken_out

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.measure.bundled_study import BundledStudy, Sizing
    from pgdyno.measure.conditions import Conditions, LoadSource

_SET_BY_FILE = {
    "factors": "--factor",
    "workloads": "--workload",
    "scripts": "--script",
    "clients": "--clients",
    "blocks": "--blocks",
    "until": "--until",
    "block_s": "--block",
    "slice_s": "--slice",
    "kind": "--design",
    "isolate": "--isolate",
    "seed": "--seed",
    "generator": "--generator",
    "phase": "--phase",
}
"""Parameter -> option: set by an experiment file itself, or not yet supported by its design."""
_OF_SCRATCH_SERVERS = {
    "embedded": "--embedded",
    "pg_bin": "--pg-bin",
    "factors": "--factor",
    "accept": "--accept",
    "workloads": "--workload",
    "scripts": "--script",
    "scale": "--scale",
    "generator": "--generator",
    "isolate": "--isolate",
    "allow_files": "--allow-file",
    "as_booted": "--as-booted",
    "unlike": "--unlike",
    "resume": "--resume",
}

_QUERY_LOAD = "the query would run repeatedly, with one and with several clients, in read-only sessions"
_WRITING_LOAD = (
    "the query would run repeatedly, with one and with several clients, and be rolled back each time: its "
    "locks are held until then; dead rows, WAL and consumed transaction IDs remain"
)
_CLIENTS_LOAD = (
    "pgbench's tables would be loaded into separate databases, which are dropped at the end; an increasing "
    "number of clients would use them"
)


@click.command(
    name="run",
    cls=StudyCommand,
    epilog="\b\nExamples:\n"
    "  pgdyno run --list\n"
    "  pgdyno run noise-floor --embedded --workload pgbench-select --budget 5m\n"
    "  pgdyno run insert-benchmark --embedded --factor io_method=sync,worker --step qr100\n"
    "  pgdyno run huge-pages --embedded --budget 45m\n"
    "  pgdyno run parallel-degree --embedded\n"
    "  pgdyno run parallel-degree --dsn DSN --allow-load --query 'CREATE TABLE t2 AS TABLE t' --writes\n"
    "  pgdyno run clients --embedded --protocol simple --protocol prepared\n"
    "  pgdyno run loop --embedded\n"
    "  pgdyno run loop --embedded --workload pgbench-aggregate --tables shared,own\n"
    "  pgdyno run tpch --embedded --scale 0.1 --factor work_mem=4MB,64MB\n"
    "  pgdyno run tpch --embedded --factor max_parallel_workers_per_gather=0,1,2,4 --blocks 10\n"
    "  pgdyno run peers --embedded --benchmark tpch --scale 1\n"
    "  pgdyno run accelerator-study --embedded --cell hosts.toml\n"
    "  pgdyno run buffers.toml --embedded",
)
@click.argument("study", required=False, metavar="NAME|FILE")
@click.option("--list", "is_list", is_flag=True, help="List the bundled studies.")
@click.option(
    "--factor",
    "factors",
    multiple=True,
    metavar="SETTING=A,B",
    help="Vary this setting instead of the study's; repeatable.",
)
@click.option(
    "--accept",
    is_flag=True,
    help="With several servers: accept different builds; the differences are still listed.",
)
@click.option(
    "--dsn",
    metavar="DSN",
    help="parallel-degree: measure the query of --query on a running server on this host. clients: measure a "
    "running server on any host from here.",
)
@click.option("--allow-load", is_flag=True, help="With --dsn: allow load on that server.")
@workload_option
@measuring_options
@json_option
def command(
    study: str | None,
    *,
    load_from: LoadSource | None,
    is_list: bool,
    factors: tuple[str, ...],
    accept: bool,
    dsn: str | None,
    allow_load: bool,
    is_json: bool,
    **options: Any,
) -> None:
    """Run a bundled study by name, or an experiment file.

    Variants may set the kernel files that levers set. Other kernel files need --allow-file on the command
    line. Settings that name paths or programs are refused.

    The Insert Benchmark runs in passes: each pass runs all steps of one variant, with the variants in random
    order. --blocks is the number of passes [default: 5]; --clients defaults to the preset's number.

    tpch (TPC-H-like; not a TPC-H result) also runs in passes. --scale is the scale of its data [default:
    0.1]; --clients is the number of streams in its throughput run [default: 2, more from scale 10 on]. With
    --factor max_parallel_workers_per_gather=0,1,2,4 it shows the best degree of each query.

    huge-pages needs root: it reserves pages, and releases them at the end. It measures several database
    sizes, each with several numbers of clients, within --budget [default: 45m]; --clients sets a single
    number.

    parallel-degree runs its queries with one client, and with one client per CPU, or with --clients;
    --workload selects among count, bitand, aggregate, hash-join, sort, append, partition-wise and
    create-index. With --dsn, --query and --allow-load a query is measured on a running server and its own
    data, in read-only sessions. A query that writes needs --writes.

    clients with --dsn and --allow-load measures a running server from this host, in separate databases that
    are dropped at the end. On another host, the client takes no CPU time from the server.

    loop measures 1, 2, 3, 4, 6, 8, … clients, up to --clients; --workload pgbench-aggregate sums up rows. It
    compiles functions in pgdyno's own directory: this needs a C compiler and the server's headers.
    """
    from pgdyno.studies.run import listing

    if is_list:
        _print_list(listing(), is_json=is_json)
        return
    if study is None:
        raise UsageError("no study was named", hint="see pgdyno run --list, or name an experiment file")
    given = taken_out(options)
    measuring = Measuring(**options)
    _require_place_of_load(measuring, load_from, dsn, is_allowed=allow_load)
    if dsn is not None:
        _run_on_server(study, measuring, given, dsn, is_allowed=allow_load, is_json=is_json)
        return
    completed = partial(_completed, load_from=load_from, accept=accept)
    if _is_file(Path(study)):
        refuse_all_but((), given, "an experiment file")
        _run_file(Path(study), measuring, completed, is_json=is_json)
    else:
        varied = _parse_factors(factors, accept=accept)
        _run_bundled(study, measuring, given, varied, completed, is_json=is_json)


def _require_place_of_load(
    measuring: Measuring, load_from: LoadSource | None, dsn: str | None, *, is_allowed: bool
) -> None:
    """Raise UsageError for options that conflict about the source or target of the load."""
    if is_allowed and dsn is None:
        raise UsageError(
            "--allow-load requires a running server, and none was named", hint="name it with --dsn"
        )
    if load_from is not None:
        refuse_with_cell({"--dsn": dsn, "--isolate or --no-isolate": measuring.isolate is not None})


def _completed(conditions: Conditions, *, load_from: LoadSource | None, accept: bool) -> Conditions:
    loaded = with_load_from(conditions, load_from)
    return replace(loaded, accepts_builds=accept)


def _is_file(path: Path) -> bool:
    return path.suffix == ".toml" or path.is_file()


def _run_bundled(
    study: str,
    measuring: Measuring,
    given: Mapping[str, tuple[str, ...]],
    varied: Mapping[str, Sequence[str]],
    completed: Callable[[Conditions], Conditions],
    *,
    is_json: bool,
) -> None:
    from pgdyno.cli.results import deliver
    from pgdyno.studies.run import find_study, run_bundled, sized

    bundled = find_study(study, given)
    refuse_all_but(_own_options(bundled), given, f"the study {study}")
    measuring = measuring.or_budget(bundled.budget_s)
    chosen = measuring.workloads if bundled.loads or bundled.takes_workloads else ()
    if chosen:
        measuring = replace(measuring, workloads=())
    sizing = sized(bundled, replace(_sizing(given, measuring, varied), chosen=chosen))
    if bundled.takes_scale:
        measuring = replace(measuring, scale=None)  # it applies to the study's own data
    own = None if bundled.workloads is None else bundled.workloads(sizing)
    measuring = measuring if own else measuring.or_workloads(bundled.measures, bundled.generator)

    deliver(
        lambda progress: run_bundled(
            study, completed(measuring.conditions(bundled.design, own)), varied, progress, sizing
        ),
        is_json=is_json,
        is_gate=measuring.gate,
    )


def _own_options(bundled: BundledStudy) -> frozenset[str]:
    return frozenset(option.name for option in bundled.options)


def _sizing(
    given: Mapping[str, tuple[str, ...]], measuring: Measuring, varied: Mapping[str, Sequence[str]]
) -> Sizing:
    from pgdyno.measure.bundled_study import Sizing

    return Sizing(
        given,
        clients=measuring.clients,
        max_wal_sizes=_wal_sizes(varied),
        budget_s=measuring.budget_s,
        scale=measuring.scale,
    )


def _wal_sizes(factors: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return tuple(size for name, sizes in factors.items() if name.lower() == "max_wal_size" for size in sizes)


def _run_on_server(
    study: str,
    measuring: Measuring,
    given: Mapping[str, tuple[str, ...]],
    dsn: str,
    *,
    is_allowed: bool,
    is_json: bool,
) -> None:
    """Measure on a running server. Raises: UsageError, PermissionNotGivenError."""
    from pgdyno.cli.results import deliver
    from pgdyno.measure.conditions import Conditions
    from pgdyno.studies.attached import measure_clients_of, measure_degree_of
    from pgdyno.studies.bundled.parallel_degree import QUERY, WRITES
    from pgdyno.studies.run import find_study, sized

    if _is_file(Path(study)):
        raise UsageError("an experiment file measures only scratch servers", hint="leave out --dsn")
    bundled = find_study(study)
    if not bundled.takes_server:
        raise UsageError(f"the study {study} measures only scratch servers", hint="leave out --dsn")
    refuse_all_but(_own_options(bundled), given, f"the study {study}")
    _refuse_what_a_server_decides(bundled, given)
    if bundled.takes(QUERY) and QUERY.name not in given:
        raise UsageError("--dsn requires a query", hint="give it with --query")
    measuring = measuring.or_budget(bundled.budget_s)
    sizing = sized(bundled, _sizing(given, measuring, {}))
    if not is_allowed:
        raise PermissionNotGivenError(
            "the measurement puts load on the server, and load was not allowed",
            detail=_load_text(is_query=bundled.takes(QUERY), may_write=sizing.of(WRITES)),
            hint="add --allow-load",
        )
    conditions = Conditions(None, {}, measuring.design(bundled.design), measuring.budget_s)
    measure = measure_degree_of if bundled.takes(QUERY) else measure_clients_of
    deliver(
        lambda progress: measure(dsn, sizing, conditions, progress), is_json=is_json, is_gate=measuring.gate
    )


def _load_text(*, is_query: bool, may_write: bool) -> str:
    if not is_query:
        return _CLIENTS_LOAD
    return _WRITING_LOAD if may_write else _QUERY_LOAD


def _refuse_what_a_server_decides(bundled: BundledStudy, given: Mapping[str, tuple[str, ...]]) -> None:
    """Raise UsageError for options that apply only to scratch servers or their data."""
    refused = [option for name, option in _OF_SCRATCH_SERVERS.items() if _is_given(name)]
    refused += [
        f"--{option.name}" for option in bundled.options if option.is_of_own_servers and option.name in given
    ]
    if refused:
        raise UsageError(
            f"a running server is measured as it is: it takes no {', '.join(refused)}", hint="leave them out"
        )


def _run_file(
    path: Path,
    measuring: Measuring,
    completed: Callable[[Conditions], Conditions],
    *,
    is_json: bool,
) -> None:
    from pgdyno.cli.results import deliver
    from pgdyno.studies.run import run_file

    _refuse_what_the_file_decides()
    conditions = completed(measuring.file_conditions())
    deliver(
        lambda progress: run_file(path, conditions, measuring.whole_scale, progress),
        is_json=is_json,
        is_gate=measuring.gate,
    )


def _refuse_what_the_file_decides() -> None:
    """Raise UsageError for options that would otherwise be ignored: the file contains the design."""
    from pgdyno.store.experiment_file import DESIGN_KEYS

    context = click.get_current_context()
    given = [
        name
        for name in context.params
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and name in _SET_BY_FILE
    ]
    if given:
        options = ", ".join(sorted(_SET_BY_FILE[name] for name in given))
        raise UsageError(
            f"an experiment file does not accept {options}",
            hint=f"set workloads = […] in the file, and under [design] {', '.join(DESIGN_KEYS)}",
        )


def _print_list(studies: list[tuple[str, str]], *, is_json: bool) -> None:
    if is_json:
        print_json({"studies": [{"name": name, "title": title} for name, title in studies]})
        return
    for name, title in studies:
        echo(f"{name:20} {title}")


def _is_given(parameter: str) -> bool:
    source = click.get_current_context().get_parameter_source(parameter)
    return source is ParameterSource.COMMANDLINE


def _parse_factors(texts: Sequence[str], *, accept: bool) -> dict[str, list[str]]:
    """Return each factor's values. Raises: UsageError, also for --accept without the factor server."""
    varied = dict(_parse_factor(text) for text in texts)
    if accept and "server" not in varied:
        raise UsageError("--accept requires several servers", hint="name them with --factor server=A,B")
    return varied


def _parse_factor(text: str) -> tuple[str, list[str]]:
    name, equals, values = text.partition("=")
    if not equals or not name or not values:
        raise UsageError(f'--factor "{text}" is not SETTING=A,B', hint="for example --factor jit=on,off")
    return name, values.split(",")
