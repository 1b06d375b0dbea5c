# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Does what the curl commands of the documentation do, without curl and on any port."""

import re
import shlex
import urllib.request

from tests.docs import shown

from .server import Server


def output_of(server: Server, beginning: str) -> list[str]:
    """Runs the one shown command that begins so, and returns what it prints.

    It must be `curl` with a URL, headers and data, into `grep` with one option and one
    pattern.
    """
    (command,) = (text for text in shown.commands() if text.startswith(beginning))
    words = shlex.split(command)
    curl, grep = words[: words.index("|")], words[words.index("|") + 1 :]
    url = next(word for word in curl if word.startswith("http://localhost:8000/"))
    data = _option(curl, "-d")
    request = urllib.request.Request(
        url.replace("http://localhost:8000", server.url),
        data=data[0].encode() if data else None,
        headers=dict(header.split(": ", 1) for header in _option(curl, "-H")),
    )
    with urllib.request.urlopen(request, timeout=300) as response:
        text = response.read().decode()
    program, option, pattern = grep
    assert program == "grep"
    if option == "-o":
        return [found[0] for found in re.finditer(pattern, text)]
    return [line for line in text.splitlines() if re.search(pattern, line)]


def _option(words: list[str], name: str) -> list[str]:
    return [
        value for word, value in zip(words, words[1:], strict=False) if word == name
    ]
