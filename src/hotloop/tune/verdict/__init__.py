"""What a trial's record says: the noise floor, the reference losses, and the decision on a candidate.

In: records of sets of arms. Out: accepted, or the reason why not.
"""
