# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What a vLLM server says about its speculation, read from its `/metrics`."""

import urllib.request
from collections import Counter
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

METRICS_LIMIT_S = 30


@dataclass(frozen=True)
class Speculation:
    """Counters of a server, or of a part of its life.

    Attributes:
        drafts: steps of the target that verified what the draft proposed.
        draft_tokens: tokens proposed.
        accepted_tokens: those that the target would have chosen itself.
    """

    drafts: int
    draft_tokens: int
    accepted_tokens: int

    @classmethod
    def of_server(cls, url: str) -> "Speculation":
        """Asks the server at `url`, such as `http://127.0.0.1:8000`.

        Raises:
            OSError: no server answers, or not with its metrics.
        """
        metrics = urllib.request.urlopen(f"{url}/metrics", timeout=METRICS_LIMIT_S)
        with metrics as response:
            return cls.in_metrics(response.read().decode())

    @classmethod
    def in_metrics(cls, text: str) -> "Speculation":
        """Reads what `/metrics` returned; several engines are added up."""
        counters: Counter[str] = Counter()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name.startswith("vllm:spec_decode_num_"):
                    counters[sample.name] += int(sample.value)
        return cls(
            drafts=counters["vllm:spec_decode_num_drafts_total"],
            draft_tokens=counters["vllm:spec_decode_num_draft_tokens_total"],
            accepted_tokens=counters["vllm:spec_decode_num_accepted_tokens_total"],
        )

    def __sub__(self, earlier: "Speculation") -> "Speculation":
        return Speculation(
            self.drafts - earlier.drafts,
            self.draft_tokens - earlier.draft_tokens,
            self.accepted_tokens - earlier.accepted_tokens,
        )

    def __str__(self) -> str:
        if not self.drafts:
            return "nothing was drafted"
        length = 1 + self.accepted_tokens / self.drafts
        return (
            f"{self.accepted_tokens} of {self.draft_tokens} drafted tokens accepted, "
            f"mean acceptance length {length:.2f}"
        )
