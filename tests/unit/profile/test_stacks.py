"""Samples as perf prints them. The lines were recorded on x86-64, PostgreSQL 18.6, perf 6.1; shortened."""

from __future__ import annotations

from pgdyno.profile.stacks import Stack, parse_stacks

RECORDED = """\
17020   587.339874123:
\tffffffff820cc545 unix_stream_sendmsg
\tffffffff81e314b0 __x64_sys_sendto
\t          10ab59 __send
\t          30effd socket_flush
\t          1139d7 main

17018   587.345888456:
\t          5afa13 hash_search_with_hash_value
\t          274ad7 FetchPreparedStatement (inlined)
\t           27249 [unknown]

"""


# Recorded with files: a sample of Python's own start, perf 6.1; shortened, paths as they may be elsewhere.
WITH_FILES = """\
20707 28524.434958078:
\t           7fff0 __GI___fgets_unlocked (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t            1080 _start (/usr/bin/python3.11)

20707 28524.441137471:
\t          1cca35 update_one_slot (inlined)
\t          1cca35 type_new (/usr/lib/libpython3.11.so.1.0)

20707 28524.443162824:
\tffffffff820cc545 unix_stream_sendmsg ([kernel.kallsyms])
\t          10ab59 operator new(unsigned long) (/usr/lib/x86_64-linux-gnu/libc.so.6)

20707 28524.443162999:
\t          10ab59 [unknown] ([unknown])

"""


def test_the_file_of_the_innermost_functions_code_and_the_place_in_it() -> None:
    found = list(parse_stacks(WITH_FILES.splitlines(keepends=True)))
    assert [(one.file, one.offset) for one in found] == [
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", 0x7FFF0),
        ("/usr/lib/libpython3.11.so.1.0", 0x1CCA35),
        ("[kernel.kallsyms]", 0xFFFFFFFF820CC545),
        ("[unknown]", 0x10AB59),
    ]
    assert [one.in_kernel for one in found] == [False, False, True, False]
    assert [one.frames for one in found] == [
        ("__GI___fgets_unlocked", "_start"),
        ("update_one_slot", "type_new"),
        ("unix_stream_sendmsg", "operator new(unsigned long)"),
        ("[unknown]",),
    ]


def test_frames_are_innermost_first_and_the_kernels_are_known_by_their_addresses() -> None:
    assert list(parse_stacks(RECORDED.splitlines(keepends=True))) == [
        Stack(
            17020,
            587_339_874_123,
            ("unix_stream_sendmsg", "__x64_sys_sendto", "__send", "socket_flush", "main"),
            in_kernel=True,
            offset=0xFFFFFFFF820CC545,
        ),
        Stack(
            17018,
            587_345_888_456,
            ("hash_search_with_hash_value", "FetchPreparedStatement", "[unknown]"),
            in_kernel=False,
            offset=0x5AFA13,
        ),
    ]


def test_what_is_no_sample_is_left_out() -> None:
    noise = ["# a comment\n", "\n", "\t1234 lost\n", "nonsense 12 34\n"]
    assert [one.pid for one in parse_stacks([*noise, *RECORDED.splitlines()])] == [17020, 17018]


def test_a_sample_without_a_stack_has_no_frames() -> None:
    assert list(parse_stacks(["7  1.000000005: \n"])) == [Stack(7, 1_000_000_005, (), in_kernel=False)]


def test_a_stack_without_end_is_cut() -> None:
    lines = ["7  1.000000005: \n", *("\t1234 deeper\n" for _ in range(100_000))]
    [stack] = parse_stacks(lines)
    assert len(stack.frames) == 512
