"""device_augmentation: random transforms run on whole batches, where the model is."""
