# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
#
# Serving. What `make serve` runs in the end is a plain `vllm serve`, and it prints the
# command.

# TARGET, DRAFT, VOCAB, DTYPE and TEMPERATURE are set here, and not with ?=, so that a
# variable of such a common name in the user's shell has no say: only the command line
# has.
#: TARGET    model to serve, a folder or a Hub id (default: SmolLM2-135M-Instruct, built here)
TARGET =
#: DRAFT     its EAGLE-3 draft, a folder or a Hub id (default: the example's, built here)
DRAFT =
#: VOCAB     vocabulary of the example's draft: full, default, reduced, full-d2t (default: full)
VOCAB =
#: PORT      port of the server (default: 8000)
PORT ?= 8000
#: SPEC_TOKENS  tokens that the draft proposes at a time, 0 for none (default: 3)
SPEC_TOKENS ?= 3
#: DTYPE     as in vllm serve --dtype (default: float32 on a CPU, else vLLM's choice)
DTYPE =
#: SERVE_ARGS  further arguments for vllm serve; they win over those chosen here
SERVE_ARGS ?=
#: TEMPERATURE  of the chat's answers; 0 takes the best token each time (default: 0)
TEMPERATURE = 0

EXAMPLE = examples/smollm2_eagle3
VOCABULARIES = full default reduced full-d2t

# Before minutes of set-up, rather than after them.
ifneq ($(filter-out $(VOCABULARIES),$(VOCAB))$(word 2,$(VOCAB)),)
$(error VOCAB=$(VOCAB) is no vocabulary of the example's draft; choose one of: $(VOCABULARIES))
endif

# The word, if it can only be a path and no model is there; serve.py looks at the rest.
no_model = $(if $(filter / ./% ../% /%,$(1)),$(if $(wildcard $(1)/config.json),,$(1)))
ifneq ($(call no_model,$(TARGET)),)
$(error TARGET=$(TARGET) is no folder with a config.json)
endif
ifneq ($(call no_model,$(DRAFT)),)
$(error DRAFT=$(DRAFT) is no folder with a config.json)
endif
ifneq ($(if $(TARGET),1),$(if $(DRAFT),1))
$(error name both, the target and its draft, or neither: make serve TARGET=... DRAFT=...)
endif

.PHONY: models
models: venv ## Build the example's target and draft (resumes; does nothing when done)
	@$(VENV)/bin/python $(EXAMPLE)/build_target.py
	@$(VENV)/bin/python $(EXAMPLE)/build_draft.py $(addprefix --vocab ,$(VOCAB))

.PHONY: drafts
drafts: models ## Build the example's draft in all vocabularies
	@$(VENV)/bin/python $(EXAMPLE)/build_draft.py --all

.PHONY: serve
serve: $(if $(TARGET)$(DRAFT),venv,models) ## Set up, and serve a target with its EAGLE-3 draft
	@exec $(VENV)/bin/python $(EXAMPLE)/serve.py --backend $(BACKEND) --port $(PORT) \
		--spec-tokens $(SPEC_TOKENS) $(addprefix --dtype ,$(DTYPE)) \
		$(if $(TARGET),--target '$(TARGET)') $(if $(DRAFT),--draft '$(DRAFT)') \
		$(addprefix --vocab ,$(VOCAB)) -- $(SERVE_ARGS)

# No set-up: where there is no environment, there is no server of it either, and a
# `make serve` in another terminal may be setting it up right now.
.PHONY: chat
chat: ## Talk to the server, and see what its draft was good for
	@test -x $(VENV)/bin/python || { echo "chat: there is no environment in $(VENV);" \
		"start a server with \`make serve\` in another terminal" >&2; exit 2; }
	@exec $(VENV)/bin/python $(EXAMPLE)/chat.py --port $(PORT) \
		--temperature $(TEMPERATURE)
