"""Put the probe into a process: the import hook, the hook points, seeds, and the write guard.

In: the launcher's environment variables. Out: a probe that is installed once torch is imported.
"""
