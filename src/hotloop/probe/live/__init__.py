"""Events of a real run for somebody else's tools, as they happen: Prometheus metrics, NVTX ranges for Nsight Systems.

In: the recorder's events. Out: nothing of ours; no file is written.
"""
