# make demo, make test: everything from a fresh machine with python3 (3.11+) and make
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check clean

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("optsched needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[scip]" --group dev
	touch .venv/ready
