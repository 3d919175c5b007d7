"""The steps of a user, from submissions to tables."""

from __future__ import annotations

import os
import pathlib
import re
import sys
import urllib.request
from typing import Any, Dict

import pytest
from conftest import PATIENCE, Service

import molrun


def test_job_is_followed_to_its_result(lab: molrun.Client, tmp_path: pathlib.Path) -> None:
    job = lab.submit("cg-idp", sequences=["DSHAKRHHGY"], steps=50_000, name="flow")
    events = list(job.follow())
    assert [e.kind for e in events][-1] == "end" and job.status == "COMPLETED"
    assert "Rg" in "\n".join(str(e) for e in events if e.kind == "log")
    assert 0.5 < job.figures["rg_nm"] < 1.5
    written = job.result().download(tmp_path / "out")
    assert tmp_path / "out" / "seq1" / "timeseries.csv" in written
    assert {str(p.relative_to(tmp_path / "out")) for p in written} == set(job.result().files())
    assert not list((tmp_path / "out").glob(".*"))
    assert job.result().json("metrics.json")["rg_nm"] == job.figures["rg_nm"]
    assert job.result().file("seq1/top.pdb", tmp_path / "top.pdb").read_bytes() == job.result().read("seq1/top.pdb")
    assert "Rg" in job.log() and job.log() == (tmp_path / "out" / "log.txt").read_text()
    assert lab.job("flow").figures == job.figures


def test_same_submission_is_the_same_job(lab: molrun.Client) -> None:
    first = lab.submit("shell", script="true", name="same")
    assert first.record["created"]
    again = lab.submit("shell", {"script": "true"}, name="same")
    assert not again.record["created"] and again.record["jobId"] == first.record["jobId"]
    with pytest.raises(molrun.Conflict, match="differs in settings"):
        lab.submit("shell", script="false", name="same")


def test_series_are_found_by_view_and_by_column(lab: molrun.Client) -> None:
    job = lab.submit("cg-idp", sequences=["DSHAKRHHGY"], steps=50_000).wait()
    whole, rg = job.series("size"), job.series("rg")
    assert rg.axis.name == "time_ps" and rg.axis.unit == "ps"
    assert [c.name for c in rg.columns] == ["time_ps", "rg_nm"]
    assert rg["rg_nm"] == job.series("rg_nm")["rg_nm"] == whole["rg_nm"]
    assert len(job.series("size", points=10)) == 10 < whole.rows
    with pytest.raises(molrun.NotFound, match="available: size, rg_nm"):
        job.series("absent")
    with pytest.raises(KeyError, match="available: time_ps"):
        rg["absent"]


def test_frames(lab: molrun.Client) -> None:
    pytest.importorskip("pandas")
    batch = lab.batch("cg-idp", each={"temperature_K": [280, 320]}, sequences=["DSHAKRHHGY"], steps=20_000).wait()
    table = batch.table(sort="rg_nm")
    frame = table.to_dataframe()
    assert list(frame["rg_nm"]) == sorted(frame["rg_nm"]) and set(frame["temperature_K"]) == {280, 320}
    series = next(batch.rows()).series("rg").to_dataframe()
    assert series.index.name == "time_ps" and list(series.columns) == ["rg_nm"] and len(series) > 10


def test_frames_need_pandas(lab: molrun.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    modules: Any = sys.modules
    monkeypatch.setitem(modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        molrun.Table(["a"], [[1]], {}).to_dataframe()


def test_batch_of_local_files(lab: molrun.Client, tmp_path: pathlib.Path) -> None:
    for i in range(12):
        (tmp_path / f"f{i:02}.txt").write_text("x" * (100 + i))
    sent = lab.upload_all(str(tmp_path / "*.txt"))
    assert [f.name for f in sent] == [f"f{i:02}.txt" for i in range(12)] and all(f.sent for f in sent)
    assert not any(f.sent for f in lab.upload_all(sorted(tmp_path.glob("*.txt"))))
    batch = lab.batch("size", each={"data": sent}, name="sizes", tags={"kind": "test"})
    table = batch.wait(PATIENCE).table(sort="bytes", order="desc")
    assert batch.counts["COMPLETED"] == 12 and table.column("bytes") == list(range(111, 99, -1))
    assert len(table.head(3)) == 3 and table[0]["jobName"] == "sizes-12" and table[1:3].column("bytes") == [110, 109]
    by_path = lab.batch("size", each={"data": [str(p) for p in sorted(tmp_path.glob("*.txt"))]}, name="sizes")
    assert not by_path.record["created"], "the same bytes created another batch"
    assert {j.name for j in lab.jobs(batch="sizes")} == {f"sizes-{i + 1}" for i in range(12)}


def test_files_are_accepted_in_every_form(lab: molrun.Client, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pathlib.Path("a.txt").write_text("hello\n")
    made = lab.submit("shell", script="cp out/../../../nothing out/ 2>/dev/null; echo hi >out/b.txt", name="makes").wait()
    for value in ("a.txt", pathlib.Path("a.txt"), lab.upload(b"hello\n", "a.txt"), lab.upload("a.txt").id, "job:makes/b.txt"):
        size = lab.submit("size", data=value).wait().figures["bytes"]
        assert size == (3 if value == "job:makes/b.txt" else 6), value
    with pytest.raises(molrun.Invalid) as refused:
        lab.submit("size", data="absent.txt")
    assert refused.value.faults[0].loc == ("body", "settings", "data")
    with pytest.raises(FileNotFoundError):
        lab.submit("size", data=pathlib.Path("absent.txt"))
    with pytest.raises(FileNotFoundError, match="no file matches"):
        lab.upload_all("absent/*.txt")
    assert made.result().text("b.txt") == "hi\n"


def test_failed_job_says_why(lab: molrun.Client) -> None:
    job = lab.submit("shell", script="echo no such luck; exit 3")
    with pytest.raises(molrun.JobFailed, match="no such luck") as failed:
        job.wait(PATIENCE)
    assert failed.value.job_name == job.name and failed.value.code == "EXIT_STATUS" and "no such luck" in failed.value.log_tail
    assert job.wait(check=False).status == "FAILED"
    assert job.retry().status in ("QUEUED", "RUNNING")
    job.wait(PATIENCE, check=False)
    job.delete()
    with pytest.raises(molrun.NotFound):
        job.refresh()


def test_batch_with_failed_rows(lab: molrun.Client, tmp_path: pathlib.Path) -> None:
    batch = lab.batch("shell", each={"script": ["echo a >out/a", "exit 1"]}, names=["good", "bad"]).wait(PATIENCE)
    assert batch.counts == {"QUEUED": 0, "RUNNING": 0, "COMPLETED": 1, "FAILED": 1}
    with pytest.raises(molrun.Conflict):
        batch.result().download(tmp_path)
    names = {p.name for p in batch.result().download(tmp_path, partial=True)}
    assert "a" in names
    with pytest.raises(molrun.JobFailed):
        batch.wait(check=True)


def test_wait_times_out(lab: molrun.Client) -> None:
    job = lab.submit("shell", script="sleep 600")
    with pytest.raises(molrun.WaitTimeout, match="continues"):
        job.wait(0.5)
    with pytest.raises(TimeoutError):
        job.wait(0.1)
    assert job.cancel().wait(PATIENCE, check=False).status == "FAILED"


def test_estimate_and_algorithms(lab: molrun.Client) -> None:
    assert "cg-idp" in [a["type"] for a in lab.algorithms("disordered bead")]
    assert lab.algorithms("disordered nonsense") == []
    assert lab.algorithm("cg-idp")["parameters"][0]["name"] == "sequences"
    assert lab.estimate("cg-idp", sequences=["DSHAKRHHGY"])["possible"] is True
    with pytest.raises(molrun.NotFound):
        lab.algorithm("absent")


def test_arguments_of_batches(lab: molrun.Client) -> None:
    with pytest.raises(ValueError, match="either each or rows"):
        lab.batch("shell")
    with pytest.raises(ValueError, match="2 of a, 1 of b"):
        lab.batch("shell", each={"a": [1, 2], "b": [1]})
    assert len(list(lab.batch("shell", rows=[{"script": "true"}, {"script": "true; true"}]).rows())) == 2


def test_sharing(lab: molrun.Client, service: Service) -> None:
    job = lab.submit("shell", script="true").wait()
    assert job.share(days=1).startswith(service.base)
    shown = job.show(height=300)
    assert f'<iframe src="{service.base}/ui/embed/' in shown._repr_html_() and 'height="300"' in shown._repr_html_()
    with urllib.request.urlopen(shown.url) as page:
        assert page.headers["Content-Security-Policy"].endswith("frame-ancestors *")
    assert job.url == f"{service.base}/ui/jobs/{job.name}"


def test_guide(lab: molrun.Client, service: Service, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    package = pathlib.Path(molrun.__file__).parent.parent
    structure = pathlib.Path(os.environ.get("MOLRUN_EXAMPLES", package / "../../../app/algorithm/builtin/examples"), "lysozyme.pdb").read_text()
    (tmp_path / "models").mkdir()
    for name in ("lysozyme.pdb", "models/a.pdb", "models/b.pdb"):
        (tmp_path / name).write_text(f"REMARK {name}\n" + structure)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOLRUN_SERVER", service.base)
    monkeypatch.setenv("MOLRUN_KEY", service.key)
    names: Dict[str, Any] = {}
    guide = pathlib.Path(os.environ.get("MOLRUN_DOCS", package / "../../../web/docs"), "python.md")
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL)
    assert len(blocks) == 6
    for block in blocks:
        exec(block, names)
    assert len(names["frame"]) > 10 and len(names["table"]) == 3 and len(names["models"]) == 2
    assert (tmp_path / "out" / "metrics.json").exists()
