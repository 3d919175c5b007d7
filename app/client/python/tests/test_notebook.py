"""Output in notebooks, and requirements on the package."""

from __future__ import annotations

import ast
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import PATIENCE, Service, record

import molrun
from molrun import _html
from molrun._figures import measured

PACKAGE = pathlib.Path(molrun.__file__).parent


def test_job_shows_its_state_figures_plots_and_structure(lab: molrun.Client) -> None:
    job = lab.submit("cg-idp", sequences=["DSHAKRHHGY"], steps=50_000).wait(PATIENCE)
    shown = job._repr_html_()
    assert "✔ completed" in shown and "Radius of gyration" in shown
    assert re.search(r">\d\.\d+ ± 0\.\d+ nm<", shown) and "Standard error of Rg" not in shown
    assert shown.count("<svg") >= 2 and "<polyline" in shown and "time_ps" in shown
    assert "data:image/" in shown and "<script" not in shown
    assert shown.count('aria-label="') == shown.count("<svg") == shown.count('fill="currentColor"') and shown.count(' alt="') == shown.count("<img")


def test_values_have_the_digits_of_their_errors() -> None:
    cases = json.loads((pathlib.Path(__file__).with_name("figures.json")).read_text(encoding="utf-8"))
    for c in cases:
        assert measured(c["value"], c.get("error"), c.get("digits")) == c["text"]


def test_untrusted_text_is_escaped(lab: molrun.Client) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    job = lab.submit("shell", script=f"echo '{evil}'; exit 1")
    job.wait(PATIENCE, check=False)
    shown = job._repr_html_()
    assert "✘ failed" in shown and "&lt;script&gt;" in shown and "<script" not in shown and "<img" not in shown
    for r in (
        record(status="RUNNING", progress={"fraction": 0.5, "text": evil}),
        record(queue={"position": 1, "of": 2}, statusReason=evil),
        record(status="RUNNING", subjobCounts={evil: 1}),
        record(status=evil, type=evil, version=evil),
    ):
        shown = molrun.Job(lab, r)._repr_html_()
        assert "<script" not in shown and "<img" not in shown and "&lt;script" in shown
    table = molrun.Table([evil], [[evil], [1.5], [None]], {evil: evil})
    assert "<script" not in table._repr_html_() and "1.5" in table._repr_html_() and "1.5" in repr(table)
    series = molrun.Series({"name": "s", "file": "f", "rows": 2, "columns": [{"name": evil}, {"name": evil, "unit": evil}], "values": [[0, 1], [1, 2]]})
    assert "<script" not in _html.plot(series) and "<path" in _html.plot(series)


def test_plots_leave_gaps_and_need_numbers() -> None:
    def series(*values: object) -> molrun.Series:
        return molrun.Series({"name": "s", "file": "f", "rows": 3, "columns": [{"name": "x"}, {"name": "y"}], "values": [[0, 1, 2], list(values)]})

    assert _html.plot(series(1, None, 2)).count("M") == 3  # the axes and two pieces
    assert _html.plot(series(1, 1, 1)) and _html.plot(series(None, None, None)) == ""
    assert _html.backbone("ATOM      1  CA  ALA A   1      xx.000   2.000   3.000") == ""


def test_notebook_is_executed_with_its_pictures(service: Service, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("nbconvert")
    cells = [
        "import molrun\nlab = molrun.Client()",
        'job = lab.submit("cg-idp", sequences=["DSHAKRHHGYKRKFHEKHHSHRGY"], steps=100_000).wait()\njob',
        'job.series("rg")',
        'lab.batch("cg-idp", each={"temperature_K": [280, 320]}, sequences=["DSHAKRHHGY"], steps=20_000).wait().table()',
    ]
    code = [{"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": [], "source": c} for c in cells]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = tmp_path / "first.ipynb"
    notebook.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": kernel, "cells": code}))
    environment = {
        **os.environ, "MOLRUN_SERVER": service.base, "MOLRUN_KEY": service.key, "PYTHONPATH": str(PACKAGE.parent),
        "HOME": str(tmp_path), "JUPYTER_PLATFORM_DIRS": "1",
    }
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output", "done.ipynb", str(notebook)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=5 * PATIENCE)
    assert ran.returncode == 0, ran.stderr
    done = json.loads((tmp_path / "done.ipynb").read_text())
    shown = ["".join(o["data"]["text/html"]) for c in done["cells"] for o in c["outputs"] if "text/html" in o.get("data", {})]
    assert len(shown) == 3
    assert shown[0].count("<svg") >= 2 and "<polyline" in shown[0] and "<path" in shown[1] and "<table" in shown[2]
    if keep := os.environ.get("MOLRUN_KEEP_NOTEBOOK"):
        shutil.copy(tmp_path / "done.ipynb", keep)


def test_package_needs_only_python_3_9_and_its_standard_library() -> None:
    optional = {"pandas"}
    for file in PACKAGE.glob("*.py"):
        tree = ast.parse(file.read_text(), feature_version=(3, 9))
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                assert name.split(".")[0] in set(getattr(sys, "stdlib_module_names")) | optional | {"__future__"}, f"{file.name} imports {name}"
