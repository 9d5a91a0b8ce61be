"""The detailed profile: call sites, host samples, operators and FLOPs, each from a short window of its own.

In: what the instruments wrote. Out: time per step by line, by operator and by kind of call.
"""
