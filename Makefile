# One command per job. `make help` lists them.
VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= python3
SERVE ?= 1
WORKERS ?= 4
unexport PYTHONDONTWRITEBYTECODE  # each of the tests' many processes would compile every module anew

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev packages demo up test guards lint types imports tests bench soak screenshots audit lock pin format clean

help: ## List these commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(BIN)/.installed ## Make the environment in .venv: dashboard, command line and worker

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(BIN)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[worker]'
	@touch $@

setup-dev: $(BIN)/.installed-dev ## The same with what the tests need

$(BIN)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[worker,dev]'
	@touch $@ $(BIN)/.installed

has = $(shell command -v $(1))
MISSING = $(if $(call has,chromium)$(call has,google-chrome),,chromium) \
  $(if $(call has,bwrap),,bubblewrap) \
  $(if $(call has,slurmctld)$(wildcard /usr/sbin/slurmctld),,slurmctld slurmd)
NO_SERVICES := /usr/sbin/policy-rc.d

packages: ## Install Chromium (browser tests), bubblewrap (sandbox) and Slurm, as root, where missing
	@set -- $(MISSING); test $$# -eq 0 || { test "$$(id -u)" -ne 0 && echo "missing: $$*"; } || { \
	  echo "installing $$*"; test -e $(NO_SERVICES) || { trap 'rm $(NO_SERVICES)' EXIT; \
	    printf '#!/bin/sh\nexit 101\n' >$(NO_SERVICES); chmod +x $(NO_SERVICES); }; \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends "$$@" >/dev/null; }

demo: setup ## Profile, plan and train the example, then keep the dashboard up (SERVE=0: exit)
	$(BIN)/stageflow demo $(if $(filter 0,$(SERVE)),--no-serve,--serve)

up: setup ## The dashboard and one node agent, until Ctrl-C
	$(BIN)/stageflow up

lint: setup-dev ## Style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup-dev ## Types, strict, every match exhaustive
	$(BIN)/mypy

imports: setup-dev ## What may import what
	$(BIN)/lint-imports

tests: setup-dev packages ## All tests, without the guards (MINUTES=70: none is begun later)
	$(if $(MINUTES),TESTS_UNTIL=$$(($$(date +%s) + 60 * $(MINUTES)))) \
	  $(BIN)/pytest --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder $(ARGS)

guards: lint imports types

test: setup-dev ## Everything that must hold: style, imports and types beside all tests
	@$(MAKE) --no-print-directory --jobs=2 guards tests

bench: setup-dev ## Tables of speed, in small sizes, 20 minutes (LONG=1: in full, for hours)
	@$(BIN)/python -m tests.benchmarks.all $(if $(LONG),--long)

DATABASES := sqlite postgresql
soak: setup-dev ## Faults made on purpose, several times each (FAULTS="agent paused" TIMES=5: those alone)
	@failed=0; for database in $(DATABASES); do \
	  for each in faults.py $(if $(FAULTS),,claims.py chaos.py sessions.py); do \
	    PYTHONPATH=. $(BIN)/python tests/soak/$$each --database $$database \
	      $$(test $$each = faults.py && echo '$(if $(TIMES),--times $(TIMES)) $(FAULTS)') || failed=1; \
	  done; done; \
	$(if $(FAULTS),,PYTHONPATH=. $(BIN)/python tests/soak/hosts.py || failed=1;) exit $$failed

screenshots: setup-dev packages ## Pictures of every page in every state, into docs/screenshots
	$(BIN)/python -m tests.e2e.screenshots

AUDIT := $(VENV)-audit/bin
$(AUDIT)/.installed:
	$(PYTHON) -m venv $(VENV)-audit
	$(AUDIT)/pip install --quiet bandit==1.9.4 pip-audit==2.10.1 cyclonedx-bom==7.5.0 uv
	@touch $@

audit: setup $(AUDIT)/.installed ## Known faults of our packages, risky code, a bill of materials (sbom.json)
	$(AUDIT)/bandit --quiet --recursive --severity-level medium --configfile pyproject.toml app backend workers
	$(AUDIT)/cyclonedx-py environment --output-file sbom.json $(BIN)/python
	$(AUDIT)/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip

LOCKED := --quiet --constraint constraints.txt --generate-hashes --no-header --no-annotate --python-version 3.11
lock: $(AUDIT)/.installed ## The hashes of the images' packages, into docker/*.lock (torch comes from an index of its own)
	$(AUDIT)/uv pip compile $(LOCKED) --output-file docker/web.lock pyproject.toml
	$(AUDIT)/uv pip compile $(LOCKED) --extra worker --extra kubernetes --output-file docker/worker.lock pyproject.toml
	sed -i -E '/^(torch==|triton==|nvidia-|cuda-)/,/[^\\]$$/d' docker/worker.lock

pin: ## The digests of the base images, into the Dockerfiles and compose.yaml (takes Docker and a registry)
	docker/pin-images

format: setup-dev ## Format the code
	$(BIN)/ruff check --fix . || true
	$(BIN)/ruff format .

clean: ## Remove the environment and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
