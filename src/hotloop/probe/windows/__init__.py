"""Windows of a running program: detailed profiling, and knobs switched on and off, a few steps each.

In: the launcher's orders. Out: files of what was seen, in the run's scratch folder.
"""
