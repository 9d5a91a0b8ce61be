"""deferred_sync: values that are only logged or added up come a step later."""
