"""Run the user's command with the probe inside until enough was seen.

In: the command. Out: a scratch folder of records, and the monitors' samples.
"""
