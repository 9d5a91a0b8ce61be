"""What happens outside the phases of a step: imports, checkpoints, logging, garbage collection, libraries' own work.

In: the program's calls. Out: named events, so that the run's account has names for them.
"""
