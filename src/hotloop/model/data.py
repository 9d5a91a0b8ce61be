"""What is said of data sets on disk: a pack's manifest, its check, and the rates of the storage."""

from typing import Any

import msgspec

from hotloop.model.machine import Rate

PACK_SCHEMA = 1


class PackPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder of shards is: written before the first shard, never changed."""

    schema: int = PACK_SCHEMA
    source: str
    """A folder's full path, or `module:attr`."""
    fingerprint: str
    format: str
    num_samples: int
    samples_per_shard: int
    classes: tuple[str, ...] | None = None
    """None: samples have no class."""
    structure: Any = None
    """How a sample is put together from its fields; None: it is its fields."""

    @property
    def num_shards(self) -> int:
        """Return how many shards there are when all is packed."""
        return -(-self.num_samples // self.samples_per_shard)


class ShardEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A finished shard."""

    file: str
    num_samples: int
    num_bytes: int
    sha256: str


class PackReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a call of `data pack` did."""

    plan: PackPlan
    folder: str
    num_kept: int
    """Shards that were there from an earlier call."""
    num_written: int
    total_bytes: int
    """Of all shards."""
    wall_s: float
    """Of this call."""


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `data check` found."""

    folder: str
    format: str
    num_samples: int
    num_shards: int
    missing_shards: tuple[str, ...]
    damaged_shards: tuple[str, ...]
    """Their bytes are not those that were written."""
    num_compared: int
    """Samples that were compared with the original; 0: it is not there any more."""
    different_keys: tuple[str, ...]
    """Of samples that are not the original's; the first hundred."""
    num_different: int
    original: str | None
    """Why the original was not read; None: it was."""
    original_samples_per_s: Rate | None = None
    packed_samples_per_s: Rate | None = None
    speedup: Rate | None = None
    """Packed over original, block by block, both read in order by one reader."""

    @property
    def passed(self) -> bool:
        """Return whether the pack is complete and whole, and is the original where that could be read."""
        return not (self.missing_shards or self.damaged_shards or self.num_different)


class ReadRate(msgspec.Struct, frozen=True, kw_only=True):
    """How fast files were read in one way."""

    order: str
    """`sequential` or `random`."""
    cache: str
    """`cold`: their pages were dropped first; `warm`: they were read just before."""
    num_workers: int
    """Processes that read at once."""
    bytes_per_s: Rate
    repeats_bytes_per_s: tuple[float, ...] = ()
    """Of each repeat; the n-th in order and the n-th at random, by as many processes, were read one after the other."""
    reads_per_s: float
    terabyte_s: float
    """Seconds that 10^12 bytes take."""
    petabyte_s: float


class BenchReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the storage under a data set gives."""

    folder: str
    filesystem: str
    mount: str
    server: str | None
    """Of a network mount: what is mounted; None: a local disk."""
    in_memory: bool
    """Its files live in memory: there is no cold read."""
    num_files: int
    total_bytes: int
    median_file_bytes: int
    block_bytes: int
    """At most so much is read at a time."""
    rates: tuple[ReadRate, ...]
