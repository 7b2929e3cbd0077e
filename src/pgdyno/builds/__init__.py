"""PostgreSQL from source, built with equal flags for every version, or as fast as can be; switching to it.

Start reading in ``build.py`` and ``stages.py`` (the order of a build), ``compiling/build_plan.py`` (the flags
that a faster one takes) and ``source/private_apt.py`` (where the sources come from).
This package never installs a system package and never writes a file of the host's own apt.
"""
