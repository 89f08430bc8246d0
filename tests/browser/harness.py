"""JupyterLab on a free loopback port, driven by headless Chromium. Everything it starts dies with it, by process group."""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

CHROMIUM = Path(os.environ.get("LABKIT_CHROMIUM", "/usr/bin/chromium"))
INSTALL = "Chromium is missing: apt-get install chromium (or name yours in LABKIT_CHROMIUM)"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
CURRENT = "window.jupyterapp.shell.currentWidget"
READY = f"() => window.jupyterapp?.shell?.currentWidget?.sessionContext?.isReady && {CURRENT}.sessionContext.session?.kernel?.connectionStatus === 'connected'"
IDLE = f"() => {CURRENT}.sessionContext.session?.kernel?.status === 'idle'"


@dataclass
class Lab:
    """An open JupyterLab. `console`, `failed`, `foreign`: errors, failed requests, requests to other hosts, so far."""

    page: Any
    url: str
    token: str
    console: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def watch(self) -> None:
        def said(message: Any) -> None:
            if message.type == "error":
                self.console.append(message.text)

        def asked(request: Any) -> None:
            if request.url.startswith(("http", "ws")) and not request.url.split("://", 1)[1].startswith(self.url.split("://", 1)[1]):
                self.foreign.append(request.url)

        def answered(response: Any) -> None:
            if response.status >= 400:
                self.failed.append(f"{response.status} {response.url.replace(self.token, '…')}")

        self.page.on("console", said)
        self.page.on("pageerror", lambda err: self.console.append(str(err)))
        self.page.on("request", asked)
        self.page.on("response", answered)
        self.page.on("requestfailed", lambda request: self.failed.append(f"{request.failure} {request.url.replace(self.token, '…')}"))

    def open(self, notebook: str) -> None:
        """Show a notebook of the root folder and wait for its kernel."""
        self.page.goto(f"{self.url}lab/tree/{notebook}?reset&token={self.token}")
        self.page.wait_for_function(READY, timeout=90_000)
        self.failed[:] = [f for f in self.failed if "ERR_ABORTED" not in f]  # a page that is left drops its polls
        self.page.wait_for_function(IDLE, timeout=90_000)

    def command(self, name: str, timeout_s: float = 120) -> None:
        """Run a JupyterLab command and wait until it is done."""
        self.page.evaluate(
            "name => { window.lkDone = false; jupyterapp.commands.execute(name).finally(() => { window.lkDone = true; }) }", name
        )
        self.page.wait_for_function("() => window.lkDone", timeout=timeout_s * 1000)

    def run_all(self, timeout_s: float = 120) -> list[str]:
        """Run all cells: the errors of their outputs."""
        self.command("notebook:run-all-cells", timeout_s)
        return self.page.evaluate(
            f"() => {CURRENT}.content.widgets.filter(c => c.model.type === 'code')"
            ".flatMap(c => c.model.outputs.toJSON()).filter(o => o.output_type === 'error').map(o => `${o.ename}: ${o.evalue}`)"
        )

    def run_cell(self, index: int) -> None:
        """Run one cell again, without waiting for what it starts."""
        self.page.evaluate(f"i => {{ {CURRENT}.content.activeCellIndex = i; }}", index)
        self.command("notebook:run-cell")

    def restart(self) -> None:
        """Restart the kernel, without the question that the menu asks."""
        self.page.evaluate(f"() => {CURRENT}.sessionContext.session.kernel.restart()")
        self.page.wait_for_function(IDLE, timeout=60_000)

    def sources(self) -> list[str]:
        """The text of every cell."""
        return self.page.evaluate(f"() => {CURRENT}.content.widgets.map(c => c.model.sharedModel.source)")

    def clean(self) -> None:
        """Assert that the page stayed silent, complete and at home."""
        assert self.console == []
        assert self.failed == []
        assert self.foreign == []


def write_notebook(path: Path, cells: list[str]) -> None:
    """A notebook of code cells."""
    made = [
        {"cell_type": "code", "id": f"c{i}", "metadata": {}, "source": s, "outputs": [], "execution_count": None}
        for i, s in enumerate(cells)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": made}), encoding="utf-8")


def _environment(tmp: Path, theme: str, extra: dict[str, str]) -> dict[str, str]:
    """Own config folders, so that neither the user's settings nor theirs are touched."""
    settings = tmp / "config" / "labconfig"
    settings.mkdir(parents=True)
    overrides = {
        "@jupyterlab/apputils-extension:themes": {"theme": theme},
        "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    }
    (settings / "default_setting_overrides.json").write_text(json.dumps(overrides), encoding="utf-8")
    folders = {"CONFIG_DIR": "config", "DATA_DIR": "data", "RUNTIME_DIR": "runtime"}
    return os.environ | {f"JUPYTER_{k}": str(tmp / v) for k, v in folders.items()} | {"IPYTHONDIR": str(tmp / "ipython")} | extra


def _address(server: subprocess.Popen[bytes], tmp: Path, token: str) -> str:
    """The server's own address, from the file that it writes once it listens."""
    info = tmp / "runtime" / f"jpserver-{server.pid}.json"
    for _ in range(300):
        if info.exists() and info.read_text(encoding="utf-8").endswith("}"):
            url = json.loads(info.read_text(encoding="utf-8"))["url"]
            with suppress(URLError), urlopen(f"{url}api?token={token}", timeout=10):  # the file comes a moment before the port
                return url
        if server.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError((tmp / "log").read_text(encoding="utf-8")[-2000:])


@contextmanager
def _server(root: Path, tmp: Path, theme: str, extra: dict[str, str]) -> Iterator[tuple[str, str]]:
    token = secrets.token_hex(16)
    options = ["--no-browser", "--ip=127.0.0.1", "--port=0", "--allow-root", "--expose-app-in-browser"]
    options += [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={root}"]
    command = [sys.executable, "-m", "jupyterlab", *options]
    with (tmp / "log").open("wb") as log:
        env = _environment(tmp, theme, extra)
        server = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
        try:
            yield _address(server, tmp, token), token
        finally:
            end_group(server)


def end_group(server: subprocess.Popen[bytes]) -> None:
    """End the server and its kernels: politely, then not."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(server.pid, sig)
        except ProcessLookupError:
            break
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            continue


@contextmanager
def jupyter(
    root: Path, tmp: Path, size: tuple[int, int] = (1280, 1100), theme: str = "JupyterLab Light", extra: dict[str, str] | None = None
) -> Iterator[Lab]:
    """JupyterLab over `root`, in a window of `size` pixels; `tmp` is an empty folder, `extra` more environment variables."""
    from playwright.sync_api import sync_playwright

    with _server(root, tmp, theme, extra or {}) as (url, token), sync_playwright() as play:
        browser = play.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        try:
            lab = Lab(browser.new_page(viewport={"width": size[0], "height": size[1]}), url, token)
            lab.watch()
            yield lab
        finally:
            browser.close()
