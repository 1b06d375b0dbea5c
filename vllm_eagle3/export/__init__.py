# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""``vllm-eagle3 export-patch``: the fork as patches that vLLM's maintainers can take.

``edits`` changes files of a vLLM by names that occur in them, ``sources`` brings the
fork's own files to upstream's paths and form, ``series`` puts both into commits,
``mail`` writes these as mails with git. No text of vLLM is kept here: each patch is
computed from the copy that the user names.
"""
