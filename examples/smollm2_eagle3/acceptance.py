# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Asks a running server sixteen questions and says how many draft tokens it accepted.

The counts come from the server's own metrics, so nobody else should use it meanwhile.

    python examples/smollm2_eagle3/acceptance.py --port 8000
"""

import argparse
import re
import sys
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from openai import OpenAI

QUESTIONS = (
    "Explain how rainbows form.",
    "Write a short poem about the sea.",
    "List five tips for better sleep.",
    "What is the capital of France, and what is it known for?",
    "Describe how bread is made.",
    "Write a Python function that adds two numbers.",
    "Why is the sky blue?",
    "Give me a recipe for pancakes.",
    "Tell me a story about a dragon and a knight.",
    "What are the benefits of exercise?",
    "How do vaccines work?",
    "Compare cats and dogs as pets.",
    "Summarise the water cycle.",
    "Write an email asking for a day off.",
    "What is 17 plus 25? Explain each step.",
    "Explain gravity to a child.",
)
ANSWER_TOKENS = 128
COUNTER = re.compile(r"^vllm:spec_decode_num_(\w+)_total\{(.*)\} (\S+)$", re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=8000)
    url = f"http://127.0.0.1:{parser.parse_args().port}"
    before = read_counters(url)
    tokens = ask_all(url)
    found = read_counters(url)
    found.subtract(before)
    print(f"questions              {len(QUESTIONS)}")
    print(f"answer tokens          {tokens}")
    if not found["drafts"]:
        print("The server drafts nothing.", file=sys.stderr)
        return 1
    drafts, accepted = found["drafts"], found["accepted_tokens"]
    positions = [str(found[name]) for name in sorted(found) if name.isdecimal()]
    print(f"drafts                 {drafts}")
    print(f"draft tokens           {found['draft_tokens']}")
    print(f"accepted               {accepted}")
    print(f"accepted per position  {', '.join(positions)}")
    print(f"acceptance length      {1 + accepted / drafts:.2f}")
    return 0


def read_counters(url: str) -> Counter[str]:
    """Returns the counts of speculation; those of a position under its number."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as response:
        text = response.read().decode()
    counters: Counter[str] = Counter()
    for name, labels, value in COUNTER.findall(text):
        position = re.search(r'position="(\d+)"', labels)
        counters[position[1] if position else name] += int(float(value))
    return counters


def ask_all(url: str) -> int:
    """Asks all questions at once; returns the number of tokens in the answers."""
    client = OpenAI(base_url=f"{url}/v1", api_key="none")
    model = client.models.list().data[0].id

    def ask(question: str) -> int:
        answer = client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": question}],
            temperature=0,
            max_tokens=ANSWER_TOKENS,
        )
        return answer.usage.completion_tokens if answer.usage else 0

    with ThreadPoolExecutor(len(QUESTIONS)) as users:
        return sum(users.map(ask, QUESTIONS))


if __name__ == "__main__":
    sys.exit(main())
