"""Chooses the next action of a session and keeps its results: one state, three actions, one policy.

In: candidates, and the seconds that are left. Out: the plan that is believed, where every candidate stands and why, and
each decision in a line. `policy.next_action` decides, `offers` knows the actions and their costs, `value` what they may
bring, `state` and `gains` what is known, `search` does it. `docs/tuning.md` explains all of it.
"""
