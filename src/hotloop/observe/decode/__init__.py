"""Decode what the probe wrote: event files into spans, instrument files into values.

In: a run's scratch folder. Out: spans of each process, and what each process is made of.
"""
