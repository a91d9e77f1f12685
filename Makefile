# make demo and make test do everything, from a machine with only python3 (3.11+) and make.
PYTHON ?= python3
BIN := .venv/bin
OPTSCHED := $(BIN)/optsched
BENCH := $(BIN)/python benchmarks
TRACES ?= ../shared/traces
INSTANCES ?= ../shared/instances/mkp
CAPTURE ?= ../shared/slurm/fixtures/24.11.5
RESULTS ?= benchmarks/results
STUDIES ?= studies-in-full

SECONDS ?= 60
ROUNDS ?= 2
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -q -n 2 --dist worksteal

.PHONY: demo test test-all bounds check fuzz cases docs pages results benchmark clean

# Compiles only the kernels that the commands call. Modules are kept compiled, too, also where the environment asks for none.
demo: export PYTHONDONTWRITEBYTECODE =
demo: .venv/usable
	@echo "1. Which policy? 3,000 jobs on 256 nodes, under four of them."
	$(OPTSCHED) simulate sample-256 --policy fcfs,easy,conservative,window -o demo/policies
	@echo "Backfilling (easy, conservative) cuts the mean wait from 2.02 h to 23 min. The window policy packs the queue exactly,"
	@echo "and still its jobs wait 1.1 h: they need contiguous nodes, and what fills more nodes now can delay a large job."
	@echo
	@echo "2. Why does it not start? Job 290 of a Slurm cluster, from what Slurm's commands say."
	$(OPTSCHED) slurm explain 290 --from sample-slurm
	@echo "The answer names what is missing, the earliest start, and the least to do for a start now, with the lines that take it back."
	@echo
	@echo "3. What is an exact placement worth? Eight jobs wait for 35 free GPUs: by best fit, and exactly."
	$(OPTSCHED) solve gpu-queue --solver best-fit
	@echo
	$(OPTSCHED) solve gpu-queue --solver highs --picture demo/gpu-queue.svg
	@echo "Best fit fills 18 of them, and job 8, which needs 16, waits. An exact placement fills 34; no placement fills more."
	@echo
	@echo "You saw policies side by side, a pending job explained, and a placement that is proven to be optimal."
	@echo "Open demo/policies/report.html in a browser for waits, load and schedules on one page; demo/gpu-queue.svg is the placement."
	@echo "Type . .venv/bin/activate for the command optsched in this shell. Then try, with files of yours:"
	@echo "  optsched simulate TRACE --policy fcfs,easy -o runs      # SWF, CSV, Parquet, Batsim or the JSON of sacct"
	@echo "  optsched slurm explain JOB                              # on a login node of Slurm"

# The same examples every time. Tests and the processes that they start find the kernels compiled, and the modules
# as well, also where the environment asks for none.
test: .venv/ready
	env -u PYTHONDONTWRITEBYTECODE $(OPTSCHED) doctor --compile
	$(PYTEST) -m "not long"

# The long tests, and new examples: properties in $(ROUNDS) rounds, and damaged input. SEED=7 repeats those of a seed.
test-all: SEED := $(or $(SEED),$(shell date +%s))
test-all: check test
	$(PYTEST) -m long
	@echo "make test-all SEED=$(SEED) tries the following examples again."
	set -e; for round in $$(seq $(ROUNDS)); do \
	    $(PYTEST) -m hypothesis --hypothesis-profile new --hypothesis-seed $(SEED)$$round; \
	done
	$(MAKE) fuzz SEED=$(SEED)

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
	PYTHONPATH=tests $(BIN)/python -m fuzz --seed $(or $(SEED),1) --seconds $(SECONDS) $(if $(CASE),--case $(CASE))

# Cases of other projects, of a real Slurm and of attacks, of ../shared/reviews, each with its right value.
cases: .venv/ready
	PYTHONPATH=tests $(BIN)/python -m public_cases $(WORDS)

# The site, in build/site. A broken link ends the build.
docs: .venv/ready
	$(BIN)/python -m sphinx -c docs -d build/doctrees -E -j 2 -q -W --keep-going . build/site
	@echo build/site/index.html

# The tables of fields on the pages of models, and their JSON Schemas, and the tables of options, keys and
# solvers in docs/, from the declarations; and the pictures of the front page.
pages: .venv/ready
	$(BIN)/python -m optsched.models.pages
	$(BIN)/python -m optsched.cli.pages
	$(BIN)/python docs/pictures.py docs

# All studies in full, in $(STUDIES), in an hour and a quarter on two cores, and their results in studies/. A study
# that was stopped continues.
results: .venv/ready
	set -e; for study in yang-2014 franke-1999 li-2015 gonthier-2024 guim-2009 openb-2023 systems; do \
	    $(OPTSCHED) study studies/$$study --traces $(TRACES) -o $(STUDIES)/$$study --write; \
	done
	$(BIN)/python -m optsched.cli.pages

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
else
JOINT := --joint 1,0 --seconds 20
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
	$(BENCH)/reconfiguration.py $(JOINT) -o $(RESULTS)
	$(BENCH)/shared_leaves.py --traces $(TRACES) -o $(RESULTS)
	$(BENCH)/sharing_decisions.py $(SHARING) -o $(RESULTS)
	$(BENCH)/site.py -o $(RESULTS)
	$(BENCH)/slurm_size.py --capture $(CAPTURE) -o $(RESULTS)
	$(BENCH)/switch_groups.py --traces $(TRACES) -o $(RESULTS)
	$(BENCH)/torus_decisions.py $(TORUS) -o $(RESULTS)
	$(BENCH)/window_mkp.py windows $(WINDOWS) -o $(RESULTS)
	$(BENCH)/window_mkp.py instances $(INSTANCES) --mtm .venv-mtm/bin/python $(LITERATURE) -o $(RESULTS)

# Martello and Toth's MTM for the last benchmark; its package needs NumPy 1.
.venv-mtm/ready:
	$(PYTHON) -m venv .venv-mtm
	.venv-mtm/bin/python -m pip install --quiet mknapsack==1.1.12 'numpy<2'
	touch $@

# What users need. Python compiles a module when it is first imported, which takes less than all of them at once.
.venv/usable: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("optsched needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	@echo "Installing optsched and its packages (0.7 GB) in .venv ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable .
	@touch $@

# What developers need, too.
.venv/ready: .venv/usable
	$(BIN)/python -m pip install --quiet "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[cbc,docs,gurobi,scip,studies,workloads]" --group dev
	touch $@

clean:
	rm -rf .venv demo
