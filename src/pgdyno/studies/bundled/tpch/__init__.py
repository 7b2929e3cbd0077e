"""A TPC-H-like workload: data, queries, parameters, streams, refresh functions and known answers.

It follows the TPC Benchmark H specification, revision 3; the code names the clauses that it implements.
It is *TPC-H-like*: its results are not TPC-H results, and may not be compared with them.
"""
