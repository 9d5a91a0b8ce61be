"""The path of a batch to the step."""

from hotloop.lint.rules.data import (
    augmentation_on_host,
    blocking_copy_of_pinned_batch,
    decode_each_epoch,
    device_copy_per_sample,
    file_read_per_sample,
    loader_in_training_process,
    loader_restarted_each_step,
    one_worker,
    padding_to_maximum,
    prefetch_of_one,
    python_loop_in_getitem,
    python_objects_per_worker,
    unpinned_memory,
    unsorted_lengths,
    worker_on_every_core,
    workers_not_persistent,
)

RULES = (
    augmentation_on_host.rule,
    blocking_copy_of_pinned_batch.rule,
    decode_each_epoch.rule,
    device_copy_per_sample.rule,
    file_read_per_sample.rule,
    loader_in_training_process.rule,
    loader_restarted_each_step.rule,
    one_worker.rule,
    padding_to_maximum.rule,
    prefetch_of_one.rule,
    python_loop_in_getitem.rule,
    python_objects_per_worker.rule,
    unpinned_memory.rule,
    unsorted_lengths.rule,
    worker_on_every_core.rule,
    workers_not_persistent.rule,
)
