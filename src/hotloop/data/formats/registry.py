"""The formats by name."""

from collections.abc import Mapping

from hotloop.data.formats.arrow import Arrow
from hotloop.data.formats.hdf5 import Hdf5
from hotloop.data.formats.lmdb_file import Lmdb
from hotloop.data.formats.shard import Format
from hotloop.data.formats.tar import Tar

FORMATS: Mapping[str, Format] = {"tar": Tar(), "hdf5": Hdf5(), "lmdb": Lmdb(), "arrow": Arrow()}
"""In the order in which they are offered; the first is the default."""
