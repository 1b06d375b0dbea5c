# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What MkDocs does beside its own: documents of the root, and links out of docs/.

A page may take in a document from the repository's root by a line `{{ NAME.md }}`, or
one section of it by `{{ NAME.md: Heading }}`.

Links to files outside docs/ work in a checkout. In the site they lead to the repository
if it is known where it is published, and are plain text if not.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent.parent
INCLUDE = re.compile(r"^\{\{ ([\w.-]+\.md)(?:: ([^}]+))? \}\}$", re.MULTILINE)
# A link of Markdown, not an image: [text](target), without a scheme or a mere anchor.
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)")
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
DOCS = "docs"


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Called by MkDocs for each page before it is rendered."""
    source = posixpath.join(DOCS, page.file.src_uri)
    text = rendered(markdown, source, config.repo_url or "")
    if "\n## " not in text and "\n::: " not in text:
        # Room for wide tables; there is nothing to list beside them.
        page.meta["hide"] = ["toc"]
    return text


def rendered(markdown: str, source: str, repository_url: str) -> str:
    """Returns a page's text with documents taken in and links that work in the site.

    Args:
        markdown: The page as it stands in docs/.
        source: Its path from the repository's root.
        repository_url: Where the repository is published, or nothing.

    Raises:
        FileNotFoundError: A link leads to a file that does not exist.
        ValueError: A document has no such section.
    """

    def taken_in(found: re.Match[str]) -> str:
        name, heading = found.groups()
        text = (REPOSITORY / name).read_text(encoding="utf-8")
        if heading:
            text = section(text, heading)
        return _with_links(text, name, source, repository_url)

    with_links = _with_links(markdown, source, source, repository_url)
    return INCLUDE.sub(taken_in, with_links)


def section(text: str, heading: str) -> str:
    """Returns what stands under a heading of the second level, without the heading.

    Raises:
        ValueError: There is no such heading.
    """
    _, found, rest = text.partition(f"\n## {heading}\n")
    if not found:
        raise ValueError(f"there is no section called {heading!r}")
    return rest.partition("\n## ")[0].strip()


def _with_links(text: str, written_in: str, page: str, repository_url: str) -> str:
    """Rewrites the links of a text that stands in one file and is shown on a page."""

    def in_site(found: re.Match[str]) -> str:
        label, target = found.groups()
        path, hash_sign, anchor = target.partition("#")
        place = posixpath.normpath(posixpath.join(posixpath.dirname(written_in), path))
        if not (REPOSITORY / place).exists():
            raise FileNotFoundError(f"{written_in} links to {path}, which is no file")
        if place.startswith(f"{DOCS}/"):
            new = posixpath.relpath(place, posixpath.dirname(page))
            return f"[{label}]({new}{hash_sign}{anchor})"
        if repository_url:
            return f"[{label}]({repository_url}/blob/main/{place}{hash_sign}{anchor})"
        return label

    # Every other part is a block of code, in which nothing is a link.
    parts = FENCED.split(text)
    parts[::2] = [LINK.sub(in_site, part) for part in parts[::2]]
    return "".join(parts)
