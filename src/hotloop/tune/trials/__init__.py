"""Trials: arms of the user's program that take turns, and the search that spends them.

In: candidates and the noise baseline. Out: one record of block times, losses and effects per set of arms.
"""
