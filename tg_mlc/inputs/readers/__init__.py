"""Readers of general file formats: ARFF, FASTA, tables of molecules, names line by line."""
