# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
#
# Other versions of vLLM. They are fetched as files (.cache/vllm_trees) and run in the
# environment of `make test`, on a CPU.

# Set here, and not with ?=, so that a variable of such a common name in the user's shell
# has no say.
#: VERSION   release of vLLM that test-vllm runs (default: 0.33.0)
VERSION = 0.33.0

.PHONY: test-vllm
test-vllm: ## Run on a CPU what can run with another vLLM: make test-vllm VERSION=0.33.0
	@$(SETUP) --with test
	@$(VENV)/bin/python tools/test_vllm.py $(VERSION) -- $(PYTEST_ARGS)

.PHONY: drift-table
drift-table: ## Derive anew what `vllm-eagle3 drift` compares with
	@$(SETUP)
	@$(VENV)/bin/python tools/drift_table.py

.PHONY: two-nodes
two-nodes: ## Run an engine over two nodes that are both this machine, with and without the fork
	@$(SETUP) --with test
	@$(VENV)/bin/python tools/two_nodes.py
