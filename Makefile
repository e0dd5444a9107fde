# Every target sets up what it needs, and does nothing if nothing has changed. `make help` lists the targets.
#
# The set-up has three steps, each with a stamp file in .venv: the virtual environment, then packages and kernel in one
# editable install, then the jar for Spark. Python sources are used in place, so editing them needs no step.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# maturin is called by pip and found by name.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
# Compiled modules are kept in .venv, even where the environment forbids to write them next to the sources: tests start
# Python so often that compiling again would take half of their time.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/pycache

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates/crown-kernel crates/crown-python -name '*.rs' -o -name Cargo.toml)
JVM_SOURCES := tools/build-jvm $(shell find crates/crown-jvm jvm -name '*.rs' -o -name '*.java' -o -name Cargo.toml)

##@ The two commands

.PHONY: demo
demo: java setup ## Stream a social network through Spark, keep a view up to date, check it with Spark itself
	@$(BIN)/crown demo

.PHONY: test
test: java setup test-kernel test-python ## Run the default test suite: kernel, then Python

##@ While you work

.PHONY: setup
setup: $(VENV)/.installed $(VENV)/.jar ## Create the virtual environment, install packages, build kernel and jar (every target does this)

.PHONY: check
check: setup ## Check lint, format and types: ruff, mypy --strict, clippy, rustfmt
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --quiet -- -D warnings

.PHONY: format
format: setup ## Format the sources with ruff and rustfmt
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	cargo fmt --all

.PHONY: test-kernel
test-kernel: setup ## Run only the kernel tests (cargo)
	cargo test --locked --quiet -p crown-kernel -p crown-jvm

.PHONY: test-python
test-python: java setup $(VENV)/spark.jsa ## Run only the Python tests (pytest, three processes, since many tests wait); select with ARGS="-k name"
	$(BIN)/pytest -n 3 --dist loadfile $(ARGS)

.PHONY: coverage
coverage: setup ## Run the Python tests without Spark and report line coverage (HTML in artifacts/coverage)
	$(BIN)/pytest -n 2 --dist loadfile -m "not spark and not slow and not peer" --ignore tests/benchmarks \
		--cov crown --cov-report term --cov-report html:artifacts/coverage $(ARGS)

.PHONY: test-slow
test-slow: java setup ## Run the long tests: more examples, more seeds, more faults
	CROWN_SEED=$${CROWN_SEED:-random} CROWN_KAFKA_DOWNLOAD=1 HYPOTHESIS_PROFILE=slow $(BIN)/pytest -m slow $(ARGS)

# Real data instead of generated data: GRAPH= an edge list, SOCIAL= a directory of SNB files.
BENCH_DATA := $(if $(GRAPH),--graph $(GRAPH)) $(if $(SOCIAL),--social $(SOCIAL))

.PHONY: bench
bench: java setup ## Run ten minutes of benchmarks and write docs/benchmarks.md from them (GRAPH=, SOCIAL= for real data)
	$(BIN)/crown bench run selection --seconds 5 $(BENCH_DATA) $(BENCH)
	$(BIN)/crown bench report

.PHONY: bench-all
bench-all: java setup ## Run every experiment, for hours (PEERS=differential,dbsp,...), Dumbbell on DUMBBELL_GRAPH=, and write the page
	$(BIN)/crown bench run all --seconds 200 $(BENCH_DATA) $(if $(PEERS),--peers $(PEERS)) $(BENCH)
	$(if $(DUMBBELL_GRAPH),$(BIN)/crown bench run dumbbell --seconds 120 --graph $(DUMBBELL_GRAPH) $(if $(PEERS),--peers $(PEERS)))
	$(BIN)/crown bench report

.PHONY: bench-check
bench-check: java setup ## Repeat the stored run times on the same data; fail if a ratio is more than 20% worse
	$(BIN)/crown bench check $(BENCH_DATA) $(BENCH)

.PHONY: wheel
wheel: java setup ## Build the wheel (one for all Pythons from 3.11, with kernel and jar) into dist/ and test it without Rust
	@test -f src/crown/spark/jars/crown-spark.jar || { echo "the wheel needs the jar for Spark: install a JDK (tools/prerequisites jdk)"; exit 1; }
	rm -f dist/crown_ivm-*.whl
	$(BIN)/maturin build --release --locked --out dist
	$(BIN)/python tools/test-wheel dist/crown_ivm-*.whl $(WHEEL_TEST)

ARM := aarch64-unknown-linux-gnu
.PHONY: wheel-arm64
wheel-arm64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER ?= aarch64-linux-gnu-gcc
wheel-arm64: setup ## Cross-compile the wheel for Linux on ARM into dist/, untested (needs gcc-aarch64-linux-gnu and the Rust target)
	rm -f dist/crown_ivm-*aarch64.whl
	$(BIN)/python tools/build-jvm --target $(ARM)
	@# The jar in the source tree is this machine's again, whatever happens.
	$(BIN)/maturin build --release --locked --target $(ARM) --out dist; status=$$?; $(BIN)/python tools/build-jvm; exit $$status

.PHONY: docs
docs: setup ## Build the documentation site into site/, without network; any warning fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

.PHONY: clean
clean: ## Remove the virtual environment and all build artifacts
	rm -rf $(VENV) target build dist site artifacts .pytest_cache .mypy_cache .ruff_cache .hypothesis src/crown/_kernel*.so src/crown/spark/jars
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

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
	@# PySpark is a source package that setuptools builds; without build isolation setuptools must be installed first.
	@$(PIP) install --constraint constraints.txt --no-compile --upgrade pip maturin setuptools
	@$(PIP) install --constraint constraints.txt --no-compile --no-build-isolation --editable '.[dev]'
	@touch $@

# Not made without a JDK, and so tried again each time: views on Spark then run in Python workers.
$(VENV)/.jar: $(VENV)/.installed $(RUST_SOURCES) $(JVM_SOURCES)
	@if tools/prerequisites jdk; then \
		echo "set-up: cells inside Spark's JVM" && $(BIN)/python tools/build-jvm && touch $@; \
	fi

# Only for tests, which start Java often.
$(VENV)/spark.jsa: tools/archive-classes constraints.txt | setup
	@echo "set-up: archive of Spark's classes for tests"
	@$(BIN)/python tools/archive-classes $@ || echo "none was made: tests take longer"
