"""Compilers: which flags and programs a recipe takes with each. One file adds one."""
