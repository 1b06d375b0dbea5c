#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
# Adds the committer's sign-off (developer certificate of origin) where it is missing.
set -euo pipefail
signoff="Signed-off-by: $(git config user.name) <$(git config user.email)>"
grep -qsF "$signoff" "$1" || git interpret-trailers --in-place --trailer "$signoff" "$1"
