SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-unit test-slow fuzz bench check lock clean

SF ?= 1
ARGS ?=
PY := .venv/bin/python
READY := .venv/.ready
# Spark takes the Java that JAVA_HOME names, and `java` on the path may be too old.
WITH_JAVA := JAVA_HOME="$$(scripts/java.sh)" && export JAVA_HOME &&
# A long run is allowed longer than the limit that catches a hang in `make test`.
SLOW := -m slow --timeout=14400

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv with everything pinned in requirements.lock, and see to Java 17+
	@scripts/java.sh >/dev/null

$(READY): pyproject.toml requirements.lock
	@scripts/venv.sh
	@echo "Installing into .venv (some minutes the first time)"
	@$(PY) -m pip install --quiet --use-pep517 --require-hashes -r requirements.lock
	@$(PY) -m pip install --quiet --no-deps --no-build-isolation --editable .
	@$(PY) -m compileall -q src # as pip does with all it does not install as editable
	@touch $@

demo: setup ## Answer a query on TPC-H data; SF=0.1 for a tenth of it; kept in .demo/
	@$(WITH_JAVA) $(PY) -m sooner.serve.demo --scale $(SF)

test: setup ## Run all tests but the long ones; ARGS="-k answer" to choose
	@$(WITH_JAVA) $(PY) -m pytest $(ARGS)

test-unit: export PYTHONDONTWRITEBYTECODE :=
# Catalogs of a few rows, by the hundred: waiting for a disk would be a third of their tests' time.
test-unit: export PYTEST_DEBUG_TEMPROOT := $(wildcard /dev/shm)
# Quick to run again and again: `make test` looks at more examples of each law. The layers are `make check`'s,
# and no test here reads a log.
test-unit: export SOONER_EXAMPLES := 10
test-unit: setup ## Run only what needs no Java and no simulation: seconds
	@$(PY) -m pytest -m "not spark and not slow and not postgres and not simulation" -p no:logging -n auto --dist worksteal --ignore=tests/test_layers.py $(ARGS)

test-slow: setup ## Run the long tests
	@$(WITH_JAVA) $(PY) -m pytest $(SLOW) $(ARGS)

fuzz: export SOONER_FUZZ_EXAMPLES ?= 5000
fuzz: setup ## Compare Sooner with Spark on random queries
	@$(WITH_JAVA) $(PY) -m pytest tests/differential $(SLOW) -k fuzz $(ARGS)

bench: setup ## Run the benchmarks
	@$(WITH_JAVA) $(PY) bench/exact.py
	@$(WITH_JAVA) $(PY) bench/scramble.py
	@$(WITH_JAVA) $(PY) bench/progressive.py
	@$(WITH_JAVA) $(PY) bench/progressive.py --scale 1
	@$(WITH_JAVA) $(PY) bench/break_even.py
	@$(WITH_JAVA) $(PY) bench/ablations.py
	@$(WITH_JAVA) $(PY) bench/ablations.py --by-order
	@$(WITH_JAVA) $(PY) bench/ablations.py --unscrambled
	@$(WITH_JAVA) $(PY) bench/ablations.py --sessions 400000
	@$(WITH_JAVA) $(PY) bench/synopses.py
	@$(WITH_JAVA) $(PY) bench/views.py
	@$(PY) bench/missing.py
	@$(PY) bench/missing_joins.py
	@$(WITH_JAVA) $(PY) bench/coverage.py
	@$(WITH_JAVA) $(PY) bench/coverage.py --unscrambled
	@$(WITH_JAVA) $(PY) bench/coverage.py --sessions 400000
	@$(WITH_JAVA) $(PY) bench/stops.py
	@$(WITH_JAVA) $(PY) bench/stops.py --sessions 400000
	@$(WITH_JAVA) $(PY) bench/coverage.py --sessions 400000 --unscrambled

check: $(READY) ## Check style, types and the direction of imports
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy src
	$(PY) -m pytest -q tests/test_layers.py

lock: $(READY) ## Pin again what pyproject.toml asks for; ARGS=--upgrade for the newest of all
	$(PY) -m uv --no-config pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
		--fork-strategy fewest --generate-hashes --custom-compile-command "make lock" \
		--quiet --output-file requirements.lock $(ARGS)

clean: ## Remove caches, builds and the demo's data; .venv and .sooner stay
	rm -rf .demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf metastore_db spark-warehouse derby.log
	find src tests bench -name __pycache__ -prune -exec rm -rf {} +
