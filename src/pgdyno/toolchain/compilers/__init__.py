"""Compilers: which flags and programs a profile takes with each. One file adds one."""
