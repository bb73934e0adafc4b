"""Attention over a pattern: one operator, one oracle, several backends."""
