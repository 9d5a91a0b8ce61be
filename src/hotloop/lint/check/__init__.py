"""Run the rules over files, and apply fixes.

In: programs, rules and the configuration. Out: findings and edits.
"""
