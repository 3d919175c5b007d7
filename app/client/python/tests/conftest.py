"""A real service for the tests, run by the program in MOLRUN_BINARY."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time
from typing import Any, Dict, Iterator, List, Optional, Sequence

import pytest

import molrun

# How long tests wait for something expected soon, in seconds.
PATIENCE = 120.0

SHELL = """
format = 1
type = "shell"
version = "1"
title = "Run a script"
max_runtime = "1h"
command = ["sh", "-c", "{settings.script}"]

[[parameters]]
name = "script"
type = "string"
required = true

[[parameters]]
name = "data"
type = "string"
file = [".txt"]

[resources]
memory = "16MiB"
"""

SIZE = """
format = 1
type = "size"
version = "1"
title = "Show the size of a file"
max_runtime = "1h"
command = ["sh", "-c", 'printf "{{\\"bytes\\": %s}}" $(wc -c <"$0") >out/metrics.json', "{files.data}"]

[[parameters]]
name = "data"
type = "string"
file = [".txt"]
required = true

[[parameters]]
name = "unused"
type = "string"
file = [".txt"]

[resources]
memory = "16MiB"
"""


class Service:
    """A molrun service with its own data directory."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.gate = folder / "gate"
        self.gate.mkdir()
        algorithms = folder / "algorithms"
        algorithms.mkdir()
        (algorithms / "shell.toml").write_text(SHELL + f'\n[sandbox]\nread = ["{self.gate}"]\n')
        (algorithms / "size.toml").write_text(SIZE)
        self.config = folder / "config.toml"
        self.config.write_text(f'data = "{folder}/data"\nalgorithms = "{algorithms}"\nlisten = "127.0.0.1:0"\n')
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "MOLRUN_CONFIG": str(self.config)}
        self.process: Optional[subprocess.Popen[bytes]] = None
        self.base = ""
        self.start()
        self.key = self.run("key", "create", "--organization", "lab", "--email", "ann@lab.example").strip()

    def start(self) -> None:
        listen = ["--listen", self.base.split("//")[1]] if self.base else []
        log = self.folder / f"log.{time.monotonic_ns()}"
        with open(log, "wb") as f:
            self.process = subprocess.Popen([binary(), "serve", "--init", *listen], env=self.environment, stderr=f, cwd=self.folder)
        for _ in range(int(PATIENCE * 20)):
            for line in log.read_text().splitlines():
                if line.startswith("{"):
                    entry = json.loads(line)
                    if entry.get("message") == "started":
                        self.base = "http://" + entry["listen"]
                        return
            assert self.process.poll() is None, log.read_text()
            time.sleep(0.05)
        raise AssertionError("the service did not start: " + log.read_text())

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def run(self, *args: str) -> str:
        return subprocess.run([binary(), *args], env=self.environment, check=True, capture_output=True, text=True, cwd=self.folder).stdout

    def client(self, key: str = "", base: str = "") -> molrun.Client:
        return molrun.Client(base or self.base, key or self.key, timeout=PATIENCE)


def binary() -> str:
    return os.environ["MOLRUN_BINARY"]


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    s = Service(tmp_path_factory.mktemp("service"))
    yield s
    assert s.process is not None
    s.process.terminate()
    s.process.wait()


@pytest.fixture
def lab(service: Service) -> Iterator[molrun.Client]:
    with service.client() as c:
        yield c


@pytest.fixture
def fresh(tmp_path: pathlib.Path) -> Iterator[Service]:
    """A service that a test can kill."""
    s = Service(tmp_path)
    yield s
    s.kill()


@pytest.fixture(autouse=True)
def no_profile(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in ("MOLRUN_SERVER", "MOLRUN_KEY", "MOLRUN_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("home")))


class Proxy:
    """Forwards connections to a service. It breaks all connections each time the number of bytes
    sent reaches the next value of cut_at, and each connection after most bytes from the service."""

    def __init__(self, base: str, most: int = 1 << 60, cut_at: Sequence[int] = ()) -> None:
        host, port = base.split("//")[1].split(":")
        self.to, self.most = (host, int(port)), most
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.base = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.sent = self.cuts = 0
        self.cut_at = list(cut_at)
        self.open: List[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                ours, _ = self.listener.accept()
                theirs = socket.create_connection(self.to)
            except OSError:
                return
            self.open += [ours, theirs]
            threading.Thread(target=self._forward, args=(ours, theirs, 1 << 60, True), daemon=True).start()
            threading.Thread(target=self._forward, args=(theirs, ours, self.most, False), daemon=True).start()

    def _forward(self, source: socket.socket, to: socket.socket, most: int, counted: bool) -> None:
        try:
            while most > 0:
                data = source.recv(min(65536, most))
                if not data:
                    break
                to.sendall(data)
                most -= len(data)
                if counted:
                    self.sent += len(data)
                    if self.cut_at and self.sent >= self.cut_at[0]:
                        self.cut_at.pop(0)
                        self.cut()
            self.cuts += most <= 0
        except OSError:
            pass
        for s in (source, to):
            shut(s)

    def cut(self) -> None:
        self.cuts += 1
        for s in self.open:
            shut(s)
        self.open = []

    def close(self) -> None:
        self.listener.close()
        self.cut()


def shut(s: socket.socket) -> None:
    try:
        s.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    s.close()


def record(**members: Any) -> Dict[str, Any]:
    return {"jobName": "j", "type": "shell", "version": "1", "status": "QUEUED", **members}
