# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Commit messages in the form of vLLM's pull requests.

Tags, purpose, test plan, test result. The sign-off is the submitter's: `git am
--signoff` puts it below.
"""

from vllm_eagle3.export.sources import TESTS

RESTORED = f"""\
[Spec Decode][Bugfix] Load full-vocabulary EAGLE-3 drafts that carry d2t

Purpose

Since #53458 a draft whose vocabulary has the target's size has no parameter
draft_id_to_target_id, which saves the remap of its logits. Checkpoints of such
drafts may still hold d2t: all exports of SpecForge do, and it is zero there. Loading
one ends in "There is no module or parameter named 'draft_id_to_target_id'".

Skip a d2t of zeros where there is no map to fill, in all three EAGLE-3 models. One
that is not zero is refused as before.

Add regression tests: whether the map exists, for full, default and reduced
vocabularies at real sizes, against the target's vocabulary; and that checkpoints
with and without d2t load and propose the same ids. They build the models with their
real constructors and loaders on a CPU.

Test Plan

pytest {TESTS}

Test Result

With vLLM 0.32.0 and 0.33.0 on a CPU: all pass; without the change to the models, the
full-vocabulary checkpoints with d2t fail to load.
"""

CONTRACT = f"""\
[Spec Decode] One module for the draft vocabulary of EAGLE-3 drafts

Purpose

Which target id a draft id stands for is decided in three copies today, and nothing is
checked: an offset that leads outside the target's vocabulary passes start-up and
ends the engine at the first request, and a reduced vocabulary without d2t is served as
the first ids, of which the target accepts next to none.

Add draft_vocabulary.py and the three modules it imports: the sizes, reading and
checking d2t and t2d, and the two operations on logits, widening to the target's
vocabulary and the argmax in target ids. Torch only; nothing uses them yet. Refusals are
ValueErrors that name the tensor, what was found, what is allowed and what to do.

Test Plan

pytest {TESTS}/test_draft_vocabulary.py

Test Result

With vLLM 0.32.0 and 0.33.0 on a CPU: all pass.
"""

FAMILIES = f"""\
[Spec Decode][Refactor] EAGLE-3 models of Llama, Qwen3 and DeepSeek on one trunk

Purpose

llama_eagle3.py, qwen3_eagle3.py and deepseek_eagle3.py hold the same model three
times, and fixes reach one of them and not the others. Keep in each what is different,
the decoder layer, and put the rest into eagle3*.py: config keys, checkpoint names,
loading, quantisation, trunk and head.

With it, for all three families:
- d2t and t2d are checked at load by draft_vocabulary.py, also in later weight updates;
- every tensor of a checkpoint has its parameter and every parameter its tensor, or
  loading is refused; load_weights returns the names, so that vLLM's own check of
  uninitialised weights works;
- logits are as wide as the target's vocabulary in every case;
- get_top_tokens takes the argmax over the draft's own vocabulary and maps the winner.

Class names, architectures and draft_id_to_target_id stay as they are. The test that
replaced the parts of one old file by mocks, to see that its head gets the quantisation
config, makes way for one that loads quantised heads in all three families.

Test Plan

pytest {TESTS}

Test Result

With vLLM 0.32.0 on a CPU: all pass. With 0.33.0: those of the first two patches.
"""
