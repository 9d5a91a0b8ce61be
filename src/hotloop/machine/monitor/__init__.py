"""Monitors: the machine sampled from outside while a program runs.

In: sources (CPU, memory, disk, network, GPU). Out: one column of samples per metric.
"""
