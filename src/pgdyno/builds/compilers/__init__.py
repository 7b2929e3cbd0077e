"""Compilers: the flags and programs that a recipe needs with each. One file adds one compiler."""
