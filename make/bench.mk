# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
#
# Measurements. None of them is a test.

#: ACCEPTANCE_ARGS  further arguments for benchmarks/acceptance.py, such as --short
ACCEPTANCE_ARGS ?=
#: BENCH_ARGS  further arguments for benchmarks/bench.py, such as --short
BENCH_ARGS ?=

.PHONY: acceptance
acceptance: drafts ## Count accepted draft tokens in every vocabulary, beside stock vLLM (a quarter of an hour)
	@$(SETUP) --with bench
	@$(VENV)/bin/python -m benchmarks.acceptance $(ACCEPTANCE_ARGS)

.PHONY: bench
bench: drafts ## Measure speed, and write docs/performance.md (eight minutes on two quiet cores; leave them alone)
	@$(SETUP) --with bench
	@$(VENV)/bin/python -m benchmarks.bench $(BENCH_ARGS)
