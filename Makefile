# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
#
# `make help` lists targets and variables. It reads them from this file and from
# make/*.mk: a target is described after two hash signs on its own line, a variable on a
# line that begins with a hash sign and a colon.

.DEFAULT_GOAL := help
SHELL := /bin/bash

#: PYTHON    Python 3.11 to 3.14 to make the environment with (default: the first found)
ifndef PYTHON
PYTHON := $(shell for python in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' \
	2>/dev/null && echo $$python && break; done)
endif
#: VENV      folder of the environment (default: .venv)
VENV ?= .venv
#: BACKEND   cpu (vLLM 0.32.0) or cuda (vLLM 0.33.0, needs an NVIDIA GPU) (default: cpu)
BACKEND ?= cpu
#: PYTEST_ARGS  further arguments for pytest, such as "-k status -x"
PYTEST_ARGS ?=

PYTEST = $(VENV)/bin/python -m pytest
# The vLLM for GPUs, whose files tests read and whose models they run on a CPU.
NEXT_VLLM = 0.33.0
# Model-level tests share the cores by files; an engine wants both for itself.
TEST_ALL = OMP_NUM_THREADS=1 $(PYTEST) -m "not (engine or server)" -n 2 \
	--dist loadfile && $(PYTEST) -m "engine or server"

SETUP = $(if $(PYTHON),,$(error Python 3.11 to 3.14 was not found; name one: make \
	PYTHON=/path/to/python3.11 ...))$(PYTHON) tools/setup_env.py \
	--venv $(VENV) --backend $(BACKEND)

.PHONY: help
help: ## Show this list
	@echo "Targets:"
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16
	@echo
	@echo "Variables, as in make test VENV=/tmp/venv:"
	@sed -n 's/^#: \([A-Z_0-9]*\)  *\(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

.PHONY: venv
venv: ## Create the environment: vLLM and this fork (resumes; does nothing when done)
	@$(SETUP)

.PHONY: test
test: ## Set up, and run the tests
	@$(SETUP) --with test
	@$(VENV)/bin/python tools/vllm_tree.py $(NEXT_VLLM) >/dev/null
	$(if $(PYTEST_ARGS),$(PYTEST) $(PYTEST_ARGS),$(TEST_ALL))
	$(if $(PYTEST_ARGS),,$(VENV)/bin/python tools/cuda_check.py --if-present)

.PHONY: lint
lint: ## Set up, and check style and types
	@$(SETUP) --with lint
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	git ls-files -z '*.py' '*.mk' '*.sh' Makefile | \
		xargs -0 $(VENV)/bin/python tools/pre_commit/check_spdx_header.py

.PHONY: clean
clean: ## Remove the environment, caches and build results
	rm -rf $(VENV) .venv-docs .cache build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache
	rm -f vllm_eagle3/*.so
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

-include make/*.mk
