"""Run the dynamic rules over an observation, and order what they find.

In: an observation. Out: the bottleneck in one sentence, and findings.
"""
