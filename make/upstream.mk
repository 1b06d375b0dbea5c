# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
#
# The fork inside a vLLM that is built from source, and wheels of the fork itself.
# docs/building.md says what each needs.

#: VLLM_SOURCE  checkout of vLLM for build-from-source, a path
VLLM_SOURCE =
#: BUILD_PYTHON  Python that builds vLLM, with what vLLM's build asks for (default: python3)
BUILD_PYTHON ?= python3
#: BUILD_ARGS  further arguments for its pip wheel, such as --no-build-isolation
BUILD_ARGS ?=

# vLLM's own variables (VLLM_TARGET_DEVICE, VLLM_USE_PRECOMPILED, MAX_JOBS, ...) reach
# vLLM's own build through the environment, untouched. No set-up: it is vLLM's.
.PHONY: build-from-source
build-from-source: ## Patch the vLLM checkout VLLM_SOURCE and build it as vLLM builds itself
	@test -n '$(VLLM_SOURCE)' || { echo "build-from-source: name a checkout of vLLM:" \
		"make build-from-source VLLM_SOURCE=PATH" >&2; exit 2; }
	@$(PYTHON) tools/build_from_source.py --python '$(BUILD_PYTHON)' \
		--pip-arguments='$(BUILD_ARGS)' '$(VLLM_SOURCE)'

.PHONY: wheel
wheel: ## Build the fork's own wheels into dist/: pure, CPU, and CUDA where nvcc is
	@$(SETUP)
	$(VENV)/bin/python -m pip install --quiet -r requirements/release.txt \
		-c requirements/lock/$(BACKEND).txt
	$(VENV)/bin/python tools/build_wheels.py
