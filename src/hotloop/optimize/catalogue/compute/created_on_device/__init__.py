"""created_on_device: tensors are made where they are used, and moved once."""
