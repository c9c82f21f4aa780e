# Everything a newcomer needs: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
APT := $(shell [ "$$(id -u)" = 0 ] && command -v apt-get)

.PHONY: run test test-long test-lowest test-newest fuzz dist sbom audit bench docs screens coverage mutation lint chromium slurm torch ray axe clean

run: $(VENV)/.run
	$(BIN)/stretto demo --out out

test: lint chromium slurm torch axe
	$(BIN)/python -m pytest -n 3 -m "not long"

test-long: $(VENV)/.dev chromium slurm torch ray
	$(BIN)/pip install -q -c constraints.txt atheris || echo "atheris does not install here: its fuzz runs are skipped"
	$(BIN)/python -m pytest -n 2 -m "long"

# PyTorch where a build for CPUs can be had: others bring several gigabytes for GPUs.
TORCH := $(shell sed -n 's/^torch==//p' constraints.txt)
torch: $(VENV)/.dev
	@$(BIN)/python -c "import torch, accelerate" 2>/dev/null \
		|| { $(BIN)/pip install -q --dry-run --no-deps --report - torch==$(TORCH) 2>/dev/null | grep -q '+cpu' \
			&& $(BIN)/pip install -q -c constraints.txt torch==$(TORCH) accelerate; } \
		|| echo "there is no CPU build of torch $(TORCH) here: tests of PyTorch are skipped"

# Accessibility rules for the page tests.
axe:
	@[ -f out/npm/node_modules/axe-core/axe.min.js ] || npm install --prefix out/npm --no-save --no-audit --no-fund axe-core@4.14.0 >/dev/null 2>&1 \
		|| echo "axe-core could not be installed by npm: accessibility tests are skipped"

ray: $(VENV)/.dev
	@$(BIN)/python -c "import ray" 2>/dev/null || $(BIN)/pip install -q -c constraints.txt ray || echo "ray does not install here: its engine's tests are skipped"

# Lowest and newest allowed versions, each in an environment of its own: one or two folders of tests for every library.
COMPATIBLE := tests/core tests/runlog tests/api tests/files/test_native.py tests/files/test_onnx.py tests/files/test_load.py \
	tests/files/traces tests/graphs/test_against_reference.py tests/queues/env tests/queues/test_queue_reference.py \
	tests/learning/test_trainers.py tests/cli/test_cli_plan.py tests/cli/test_cli_replay.py tests/web/test_web_api.py \
	tests/engines/test_driver.py tests/engines/dask/test_dask_engine.py
test-lowest: PIN := -c constraints-lowest.txt
test-newest: PIN := --upgrade
test-lowest test-newest:
	$(PYTHON) -m venv $(VENV)-$@
	$(VENV)-$@/bin/pip install -q $(PIN) -e '.[all]' pytest pytest-xdist hypothesis httpx setuptools
	NUMBA_CACHE_DIR=$(abspath $(VENV)-$@)/numba $(VENV)-$@/bin/python -m pytest -n 2 -p no:cacheprovider -m "not long" $(COMPATIBLE)

# A million damaged inputs over all readers, the command line and the API; resumes where it was stopped.
fuzz: $(VENV)/.dev
	$(BIN)/python tests/trust/fuzz.py --inputs 1000000 --seed 0

dist: $(VENV)/.dev
	$(BIN)/python .ci/build_dist.py dist

# What is installed, with versions, licenses and dependencies (CycloneDX), and its known vulnerabilities.
sbom: $(VENV)/.dev
	$(BIN)/python .ci/make_sbom.py out/sbom.json

audit:
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/pip install -q pip-audit
	$(VENV)-audit/bin/python .ci/audit.py $(VENV)-audit/bin/pip-audit

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/simulator.py
	$(BIN)/python benchmarks/quality.py
	$(BIN)/python benchmarks/peers.py

docs: $(VENV)/.dev
	$(BIN)/python docs/make_tables.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Every page in every state at three widths, light and dark, as pictures to look at; `make test` takes some of them.
screens: $(VENV)/.dev chromium
	$(BIN)/python tests/web/screenshots.py --out out/screens

# Lines and branches that the tests reach; kernels as plain Python, for compiled code cannot be watched.
coverage: $(VENV)/.dev chromium slurm torch ray
	rm -f .coverage .coverage.*
	-$(BIN)/coverage run -m pytest -n 3 -m "not long"
	NUMBA_DISABLE_JIT=1 PYTHONPATH=tests:. $(BIN)/coverage run tests/kernels_plain/plain_cases.py .coverage-cases.json
	$(BIN)/coverage combine -q
	$(BIN)/coverage json -q -i -o .coverage.json
	$(BIN)/python tests/trust/report_coverage.py .coverage.json --lines 95 --branches 90

# Does a test notice when the code is changed in one place? A sample of each group; resumes where it was stopped.
mutation: $(VENV)/.dev
	$(BIN)/python tests/trust/run_mutation.py

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks examples docs research .ci
	$(BIN)/ruff format --check -q src tests benchmarks examples docs research .ci
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# Browser tests want Debian's Chromium; without root they are skipped and say so.
chromium:
	@command -v chromium >/dev/null || [ -z "$(APT)" ] || { \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } \
		|| echo "chromium could not be installed: browser tests are skipped"

# Tests of the Slurm engine want its daemons (nothing is started but by the tests); without root they are skipped.
slurm:
	@command -v slurmrestd >/dev/null || [ -z "$(APT)" ] || { \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
			slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge \
			slurmrestd slurm-wlm-jwt-plugin >/dev/null; } \
		|| echo "slurm could not be installed: its tests are skipped"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade pip

$(VENV)/.run: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install -q -c constraints.txt -e '.[learn,web,dask]'
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.run

clean:
	rm -rf $(VENV) $(VENV)-* out dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
