"""A seeded fuzzer of everything that optsched reads: files of each format, options, folders.

`make fuzz SECONDS=600 SEED=1` runs it; case N of a target is the same for the same seed. Each case
is one command in a fork of a process that has imported everything, in a folder of its own.
"""
