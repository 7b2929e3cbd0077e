"""The flags that a build was really made with, from what make has printed."""

from __future__ import annotations

from pgdyno.builds.write_manifest import used_flags

LOG = """\
checking for gcc... clang-19
make -C ./src all
clang-19 -Wall -fwrapv -O3 -march=native -I../../src/include -D_FORTIFY_SOURCE=2 -D_GNU_SOURCE -c -o a.o a.c
clang-19 -Wall -fwrapv -O3 -march=native -DVAL_CFLAGS="\\"-O0 -flto\\"" -I . -c -o b.o b.c -MMD -MF .deps/b.Po
clang-19 -Wall -fwrapv -O3 -march=native -fPIC -fvisibility=hidden -D_FORTIFY_SOURCE=2 -c -o c.o c.c
llvm-ar-19 crs libpgport.a a.o
gcc -O1 -c -o foreign.o foreign.c
clang-19 -Wall -O3 -flto=thin a.o b.o -L../../src/port -Wl,-z,now -fuse-ld=lld -pie -lz -lm -o postgres
clang-19 -Wall -O3 -shared c.o -o module.so
clang-19 -Wall "unfinished
"""


def test_flags_of_all_objects_are_told_from_those_of_some() -> None:
    used = used_flags(LOG.splitlines(), "clang-19")
    assert used.objects == 3
    assert used.common == ("-Wall", "-fwrapv", "-O3", "-march=native")
    assert dict(used.some) == {"-D_FORTIFY_SOURCE=2": 2, "-fPIC": 1, "-fvisibility=hidden": 1}


def test_the_servers_program_was_linked_with() -> None:
    used = used_flags(LOG.splitlines(), "clang-19")
    assert used.linking == ("-Wall", "-O3", "-flto=thin", "-Wl,-z,now", "-fuse-ld=lld", "-pie")


def test_a_log_without_the_compiler_says_nothing() -> None:
    used = used_flags(["make: Nothing to be done for 'all'."], "gcc")
    assert (used.objects, used.common, used.some, used.linking) == (0, (), (), ())
