"""A seeded fuzzer of everything that optsched reads: files of each format, options, folders.

`make fuzz SECONDS=600 SEED=1` runs it; case N of a target is the same for the same seed. Each case
is one command in a fork of a process that has imported everything, in a folder of its own.

- `mutation`: how valid input is damaged
- `seeds`, `captures`: the valid input
- `readers`, `slurm`, `options`: the targets, that is, what is damaged
- `forks`: how a case is run
- `oracle`: what is wrong with how a command ended
- `campaign`: many cases, the report, and the command line
"""
