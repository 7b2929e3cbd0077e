"""Build PostgreSQL from source, with the same flags for every version or optimised, and switch servers to it.

Start reading in ``build.py`` and ``stages.py`` (the order of a build), ``compiling/build_plan.py`` (the flags
of an optimised build) and ``source/private_apt.py`` (where the sources come from).
This package never installs a system package and never writes a file of the host's apt.
"""
