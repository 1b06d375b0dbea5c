# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The check and the server cannot disagree: both get the same generated checkpoints.

`VLLM_EAGLE3_EXAMPLES=5000 pytest tests/check/test_agreement.py` runs more of them.
"""

import contextlib
import io
import os
import tempfile
from pathlib import Path
from typing import Any

import pydantic
from hypothesis import HealthCheck, Phase, event, given, settings

from tests.check.conftest import check_folders, errors, warnings
from tests.check.generated import CHECKPOINTS, Generated
from tests.support.checkpoints import target_config, write_checkpoint
from tests.support.drafts import load_draft
from vllm_eagle3.check import runtime

EXAMPLES = int(os.environ.get("VLLM_EAGLE3_EXAMPLES", "60"))


def serve(draft: Path, **speculative: Any) -> tuple[str | None, list[str]]:
    """What a server's loading of the draft ends with, and what it warns of."""
    error = None
    bars = contextlib.redirect_stderr(io.StringIO())
    with runtime.captured_logs() as records, bars:
        try:
            logging = {"logging_config": runtime.logging_as_it_is()}
            load_draft(draft, engine=logging, **speculative)
        except pydantic.ValidationError as refusal:
            # vLLM's configs wrap a sentence into a preamble and a type.
            error = str(refusal).splitlines()[1].strip()
            error = error.removeprefix("Value error, ").rpartition(" [type=")[0]
        except ValueError as refusal:
            error = str(refusal)
    warned = [
        record.getMessage()
        for record in records
        if record.levelname == "WARNING" and runtime.is_ours(record)
    ]
    return error, warned


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="VLLM_EAGLE3_EXAMPLES" not in os.environ,
    # A failure is small as it comes; shrinking would load hundreds of drafts more.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(CHECKPOINTS)
def test_the_check_says_what_the_server_says(checkpoint: Generated):
    with tempfile.TemporaryDirectory() as scratch:
        draft = checkpoint.write(Path(scratch) / "draft")
        target = write_checkpoint(Path(scratch) / "target", target_config(), {})
        report = check_folders(draft, target)
        parallel = "parallel_drafting" in report.speculative_config
        refused, warned = serve(draft, parallel_drafting=parallel)
    event("refused" if refused else "served")
    assert (report.verdict == "refused") == (refused is not None)
    if refused is not None:
        assert errors(report)[0] == refused
    else:
        assert warnings(report) == warned
