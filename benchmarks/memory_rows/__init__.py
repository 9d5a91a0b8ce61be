"""The rows of the family memory on two programs: peak of tracked storages, step time, losses."""
