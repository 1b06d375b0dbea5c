# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A model hub on this machine: as much of HTTP as huggingface_hub asks for."""

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "c0ffee" + "0" * 34
_API = re.compile(r"/api/models/(.+?)(?:/(revision|tree)/([^/?]+))?(?:\?.*)?")
_FILE = re.compile(r"/(.+?)/resolve/([^/]+)/([^?]+)(?:\?.*)?")


@dataclass
class FakeHub:
    """Serves folders as repositories, and remembers what was asked.

    Attributes:
        repositories: folder by `owner/name`.
        gated: names that answer 403 to everybody.
        served: bytes of each file that went over the wire.
        asked: revisions, of listings (`None` where none was named) and of files.
    """

    repositories: dict[str, Path] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    served: dict[str, int] = field(default_factory=dict)
    asked: set[tuple[str, str | None]] = field(default_factory=set)
    url: str = ""

    @contextlib.contextmanager
    def running(self) -> Iterator["FakeHub"]:
        hub = self

        class Handler(_Handler):
            fake = hub

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()


class _Handler(BaseHTTPRequestHandler):
    fake: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        if match := _API.fullmatch(self.path):
            self._api(*match.groups())
        elif match := _FILE.fullmatch(self.path):
            self._file(*match.groups())
        else:
            self._refuse(404, "EntryNotFound")

    def _folder(self, name: str, revision: str | None) -> Path | None:
        if name in self.fake.gated:
            self._refuse(403, "GatedRepo")
        elif name not in self.fake.repositories:
            self._refuse(401, "RepoNotFound")
        elif revision not in (None, "main", "v1", COMMIT):
            self._refuse(404, "RevisionNotFound")
        else:
            return self.fake.repositories[name]
        return None

    def _api(self, name: str, kind: str | None, revision: str | None) -> None:
        folder = self._folder(name, revision)
        if folder is None:
            return
        self.fake.asked.add(("listing", revision))
        files = sorted(path for path in folder.iterdir() if path.is_file())
        if kind == "tree":
            tree = [
                {
                    "type": "file",
                    "path": path.name,
                    "oid": _etag(path),
                    "size": path.stat().st_size,
                }
                for path in files
            ]
            self._send(200, json.dumps(tree).encode())
            return
        info = {
            "id": name,
            "modelId": name,
            "sha": COMMIT,
            "private": False,
            "gated": False,
            "tags": [],
            "downloads": 0,
            "likes": 0,
            "siblings": [{"rfilename": path.name} for path in files],
        }
        self._send(200, json.dumps(info).encode())

    def _file(self, name: str, revision: str, file: str) -> None:
        folder = self._folder(name, revision)
        if folder is None:
            return
        self.fake.asked.add(("file", revision))
        path = folder / file
        if not path.is_file():
            self._refuse(404, "EntryNotFound")
            return
        size = path.stat().st_size
        headers = {"ETag": f'"{_etag(path)}"', "X-Repo-Commit": COMMIT}
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        with path.open("rb") as opened:
            if asked is None:
                self._send(
                    200, opened.read() if self.command == "GET" else b"", headers, size
                )
                return
            begin, end = int(asked[1]), min(int(asked[2]) + 1, size)
            opened.seek(begin)
            content = opened.read(end - begin)
        headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
        self.fake.served[file] = self.fake.served.get(file, 0) + len(content)
        self._send(206, content, headers)

    def _refuse(self, status: int, code: str) -> None:
        self._send(status, b"{}", {"X-Error-Code": code, "X-Error-Message": code})

    def _send(
        self,
        status: int,
        content: bytes,
        headers: dict[str, str] | None = None,
        length: int | None = None,
    ) -> None:
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        size = len(content) if length is None else length
        self.send_header("Content-Length", str(size))
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


def _etag(path: Path) -> str:
    return hashlib.sha1(f"{path.name}{path.stat().st_size}".encode()).hexdigest()
