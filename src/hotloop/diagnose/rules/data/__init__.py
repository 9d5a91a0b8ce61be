"""The data path."""

from hotloop.diagnose.rules.data import (
    input_bound,
    loader_in_training_process,
    loader_slower_than_training,
    memory_copied_per_worker,
    same_work_each_epoch,
    sample_by_sample_batches,
    short_epochs,
    slow_dataset_line,
    slow_transform,
    small_reads,
    too_few_workers,
    too_many_workers,
    transfer_bound,
    unpinned_memory,
    waiting_for_disk,
    workers_not_persistent,
)

RULES = (
    input_bound.rule,
    loader_in_training_process.rule,
    loader_slower_than_training.rule,
    memory_copied_per_worker.rule,
    same_work_each_epoch.rule,
    sample_by_sample_batches.rule,
    short_epochs.rule,
    slow_dataset_line.rule,
    slow_transform.rule,
    small_reads.rule,
    too_few_workers.rule,
    too_many_workers.rule,
    transfer_bound.rule,
    unpinned_memory.rule,
    waiting_for_disk.rule,
    workers_not_persistent.rule,
)
