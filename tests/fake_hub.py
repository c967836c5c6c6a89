"""A Hugging Face Hub on this machine: it announces, sends the reader to its CDN, and can err."""

import hashlib
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import huggingface_hub.constants

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def running_hub(monkeypatch, content):
    """A Hub that offers `content` under every name, and a client that never pauses.

    It reads a thousand bytes at a time, so that a connection can break between them.
    """
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(huggingface_hub.constants, "DOWNLOAD_CHUNK_SIZE", 1000)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_TELEMETRY", True)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    huggingface_hub.close_session()  # the next one reads the environment
    hub = Hub()
    hub.content = content
    # What HF_ENDPOINT decides when the client is imported.
    template = f"{hub.endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", hub.endpoint)
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    yield hub
    huggingface_hub.close_session()
    hub.close()


class Hub:
    """A running server. `faults` are used up, one for each request for the content itself."""

    def __init__(self):
        self.content = b""
        self.announced = {}  # overrides of the headers of the announcement; None leaves one out
        self.status = 302  # of the announcement
        self.faults = []
        self.requests = []  # (method, path, Range header)
        # The CDN is another host for the client, as it is in the real world.
        self.servers = [ThreadingHTTPServer(("127.0.0.1", 0), self.handler()) for _ in range(2)]
        for server in self.servers:
            server.handle_error = lambda *_: None  # a client that hangs up is no news here
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        self.endpoint, self.cdn = (f"http://127.0.0.1:{s.server_port}" for s in self.servers)

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def ranges(self):
        """The Range header of every request for the content."""
        return [asked for method, path, asked in self.requests if path.startswith("/cdn/")]

    def handler(hub):  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def reply(self, status, headers):
                self.send_response(status)
                for name, value in headers.items():
                    if value is not None:
                        self.send_header(name, str(value))
                self.end_headers()

            def announce(self):
                hub.requests.append((self.command, self.path, self.headers.get("Range")))
                headers = {
                    "X-Repo-Commit": COMMIT,
                    "X-Linked-Size": len(hub.content),
                    "X-Linked-Etag": f'"{hashlib.sha256(hub.content).hexdigest()}"',
                    "Location": f"{hub.cdn}/cdn/{self.path.rsplit('/', 1)[-1]}",
                }
                self.reply(hub.status, headers | hub.announced)

            do_HEAD = announce  # noqa: N815

            def do_GET(self):
                if "/resolve/" in self.path:
                    return self.announce()
                hub.requests.append((self.command, self.path, self.headers.get("Range")))
                fault = hub.faults.pop(0) if hub.faults else {}
                content = fault.get("content", hub.content)
                asked = self.headers.get("Range") if fault.get("range", True) else None
                start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
                headers = {"Content-Length": len(content) - start}
                if asked:
                    headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
                status = fault.get("status", 206 if asked else 200)
                self.reply(status, headers)
                self.wfile.write(content[start : fault.get("until")])

        return Handler
