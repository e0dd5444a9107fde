# Every target sets up what it needs by itself and does nothing when nothing changed. `make help` lists them.
#
# The set-up has three steps, each with a stamp file in .venv: the virtual environment, then packages and kernel by one
# editable install, then the jar for Spark. Python sources are used in place, so editing one needs no step at all.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# maturin is called by pip and found by name.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export VIRTUAL_ENV := $(CURDIR)/$(VENV)

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates/crown-kernel crates/crown-python -name '*.rs' -o -name Cargo.toml)
JVM_SOURCES := tools/build-jvm $(shell find crates/crown-jvm jvm -name '*.rs' -o -name '*.java' -o -name Cargo.toml)

##@ The two commands

.PHONY: demo
demo: java setup ## A social network streams through Spark, a view is kept up to date, Spark itself checks it
	@$(BIN)/crown demo

.PHONY: test
test: java setup test-kernel test-python ## The default test suite: the kernel's, then Python's

##@ While you work

.PHONY: setup
setup: $(VENV)/.installed $(VENV)/.jar ## Virtual environment, packages and kernel (every target does this by itself)

.PHONY: check
check: setup ## Lint, format and types: ruff, mypy --strict, clippy, rustfmt
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --quiet -- -D warnings

.PHONY: format
format: setup ## Rewrite the sources as ruff and rustfmt want them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	cargo fmt --all

.PHONY: test-kernel
test-kernel: setup ## The kernel's tests alone (cargo)
	cargo test --locked --quiet -p crown-kernel -p crown-jvm

.PHONY: test-python
test-python: java setup ## The Python tests alone (pytest, two processes); ARGS="-k name" to choose
	$(BIN)/pytest -n 2 --dist loadfile $(ARGS)

.PHONY: test-slow
test-slow: java setup ## The long tests: more examples, more seeds, more faults
	HYPOTHESIS_PROFILE=slow $(BIN)/pytest -m slow $(ARGS)

# Real data instead of generated: GRAPH= an edge list, SOCIAL= a folder of SNB files.
BENCH_DATA := $(if $(GRAPH),--graph $(GRAPH)) $(if $(SOCIAL),--social $(SOCIAL))

.PHONY: bench
bench: java setup ## Ten minutes of benchmarks, then docs/benchmarks.md from that very run (GRAPH=, SOCIAL= for real data)
	$(BIN)/crown bench run selection --seconds 5 $(BENCH_DATA) $(BENCH)
	$(BIN)/crown bench report

.PHONY: bench-all
bench-all: java setup ## Hours: every experiment (PEERS=differential,dbsp,...), Dumbbell on DUMBBELL_GRAPH=, then the page
	$(BIN)/crown bench run all --seconds 200 $(BENCH_DATA) $(if $(PEERS),--peers $(PEERS)) $(BENCH)
	$(if $(DUMBBELL_GRAPH),$(BIN)/crown bench run dumbbell --seconds 120 --graph $(DUMBBELL_GRAPH) $(if $(PEERS),--peers $(PEERS)))
	$(BIN)/crown bench report

.PHONY: bench-check
bench-check: java setup ## Repeat the stored run times, compare ratios; more than 20% worse fails (data as they were stored)
	$(BIN)/crown bench check $(BENCH_DATA) $(BENCH)

.PHONY: wheel
wheel: setup ## Build the wheel (one for all Pythons from 3.11) into dist/
	$(BIN)/maturin build --release --locked --out dist

.PHONY: clean
clean: ## Remove the virtual environment and all build products
	rm -rf $(VENV) target build dist artifacts .pytest_cache .mypy_cache .ruff_cache .hypothesis src/crown/_kernel*.so src/crown/spark/jars
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help
help: ## This list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: java
java:
	@tools/prerequisites java

$(VENV)/.created:
	@tools/prerequisites python rust
	@echo "set-up: virtual environment"
	@"$$(tools/prerequisites --python)" -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt $(RUST_SOURCES)
	@tools/prerequisites rust
	@echo "set-up: Python packages and kernel (some minutes the first time)"
	@# PySpark comes as sources, which setuptools builds; without build isolation it has to be here first.
	@$(PIP) install --constraint constraints.txt --no-compile --upgrade pip maturin setuptools
	@$(PIP) install --constraint constraints.txt --no-compile --no-build-isolation --editable '.[dev]'
	@touch $@

# Not made without a JDK, and so tried again each time: views on Spark then run in Python workers.
$(VENV)/.jar: $(VENV)/.installed $(RUST_SOURCES) $(JVM_SOURCES)
	@if tools/prerequisites jdk; then \
		echo "set-up: cells inside Spark's JVM" && $(BIN)/python tools/build-jvm && touch $@; \
	fi
