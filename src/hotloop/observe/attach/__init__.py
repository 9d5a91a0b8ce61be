"""A training process that runs already, looked at from outside, without stopping it.

In: a process id. Out: an Observation without steps: host samples, the phases that Python's frames tell, and what cannot
be seen this way.
"""
