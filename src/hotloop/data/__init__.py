"""Data sets on disk: packed into shards, checked against the original, and the storage under them timed.

In: a folder, a folder of classes, or a Dataset object. Out: shards with their manifest and checksums,
`PackedDataset` that reads them, and the rates that storage gives. Sub-rooms: `formats` writes and reads one shard,
`source` yields samples.
"""

from hotloop.data.packed import PackedDataset

__all__ = ["PackedDataset"]
