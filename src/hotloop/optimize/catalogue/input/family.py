"""The optimizations of the data path, in the order in which they are shown."""

from hotloop.optimize.catalogue.input.cached_preprocessing import CachedPreprocessing
from hotloop.optimize.catalogue.input.dataset_in_memory import DatasetInMemory
from hotloop.optimize.catalogue.input.device_augmentation import DeviceAugmentation
from hotloop.optimize.catalogue.input.device_prefetch import DevicePrefetch
from hotloop.optimize.catalogue.input.faster_decode import FasterDecode
from hotloop.optimize.catalogue.input.length_bucketing import LengthBucketing
from hotloop.optimize.catalogue.input.loader_prefetch import LoaderPrefetch
from hotloop.optimize.catalogue.input.loader_workers import LoaderWorkers
from hotloop.optimize.catalogue.input.pad_to_multiple import PadToMultiple
from hotloop.optimize.catalogue.input.persistent_workers import PersistentWorkers
from hotloop.optimize.catalogue.input.pinned_memory import PinnedMemory
from hotloop.optimize.catalogue.input.preallocate_longest import PreallocateLongest
from hotloop.optimize.catalogue.input.ram_disk import RamDisk
from hotloop.optimize.catalogue.input.remote_loading import RemoteLoading
from hotloop.optimize.catalogue.input.sequential_shards import SequentialShards
from hotloop.optimize.catalogue.input.vectorized_fetch import VectorizedFetch
from hotloop.optimize.optimization import Optimization

FAMILY: tuple[type[Optimization], ...] = (
    DatasetInMemory,
    CachedPreprocessing,
    VectorizedFetch,
    LoaderWorkers,
    LoaderPrefetch,
    PersistentWorkers,
    PinnedMemory,
    DevicePrefetch,
    RamDisk,
    RemoteLoading,
    FasterDecode,
    DeviceAugmentation,
    SequentialShards,
    LengthBucketing,
    PadToMultiple,
    PreallocateLongest,
)
