"""cached_preprocessing: samples are read, decoded and transformed once, up to the first random transform."""
