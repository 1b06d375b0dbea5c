# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What the servers are asked."""

QUESTION = "What is the capital of France? Answer in one sentence."
STORY = "Write the first line of a story about a dragon."
QUESTIONS = [
    QUESTION,
    STORY,
    "Repeat this three times: the quick brown fox jumps over the lazy dog.",
    "Name three primary colours.",
    "Write one sentence about the sea.",
    "How many days are there in a week?",
    "Explain in one sentence why the sky is blue.",
    "Give me a rhyme for the word cat.",
    "What do bees make?",
    "Say hello in Spanish.",
    "What is the opposite of hot?",
    "List two kinds of fruit.",
    "What is water made of?",
    "Who wrote Romeo and Juliet?",
    "Count from one to ten.",
    "What should I wear when it rains?",
]
# A question as people ask it, for an answer long enough to judge a draft by.
REAL_QUESTION = "How do plants make their food? Please explain it step by step."
