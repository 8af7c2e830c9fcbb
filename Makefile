# `make help` lists the targets. Everything is installed into .venv; a stamp file per set of extras makes sure that it is
# installed again only after pyproject.toml changed.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
# Python compiles what is imported, which is a small part of what is installed, and keeps it: the tests start many processes
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-input --no-compile
OUT ?= out
# how many processes run the tests
JOBS ?= 2
# more arguments for the program that a target runs, e.g. make test ARGS="-k conv2d"
ARGS ?=

# the first Python of a version that we support; only looked for when .venv has to be made
find_python = for p in $(PYTHON) python3 python3.11 python3.12 python3.13 python3.14; do \
	if "$$p" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' >/dev/null 2>&1; \
	then echo "$$p"; exit 0; fi; done; \
	echo "No Python 3.11, 3.12, 3.13 or 3.14 with venv found. Install one (on Debian and Ubuntu with its package python3-venv)," >&2; \
	echo "or name it: make PYTHON=/path/to/python3.11" >&2; exit 1

.PHONY: help demo smoke cliffs test test-slow test-mpi test-packages test-pythons test-matrix doctest boundscheck oldest parity fuzz stubs lint bench bench-compare docs docs-serve wheel wheel-check clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

$(VENV)/made:
	@python=$$($(find_python)); echo "making $(VENV) with $$("$$python" --version)"; "$$python" -m venv $(VENV)
	@touch $@

# one set of extras each; torch comes first and alone where something else depends on it, so that nothing else picks a version
$(VENV)/has-demo: EXTRAS := examples
$(VENV)/has-test: EXTRAS := test,examples
$(VENV)/has-parity: EXTRAS := parity,test,examples
$(VENV)/has-parity: FIRST := torch==2.13.0
$(VENV)/has-bench: EXTRAS := bench
$(VENV)/has-bench: FIRST := torch==2.13.0
$(VENV)/has-docs: EXTRAS := docs,examples
$(VENV)/has-dev: EXTRAS := dev
$(VENV)/has-%: pyproject.toml $(VENV)/made
	@echo "installing autograd_nb with the extras $(EXTRAS)"
	@$(if $(FIRST),$(PIP) "$(FIRST)")
	@$(PIP) -e ".[$(EXTRAS)]"
	@touch $@
.PRECIOUS: $(VENV)/has-%

demo: $(VENV)/has-demo ## train the two-branch classifier on handwritten digits; pictures and weights go to out/
	@$(BIN)/python examples/two_branch_classifier.py --out $(OUT) $(ARGS)

smoke: $(VENV)/has-test ## one of everything, in seconds
	@$(BIN)/python -m pytest -q tests/test_smoke.py $(ARGS)

test: $(VENV)/has-test ## all tests but the slow ones and those against PyTorch, and the examples in the docstrings
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal tests --ignore=tests/parity --ignore=tests/fuzz -m "not slow" $(ARGS)

test-slow: $(VENV)/has-test ## those marked slow: families of so many kernels that compiling them takes minutes where nothing is cached
	@$(BIN)/python -m pytest -q -n $(JOBS) tests --ignore=tests/parity --ignore=tests/fuzz -m slow $(ARGS)

# an environment of its own: others stay without MPI, as most users' are
test-mpi: $(VENV)/mpi/made ## the tests of several processes, on MPI, which is installed into an environment of their own
	@$(VENV)/mpi/bin/python -m pytest -q -n $(JOBS) --dist loadfile tests/distributed -m "not slow" $(ARGS)
$(VENV)/mpi/made: pyproject.toml $(VENV)/made
	@echo "installing autograd_nb with the extras test, mpi and examples"
	@$(BIN)/python -m venv $(VENV)/mpi
	@$(VENV)/mpi/bin/python -m pip install -qq --disable-pip-version-check --no-input -e ".[test,mpi,examples]"
	@touch $@

# no package may bring PyTorch: what they depend on is in the list itself
test-packages: $(VENV)/packages/made ## programs of packages that were written for PyTorch, beside PyTorch's numbers, in an environment without it (ARGS=NAME)
	@$(VENV)/packages/bin/python -m tests.packages $(ARGS)
$(VENV)/packages/made: tests/packages/requirements.txt $(VENV)/made
	@echo "installing tests/packages/requirements.txt"
	@$(BIN)/python -m venv $(VENV)/packages
	@$(VENV)/packages/bin/python -m pip install -qq --disable-pip-version-check --no-input --no-deps -r tests/packages/requirements.txt
	@touch $@

# Pythons to run the tests on, by name or path; of each version the first, and none that we do not support
PYTHONS ?= python3.11 python3.12 python3.13 python3.14 $(wildcard $(HOME)/.pyenv/versions/3.1[1234].*/bin/python)
# what test-pythons makes on each
WHAT ?= test
test-pythons: ## `make test` (or WHAT=smoke …) on every supported Python that is found, each in an environment of its own (PYTHONS="python3.12 /path/to/python")
	@for p in $(PYTHONS); do \
		v=$$("$$p" -c 'import sys, venv, ensurepip; v = sys.version_info; print(f"{v[0]}.{v[1]}") if (3, 11) <= v < (3, 15) else sys.exit(1)' 2>/dev/null) \
			|| continue; \
		[[ " $${done:-} " != *" $$v "* ]] || continue; \
		done="$${done:-} $$v"; echo "== Python $$v: make $(WHAT)"; \
		$(MAKE) --no-print-directory $(WHAT) VENV=$(VENV)/$$v PYTHON="$$p" || failed="$${failed:-} $$v"; \
	done; \
	[ -n "$${done:-}" ] || { echo "none of these is a Python that we support: $(PYTHONS)" >&2; exit 1; }; \
	[ -z "$${failed:-}" ] || { echo "make $(WHAT) failed on Python$$failed" >&2; exit 1; }

# NumPy 2.0 and SciPy 1.13 have no wheels for later Pythons
OLD_PYTHONS ?= python3.11 python3.12 $(wildcard $(HOME)/.pyenv/versions/3.1[12].*/bin/python)
test-matrix: ## make test-pythons, and after it `make oldest` on each Python that the oldest versions have wheels for (WHAT=smoke)
	@$(MAKE) --no-print-directory test-pythons
	@$(MAKE) --no-print-directory test-pythons WHAT=oldest PYTHONS="$(OLD_PYTHONS)"

doctest: $(VENV)/has-test ## the examples in the docstrings
	@$(BIN)/python -m pytest -q tests/test_examples.py $(ARGS)

# what is marked `formulas` would only compile the same loops around a few hundred formulas again
boundscheck: $(VENV)/has-test ## the slow tests and those of ops and engine with every index in every kernel checked
	@NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -q -n $(JOBS) tests/ops tests/autograd $$(grep -lr mark.slow tests/compiler tests/nn) \
		-m "not formulas" $(ARGS)

# numba==0.62.* numpy==2.0.* …, from pyproject.toml
OLDEST = $(shell sed -n 's/^dependencies = \[\(.*\)\]/\1/p' pyproject.toml | tr -d '",' | sed 's/>=\([0-9.]*\)/==\1.*/g')
oldest: $(VENV)/oldest/made ## smoke tests and those of code generation with the oldest numba, numpy and scipy that are allowed
	@$(VENV)/oldest/bin/python -m pytest -q tests/test_smoke.py tests/codegen -m "not slow" $(ARGS)
$(VENV)/oldest/made: pyproject.toml $(VENV)/made
	@echo "installing $(OLDEST)"
	@$(BIN)/python -m venv $(VENV)/oldest
	@$(VENV)/oldest/bin/python -m pip install -qq --disable-pip-version-check --no-input $(OLDEST) -e ".[test,examples]"
	@touch $@

parity: $(VENV)/has-parity ## compare with PyTorch 2.13.0
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal tests/parity tests/fuzz $(ARGS)

# how long to search for programs that differ from PyTorch's, and where to begin; ARGS=--compiled for compiled functions
SECONDS ?= 600
SEED ?= 0
fuzz: $(VENV)/has-parity ## draw programs, run them here and in PyTorch, shrink what differs (SECONDS=600 SEED=0)
	@AUTOGRAD_NB_VERIFY=1 $(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(SEED) $(ARGS)

stubs: $(VENV)/has-dev ## write the stubs of the ops anew, from the table of ops, and what the reference says of their examples
	@$(BIN)/python -m autograd_nb.ops.signatures
	@$(BIN)/python -m autograd_nb.compat.stubs
	@$(BIN)/python -m autograd_nb.nn.modules.stubs
	@NUMBA_DISABLE_JIT=1 $(BIN)/python docs/_ext/observe.py

lint: $(VENV)/has-dev ## ruff, mypy, the share of public symbols with a known type, and users' programs in strict mode (ARGS=--list: where the others are)
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python .ci/types $(ARGS)

bench: $(VENV)/has-bench ## time against PyTorch, JAX, autograd, MyGrad and NumPy (ARGS="--quick conv"); leave the machine alone meanwhile
	@$(BIN)/python -m bench.run $(ARGS)
	@$(if $(ARGS),,$(BIN)/python -m bench.cliffs)

cliffs: $(VENV)/has-parity ## look for slow cases beside PyTorch, and compiled beside eager (ARGS="--sample 60 --seed 1 --threads 2")
	@$(BIN)/python -m bench.cliffs $(ARGS)

# the revision that bench-compare compares with
BASE ?= HEAD
bench-compare: $(VENV)/has-bench ## what changed against the revision BASE=…, beyond noise
	@$(BIN)/python -m bench.compare $(BASE) $(ARGS)

docs: $(VENV)/has-docs ## the site in out/docs: tutorials are run, links checked, warnings are errors (ARGS=-E: all pages anew)
	@$(BIN)/python -m sphinx -b html -n -W --keep-going -q -j $(JOBS) docs $(OUT)/docs $(ARGS)
	@echo "$(OUT)/docs/index.html"

# where docs-serve listens
PORT ?= 8000
docs-serve: docs ## the same, served to a browser on this machine (PORT=8000)
	@echo "http://localhost:$(PORT)/ (Ctrl-C ends it)"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory $(OUT)/docs $(PORT)

# the levels of processors whose packs of kernels the wheel carries; PACK=1: x86-64-v3
PACK ?=
LEVELS = $(if $(filter 1,$(PACK)),x86-64-v3,$(PACK))
wheel: $(VENV)/made $(if $(PACK),$(VENV)/has-test) ## build the wheel into dist/ (PACK=1: for this platform, with the usual kernels compiled)
	@rm -rf dist build/packs build/sdist && mkdir -p build/packs
	@for level in $(LEVELS); do \
		$(BIN)/python -m autograd_nb cache pack build/packs/$$level.pack --level $$level --usual --run "-m bench.cold.once"; done
	@$(if $(PACK),AUTOGRAD_NB_WHEEL_PACKS=$(CURDIR)/build/packs) $(BIN)/python -m pip wheel -qq --disable-pip-version-check --no-input --no-deps \
		--wheel-dir dist .
	@ls -s --block-size=kB dist/*.whl

wheel-check: wheel $(VENV)/has-dev ## install the wheel in an empty environment outside the checkout, and compute there (PACK=1: compiling nothing)
	@$(BIN)/python -m build --sdist --outdir build/sdist . >/dev/null
	@$(BIN)/python -m twine check --strict dist/*.whl build/sdist/*.tar.gz
	@bash .ci/wheel-check

clean: ## remove everything that the other targets made
	@rm -rf $(VENV) dist build $(OUT) docs/generated bench/results .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
