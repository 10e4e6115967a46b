# Needs make and python3 (>= 3.11, with venv); everything else is installed into .venv on first use. `make check`,
# `make format`, `make bundle` and `make wheel` need node (>= 18) and npm as well: their tools go into node_modules.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
# No numerical library may take both cores behind our back: tests run in parallel already.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
# Tests start hundreds of processes: without compiled modules each of them would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

# Every target with a description is a command, and none is a file.
.PHONY: $(shell awk -F: '/^[a-z-]+:.*## /{print $$1}' $(MAKEFILE_LIST))
help: ## show these targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "relaxdp needs Python 3.11 or newer; call make PYTHON=/path/to/it")'
	$(PYTHON) -m venv $(VENV)

# Two steps, so that the demo does not wait for the developers' tools. Nor does it wait until pip has compiled modules that
# it never imports: Python compiles the others. Developers' processes may be told to write nothing, so all is compiled.
$(VENV)/demo.stamp: requirements/demo.txt pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --no-compile --require-hashes -r requirements/demo.txt
	$(BIN)/pip install --quiet --no-deps -e .
	@touch $@

# The installation above compiled the path, where there is a C compiler; after a change of the C it is compiled again.
KERNEL := src/relaxdp/sampling/kernel
$(VENV)/kernel.stamp: $(wildcard $(KERNEL)/*.[ch]) $(KERNEL)/build.py $(VENV)/demo.stamp
	@$(BIN)/python $(KERNEL)/build.py
	@touch $@

$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/kernel.stamp
	$(BIN)/pip install --quiet --no-compile --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true # some packages hold files for other versions of Python
	@touch $@

node_modules/.stamp: package.json package-lock.json
	npm ci --silent --no-fund --no-audit
	@touch $@

demo: $(VENV)/kernel.stamp ## run the main job on example data
	@$(BIN)/relaxdp demo

bundle: node_modules/.stamp ## make one script and one style of each page's modules, where the service finds them
	@$(PYTHON) src/relaxdp/service/bundle.py

wheel: bundle $(BIN)/python ## build the package as a wheel, with the compiled path and the bundles; writes dist
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

tour: $(VENV)/kernel.stamp $(if $(wildcard node_modules/.bin/esbuild),bundle) ## start the service, let 5,000 simulated devices answer, and show where to look
	@$(BIN)/relaxdp tour

# One process more than cores: a third of the time is spent waiting for browsers, databases and disks.
PYTEST = $(BIN)/pytest -n 3 --dist worksteal --durations=25
test: $(VENV)/dev.stamp ## run the tests (three processes, 7 minutes on two cores)
	$(PYTEST) -m "not long"

# What draws, once more: without the compiled path NumPy does, as everywhere where there is no compiler.
test-numpy: $(VENV)/dev.stamp ## run the tests of what draws without the compiled path (1 minute)
	RELAXDP_KERNEL=off $(PYTEST) -m "not long" tests/exact tests/unit/sampling tests/unit/mechanisms tests/unit/rappor

test-long: $(VENV)/dev.stamp ## run the long versions of tests: all combinations, more kills, more samples
	$(PYTEST) -m long

JS = node_modules/.bin
check: $(VENV)/dev.stamp node_modules/.stamp ## formatting, lint, types, the size budget and plain language
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m tools.size_budget
	$(BIN)/python -m tools.plain_language
	$(JS)/biome check --error-on-warnings
	$(JS)/tsc

format: $(VENV)/dev.stamp node_modules/.stamp ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(JS)/biome check --write

$(VENV)-bench/stamp: requirements/bench.txt pyproject.toml $(wildcard $(KERNEL)/*.[ch])
	@test -x $(VENV)-bench/bin/python || $(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/pip install --quiet --require-hashes -r requirements/bench.txt
	$(VENV)-bench/bin/pip install --quiet --no-deps -e .
	@touch $@

bench: $(VENV)-bench/stamp ## measure speed against peers and limits; writes docs/benchmarks.md
	$(VENV)-bench/bin/python -m benchmarks

bench-table: $(VENV)/dev.stamp ## measure releases of 10 and 100 million rows; writes docs/benchmarks-table.md
	$(BIN)/python -m benchmarks.table

bench-collector: $(VENV)/dev.stamp ## measure the collector beside plain SQLite and an empty route (5 minutes, 2 GB)
	$(BIN)/python -m benchmarks.collector

bench-pages: $(VENV)/dev.stamp node_modules/.stamp ## measure what pages weigh and when they are ready on a slow line; writes docs/benchmarks-pages.md
	$(BIN)/python -m benchmarks.pages

scale: $(VENV)/dev.stamp ## measure 10^4 to 10^8 rows; writes docs/scale.md (10 minutes, 15 GB)
	$(BIN)/python -m benchmarks.scale

coverage: $(VENV)/dev.stamp ## measure how often all intervals hold; writes docs/coverage.md (10 minutes)
	$(BIN)/python -m tests.statistical.estimation.interval_coverage

consistent: $(VENV)/dev.stamp ## measure ways to make shares consistent; writes docs/consistent.md (3 minutes)
	$(BIN)/python -m tests.statistical.estimation.consistent_shares

numbers: $(VENV)-bench/stamp ## measure the mean and the distribution of real numbers beside peers; writes docs/numbers-measured.md (5 minutes)
	$(VENV)-bench/bin/python -m benchmarks.waves

audit: $(VENV)-bench/stamp ## try to refute every guarantee, 10 million trials each; writes docs/audit.md (10 minutes)
	$(VENV)-bench/bin/python -m benchmarks.audit

faults: $(VENV)/dev.stamp ## kill and race releases, ledger, collector and market on both stores, 500 times (40 minutes)
	RELAXDP_FAULTS=500 $(BIN)/pytest -p no:xdist -s tests/faults tests/spark/test_spark_kills.py

fuzz: $(VENV)/dev.stamp ## ask the collector 10,000 questions that its description allows or forbids (3 minutes)
	$(BIN)/python -m tests.contract.collector.collector_fuzz

WINE ?= wine64
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=all
kernel-check: ## run the compiled path under the sanitizers, with every set of instructions (needs a C compiler)
	@mkdir -p build
	$(CC) -std=c11 -O1 -g -Wall -Wextra -Werror $(SANITIZERS) -I $(KERNEL) -o build/kernel-check tests/kernel/check.c $(KERNEL)/*.c
	build/kernel-check

# The same for processors and systems that are not this one: compiled by the cross compiler, run by whatever can run them.
kernel-check-arm: $(VENV)-dist/stamp ## run the compiled path of 64-bit Arm in an emulator (needs qemu-user-static, 1 minute)
	@mkdir -p build
	ZIG_GLOBAL_CACHE_DIR=$(CURDIR)/build/zig $(VENV)-dist/bin/python -m ziglang cc -target aarch64-linux-musl -static -std=c11 -O2 -Wall -Wextra -Werror -I $(KERNEL) -o build/kernel-check-arm tests/kernel/check.c $(KERNEL)/*.c
	qemu-aarch64-static build/kernel-check-arm 300

kernel-check-windows: $(VENV)-dist/stamp ## run the compiled path of Windows in Wine (needs wine64)
	@mkdir -p build
	ZIG_GLOBAL_CACHE_DIR=$(CURDIR)/build/zig $(VENV)-dist/bin/python -m ziglang cc -target x86_64-windows-gnu -std=c11 -O2 -Wall -Wextra -Werror -I $(KERNEL) -o build/kernel-check.exe tests/kernel/check.c $(KERNEL)/*.c
	WINEPREFIX=$(CURDIR)/build/wine WINEDEBUG=-all $(WINE) build/kernel-check.exe

mutants: $(VENV)/dev.stamp ## plant a mistake into every rule, one at a time: a test must notice; writes docs/mutants.md (15 minutes)
	$(BIN)/python -m tests.mutation.run

shape: $(VENV)/dev.stamp ## print the size budget, and measure the shape of the code: files, imports, and the packages that one release uses; writes docs/shape.md
	$(BIN)/python -m tools.size_budget --show
	$(BIN)/python -m benchmarks.shape

vectors: $(VENV)/dev.stamp ## check that the frozen test vectors are what this code makes
	$(BIN)/python -m tests.vectors.make --check

proofs: ## check the proofs in Coq, and that they assume nothing (needs coqc 8.16: apt-get install coq; 10 seconds)
	@$(PYTHON) -m tests.docs.machine_proofs

reproduce: $(VENV)/kernel.stamp ## run the paper's tables, figures and experiments again, with a verdict per claim
	$(BIN)/relaxdp reproduce

reproduce-seeds: $(VENV)/dev.stamp ## the same at ten different seeds (4 minutes)
	$(BIN)/python -m tests.statistical.paper.reproduce_seeds

$(VENV)-docs/stamp: requirements/docs.txt pyproject.toml $(wildcard $(KERNEL)/*.[ch])
	@test -x $(VENV)-docs/bin/python || $(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/pip install --quiet --require-hashes -r requirements/docs.txt
	$(VENV)-docs/bin/pip install --quiet --no-deps -e .
	@touch $@

docs: $(VENV)-docs/stamp ## build the documentation site into build/docs, run its tutorials, check its links (2 minutes)
	@rm -rf build/docs build/docs-sources
	$(VENV)-docs/bin/python -m docs.site

UV_COMPILE = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --python-version 3.11
lock: $(VENV)/dev.stamp ## renew the lock files (npm names no registry in its own, so that everybody's is asked)
	npm install --silent --no-fund --no-audit --omit-lockfile-registry-resolved
	$(UV_COMPILE) pyproject.toml --extra demo -o requirements/demo.txt
	$(UV_COMPILE) pyproject.toml --extra demo --group dev -c requirements/demo.txt -o requirements/dev.txt
	$(UV_COMPILE) pyproject.toml --extra demo requirements/bench.in -o requirements/bench.txt
	$(UV_COMPILE) requirements/dist.in -c requirements/dev.txt -o requirements/dist.txt
	$(UV_COMPILE) pyproject.toml --extra demo --group docs -c requirements/demo.txt -o requirements/docs.txt
	$(UV_COMPILE) pyproject.toml --extra server --extra postgres -c requirements/dev.txt -o requirements/service.txt

$(VENV)-dist/stamp: requirements/dist.txt
	@test -x $(VENV)-dist/bin/python || $(PYTHON) -m venv $(VENV)-dist
	$(VENV)-dist/bin/pip install --quiet --no-compile --require-hashes -r requirements/dist.txt
	@touch $@

# What the cross compiler has made once (each system's own start of a library) is kept in build.
dist: $(VENV)-dist/stamp node_modules/.stamp ## make the packages for an index in dist: sources, and wheels for all platforms (5 minutes, then 20 s)
	@ZIG_GLOBAL_CACHE_DIR=$(CURDIR)/build/zig $(VENV)-dist/bin/python -m packages.wheels

npm: $(BIN)/python node_modules/.stamp ## make the package of the browser's device for npm in dist
	@$(BIN)/python -m packages.npm

versions: $(VENV)/dev.stamp ## run the core of the tests with other Pythons (PYTHONS="..."), pandas, Spark and PostgreSQL; writes docs/versions.md
	$(BIN)/python -m packages.versions

clean: ## remove what was built here
	rm -rf $(VENV) $(VENV)-bench $(VENV)-dist $(VENV)-docs node_modules $(KERNEL)/*.so build dist .pytest_cache .mypy_cache .ruff_cache
