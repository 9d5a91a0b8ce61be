"""ram_disk: the files of a small data set are copied to memory when the program starts."""
