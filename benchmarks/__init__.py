"""Comparisons: of time and memory in :mod:`benchmarks.speed`, of predictions in
:mod:`benchmarks.accuracy`. :mod:`benchmarks.report` renders their results into tables and pictures.
"""
