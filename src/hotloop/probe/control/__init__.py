"""Steer a running program: count steps, hold it and end it at their boundaries.

In: the launcher's orders through a page of shared memory. Out: step counts and the state of the program.
"""
