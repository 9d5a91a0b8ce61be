"""The machine card: measured rates of compute, memory, disk and copies, kept from one day to the next.

In: the machine. Out: a card with a spread for each rate.
"""
