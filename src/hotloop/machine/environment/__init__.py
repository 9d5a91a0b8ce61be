"""What would spoil a measurement now: contention, throttling, governors, full disks.

In: a snapshot of the machine, or two for an interval. Out: findings of the environment check, shares of contention.
"""
