"""From spans to steps: the rhythm, the phases of each step, epochs, evaluation, rates and ranks.

In: spans of one training process. Out: its step times, phase times and rates.
"""
