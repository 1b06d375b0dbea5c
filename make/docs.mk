# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
#
# The site in docs/. Its environment has no vLLM in it; see requirements/docs.txt.

#: DOCS_VENV  folder of the site's environment (default: .venv-docs)
DOCS_VENV ?= .venv-docs

MKDOCS = NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs

$(DOCS_VENV)/made: requirements/docs.txt requirements/lock/docs.txt
	$(PYTHON) -m venv --clear $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet -r requirements/docs.txt
	@touch $@

.PHONY: docs
docs: $(DOCS_VENV)/made ## Build the site in site/; a warning is an error
	$(MKDOCS) build --strict

.PHONY: docs-serve
docs-serve: $(DOCS_VENV)/made ## Show the site on port 8080, and again after each change
	$(MKDOCS) serve --dev-addr localhost:8080

.PHONY: docs-publish
docs-publish: docs ## Push the site to the branch gh-pages
	$(MKDOCS) gh-deploy --strict --force
