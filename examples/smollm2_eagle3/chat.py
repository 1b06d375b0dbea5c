# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A chat in the terminal, with what the draft was good for after each answer.

The numbers come from the server's own metrics, before and after the answer, so they
include what anybody else asked meanwhile. Ctrl-C ends an answer, Ctrl-D the chat.

    python examples/smollm2_eagle3/chat.py --port 8000
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import closing, suppress

import openai
from openai import OpenAI
from rich.console import Console
from speculation import Speculation

with suppress(ImportError):
    import readline  # noqa: F401, teaches input() the arrow keys


class Conversation:
    """What was said so far, and the server that answers.

    Args:
        url: of the server, such as `http://127.0.0.1:8000`.
        temperature: 0 takes the best token each time.

    Raises:
        openai.OpenAIError: no vLLM server answers there.
    """

    def __init__(self, url: str, temperature: float) -> None:
        self._url = url
        self._temperature = temperature
        self._client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        self.model = self._client.models.list().data[0].id
        self._messages: list[dict[str, str]] = []
        self.speculation = Speculation(0, 0, 0)

    def answer(self, question: str) -> Iterator[str]:
        """Yields the answer in pieces; `speculation` is its own when it is complete.

        A question that the server refuses is forgotten. A caller that stops early
        ends the answer, and what it has got so far is kept.
        """
        before = Speculation.of_server(self._url)
        asked = [*self._messages, {"role": "user", "content": question}]
        stream = self._client.chat.completions.create(
            model=self.model,
            messages=asked,  # type: ignore[arg-type]
            temperature=self._temperature,
            stream=True,
        )
        pieces: list[str] = []
        try:
            with stream:
                for chunk in stream:
                    pieces.append(chunk.choices[0].delta.content or "")
                    yield pieces[-1]
        finally:
            said = {"role": "assistant", "content": "".join(pieces)}
            self._messages = [*asked, said]
        self.speculation = Speculation.of_server(self._url) - before


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--temperature", type=float, default=0.0, help="default: 0")
    options = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True)
    url = f"http://127.0.0.1:{options.port}"
    try:
        conversation = Conversation(url, options.temperature)
    except openai.APIConnectionError:
        return refuse(
            f"no server listens on port {options.port}; start one with `make serve` "
            "in another terminal, or name its port: make chat PORT=..."
        )
    except (openai.OpenAIError, ValueError, AttributeError):
        return refuse(f"what listens on port {options.port} is no vLLM server")
    console.print(f"[dim]Chatting with {conversation.model}; Ctrl-D ends it.[/]")
    while (question := ask(console)) is not None:
        try:
            if question:
                show(console, conversation, question)
        except (openai.APIConnectionError, OSError):
            return refuse("the server has gone")
    return 0


def refuse(reason: str) -> int:
    """Returns the exit code, after one line."""
    print(f"chat: {reason}", file=sys.stderr)
    return 2


def ask(console: Console) -> str | None:
    """Returns the next question; None at the end of the input."""
    try:
        # Not rich's own input, which hides the prompt's width from readline.
        question = input("\nyou> ").strip()
    except (EOFError, KeyboardInterrupt):
        console.print()
        return None
    if not sys.stdin.isatty():
        console.out(question, highlight=False)
    return question


def show(console: Console, conversation: Conversation, question: str) -> None:
    """Prints the answer as it comes, and then how drafting went."""
    console.out(f"{conversation.model}> ", end="", highlight=False)
    try:
        with closing(conversation.answer(question)) as pieces:
            for piece in pieces:
                console.out(piece, end="", highlight=False)
    except KeyboardInterrupt:
        console.print("[dim] (stopped)[/]")
    except openai.APIStatusError as error:
        console.print(f"[dim](refused: {error.message})[/]")
    else:
        console.print(f"\n[dim]\\[{conversation.speculation}][/]")


if __name__ == "__main__":
    sys.exit(main())
