# make demo and make test do everything, from a machine with only python3 (3.11+) and make.
PYTHON ?= python3
BIN := .venv/bin
OPTSCHED := $(BIN)/optsched
BENCH := $(BIN)/python benchmarks
TRACES ?= ../shared/traces
INSTANCES ?= ../shared/instances/mkp
RESULTS ?= benchmarks/results
STUDIES ?= studies-in-full

SECONDS ?= 60
SEED ?= 1

.PHONY: demo test bounds check fuzz cases docs pages results benchmark clean

demo: .venv/ready
	$(OPTSCHED) doctor --compile
	$(OPTSCHED) simulate traces/samples/sample-256.swf --policy window --set window=10 \
	    --capture demo/snapshots --capture-every 25 -o demo/window
	$(OPTSCHED) simulate traces/samples/sample-256.swf --policy easy -o demo/easy
	$(OPTSCHED) compare models/window-mkp demo/snapshots --time-limit 2 -o demo/comparison
	@echo
	@echo "Pictures, and the pages that they are in:"
	@ls demo/*/*.png demo/*/report.html
	@echo
	@echo "For the command optsched in this shell: . .venv/bin/activate"

# Tests and the processes that they start find the kernels compiled, and the modules as well, also where the
# environment asks for none.
test: check
	env -u PYTHONDONTWRITEBYTECODE $(OPTSCHED) doctor --compile
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n 2 --dist worksteal --durations 40 --durations-min 4

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

# Cases of other projects, of a real Slurm and of attacks, of ../shared/reviews, each with its right value.
cases: .venv/ready
	PYTHONPATH=tests $(BIN)/python -m public_cases $(WORDS)

# The site, in build/site. A broken link ends the build.
docs: .venv/ready
	$(BIN)/python -m sphinx -c docs -d build/doctrees -E -j 2 -q -W --keep-going . build/site
	@echo build/site/index.html

# The tables of fields on the pages of models, and their JSON Schemas, and the tables of options, keys and
# solvers in docs/, from the declarations.
pages: .venv/ready
	$(BIN)/python -m optsched.models.pages
	$(BIN)/python -m optsched.cli.pages
	$(BIN)/python -m optsched.studies.pages

# All studies in full, in $(STUDIES), in an hour and a half on two cores; and their results in docs/results.
# A study that was stopped continues.
results: .venv/ready
	set -e; for study in yang-2014 franke-1999 li-2015 gonthier-2024 guim-2009 openb-2023 systems; do \
	    $(OPTSCHED) study $$study --traces $(TRACES) -o $(STUDIES)/$$study; \
	    mkdir -p docs/results/$$study; \
	    rm -f docs/results/$$study/*; \
	    (cd $(STUDIES)/$$study && cp README.md study.json *.parquet *.csv *.svg $(CURDIR)/docs/results/$$study); \
	done
	$(BIN)/python -m optsched.studies.pages

# Into $(RESULTS), within 20 minutes; with FULL=1 the large tables, in hours.
ifdef FULL
LOGS := SDSC-SP2-1998-4.2-cln,CTC-SP2-1996-3.1-cln,SDSC-BLUE-2000-4.2-cln,CEA-Curie-2011-2.1-cln,RICC-2010-2
COMMANDS := --jobs 10000000
ENGINE := --only $(LOGS) --repeats 3 --engine-jobs 1000000
GROWTH := --jobs 1000000 --queue 100000 --limit 20
GANG := --workloads 81
LOCALITY := --rules fcfs,eft,lea,leo,lem --backfills none,holes,conservative --jobs 165000
SHARING := --problems 60
TORUS := --snapshots 30 --seconds 5
WINDOWS := --snapshots 30
LITERATURE := --every 1
endif
benchmark: .venv/ready .venv-mtm/ready
	$(OPTSCHED) doctor --compile
	$(BENCH)/commands.py --traces $(TRACES) --instances $(INSTANCES) $(COMMANDS) -o $(RESULTS)
	$(BENCH)/engine.py --traces $(TRACES) $(ENGINE) -o $(RESULTS)
	$(BENCH)/growth.py $(GROWTH) -o $(RESULTS)
	$(BENCH)/gang.py $(GANG) -o $(RESULTS)
	$(BENCH)/detection.py -o $(RESULTS)
	$(BENCH)/data_placement_decisions.py -o $(RESULTS)
	$(BENCH)/locality.py --traces $(TRACES) $(LOCALITY) -o $(RESULTS)
	$(BENCH)/node_placement.py --traces $(TRACES) -o $(RESULTS)
	$(BENCH)/reconfiguration.py -o $(RESULTS)
	$(BENCH)/shared_leaves.py --traces $(TRACES) -o $(RESULTS)
	$(BENCH)/sharing_decisions.py $(SHARING) -o $(RESULTS)
	$(BENCH)/site.py -o $(RESULTS)
	$(BENCH)/switch_groups.py --traces $(TRACES) -o $(RESULTS)
	$(BENCH)/torus_decisions.py $(TORUS) -o $(RESULTS)
	$(BENCH)/window_mkp.py windows $(WINDOWS) -o $(RESULTS)
	$(BENCH)/window_mkp.py instances $(INSTANCES) --mtm .venv-mtm/bin/python $(LITERATURE) -o $(RESULTS)

# Martello and Toth's MTM for the last benchmark; its package needs NumPy 1.
.venv-mtm/ready:
	$(PYTHON) -m venv .venv-mtm
	.venv-mtm/bin/python -m pip install --quiet mknapsack==1.1.12 'numpy<2'
	touch $@

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("optsched needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs,scip]" --group dev
	touch .venv/ready

clean:
	rm -rf .venv demo
