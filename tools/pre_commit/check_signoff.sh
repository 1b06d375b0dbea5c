#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
# Refuses a commit without a sign-off. Only a person can certify the developer
# certificate of origin, so nothing adds it here.
set -euo pipefail
grep -qs '^Signed-off-by: ' "$1" && exit 0
echo "The commit is not signed off; use 'git commit -s' if you certify the DCO." >&2
exit 1
