"""Record events: one integer per event, on the host's clock and on the device's, and facts about the program.

In: calls of the hook points. Out: event files, facts and losses in the run's scratch folder.
"""
