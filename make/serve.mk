# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
#
# Serving. What `make serve` runs in the end is a plain `vllm serve`, and it prints the
# command.

# TARGET, DRAFT and DTYPE are set here, and not with ?=, so that a variable of such a
# common name in the user's shell has no say: only the command line has.
#: TARGET    model to serve, a folder or a Hub id (default: SmolLM2-135M-Instruct, built here)
TARGET =
#: DRAFT     its EAGLE-3 draft, a folder or a Hub id (default: the example's, built here)
DRAFT =
#: PORT      port of the server (default: 8000)
PORT ?= 8000
#: SPEC_TOKENS  tokens that the draft proposes at a time, 0 for none (default: 3)
SPEC_TOKENS ?= 3
#: DTYPE     as in vllm serve --dtype (default: float32 on a CPU, else vLLM's choice)
DTYPE =
#: SERVE_ARGS  further arguments for vllm serve; they win over those chosen here
SERVE_ARGS ?=

EXAMPLE = examples/smollm2_eagle3

.PHONY: models
models: venv ## Build the example's target and draft (resumes; does nothing when done)
	@$(VENV)/bin/python $(EXAMPLE)/build_target.py
	@$(VENV)/bin/python $(EXAMPLE)/build_draft.py

.PHONY: serve
serve: $(if $(TARGET)$(DRAFT),venv,models) ## Set up, and serve a target with its EAGLE-3 draft
	@exec $(VENV)/bin/python $(EXAMPLE)/serve.py --backend $(BACKEND) --port $(PORT) \
		--spec-tokens $(SPEC_TOKENS) $(if $(DTYPE),--dtype $(DTYPE)) \
		$(if $(TARGET),--target '$(TARGET)') $(if $(DRAFT),--draft '$(DRAFT)') \
		-- $(SERVE_ARGS)
