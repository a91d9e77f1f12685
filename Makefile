# make demo and make test do everything, from a machine with only python3 (3.11+) and make.
PYTHON ?= python3
BIN := .venv/bin
OPTSCHED := $(BIN)/optsched
TRACES ?= ../shared/traces
INSTANCES ?= ../shared/instances/mkp

SECONDS ?= 60
SEED ?= 1

.PHONY: demo test bounds check fuzz pages benchmark clean

demo: .venv/ready
	$(OPTSCHED) doctor --compile
	$(OPTSCHED) simulate traces/samples/sample-256.swf --policy window --set window=10 \
	    --capture demo/snapshots --capture-every 25 -o demo/window
	$(OPTSCHED) simulate traces/samples/sample-256.swf --policy easy -o demo/easy
	$(OPTSCHED) compare models/window-mkp demo/snapshots --time-limit 2 -o demo/comparison
	@echo
	@echo "Pictures, and the pages that they are in:"
	@ls demo/*/*.png demo/*/report.html

test: check
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations 40 --durations-min 4

# Out of bounds, a kernel reads and writes whatever is there; here it raises IndexError.
bounds: .venv/ready
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -n 2 --dist worksteal \
	    tests/boxes tests/executions tests/machines tests/metrics tests/models tests/policies tests/simulator \
	    tests/solvers tests/traces

check: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# make fuzz SECONDS=600 SEED=2: damaged input of every kind. CASE=swf/17 runs one case again, alone.
fuzz: .venv/ready
	PYTHONPATH=tests $(BIN)/python -m fuzz --seed $(SEED) --seconds $(SECONDS) $(if $(CASE),--case $(CASE))

# The tables of fields on the pages of models, and their JSON Schemas, and the tables of options, keys and
# solvers in docs/, from the declarations.
pages: .venv/ready
	$(BIN)/python -m optsched.models.pages
	$(BIN)/python -m optsched.cli.pages

benchmark: .venv/ready
	$(BIN)/python benchmarks/engine.py --traces $(TRACES) -o benchmarks/results
	$(BIN)/python benchmarks/gang.py -o benchmarks/results
	$(BIN)/python benchmarks/detection.py -o benchmarks/results
	$(BIN)/python benchmarks/data_placement_decisions.py -o benchmarks/results
	$(BIN)/python benchmarks/locality.py --traces $(TRACES) -o benchmarks/results
	$(BIN)/python benchmarks/sharing_decisions.py -o benchmarks/results
	$(BIN)/python benchmarks/torus_decisions.py -o benchmarks/results
	$(BIN)/python benchmarks/window_mkp.py windows -o benchmarks/results
	$(BIN)/python benchmarks/window_mkp.py instances $(INSTANCES) -o benchmarks/results

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("optsched needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[scip]" --group dev
	touch .venv/ready

clean:
	rm -rf .venv demo
