"""Comparisons: of time and memory in :mod:`benchmarks.speed`, of predictions in :mod:`benchmarks.accuracy`.

What they write to ``results/`` is rendered into tables and pictures by :mod:`benchmarks.report`.
"""
