"""Comparisons of models by what they predict."""
