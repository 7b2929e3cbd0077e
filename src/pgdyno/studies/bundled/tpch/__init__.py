"""A workload like TPC-H.

Its data, queries, parameters, streams, refresh functions and known answers.

It follows the TPC Benchmark H specification, revision 3, whose clauses are named where they are followed.
It is *TPC-H-like*: no result of it is a TPC-H result, or may be compared with one.
"""
