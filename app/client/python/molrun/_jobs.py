"""Jobs, batches and their results."""

from __future__ import annotations

import json
import pathlib
import threading
import time
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

from . import _files, _html
from ._errors import ConnectionFailed, Error, JobFailed, NotFound, WaitTimeout
from ._http import BROKEN, Query, Response, passes, path, pause
from ._tables import Series, Table

if TYPE_CHECKING:
    from ._client import Client

J = TypeVar("J", bound="Job")

# How long a stream can be silent, in seconds; the service sends something every 15 seconds.
_SILENCE = 60.0


class Event(NamedTuple):
    """An event of a job. print() shows it as a sentence."""

    kind: str  # job, progress, log, metrics, deleted, end
    data: Dict[str, Any]  # as in GET /jobs/{jobName}/events

    def __str__(self) -> str:
        d = self.data
        if self.kind == "log":
            return str(d["text"]).rstrip("\n")
        name = d.get("jobName", "")
        if self.kind == "progress":
            p = d["progress"]
            return f"{name}: {p['fraction']:.0%} {p.get('text', '')}".rstrip()
        if self.kind == "metrics":
            return f"{name}: " + ", ".join(f"{k} {v}" for k, v in (d["metrics"].get("results") or {}).items())
        if self.kind == "end":
            return f"{name}: end of events"
        if self.kind == "deleted":
            return f"{name}: deleted"
        reason = d.get("statusReason") or (d.get("failure") or {}).get("message") or ""
        return f"{name}: {str(d.get('status', '')).lower()}" + (f" ({reason})" if reason else "")


class Job:
    """A job. Its record is that of the last request; refresh() updates it."""

    def __init__(self, client: "Client", record: Dict[str, Any]) -> None:
        self._client = client
        self.record = record  # as in GET /jobs/{jobName}

    @property
    def name(self) -> str:
        return str(self.record["jobName"])

    @property
    def type(self) -> str:
        """The algorithm."""
        return str(self.record.get("type", ""))

    @property
    def status(self) -> str:
        """QUEUED, RUNNING, COMPLETED or FAILED."""
        return str(self.record["status"])

    @property
    def finished(self) -> bool:
        return self.status in ("COMPLETED", "FAILED")

    @property
    def figures(self) -> Dict[str, Any]:
        """The metrics of the result; empty if there are none or the job has not completed."""
        return dict((self.record.get("metrics") or {}).get("results") or {})

    @property
    def warnings(self) -> List[str]:
        """Reasons to doubt the result."""
        return list(self.record.get("warnings") or [])

    @property
    def url(self) -> str:
        """The job's page in the web application."""
        return self._client.server + "/ui" + path("jobs", self.name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.status.lower()}>"

    def _repr_html_(self) -> str:
        return _html.card(self)

    def refresh(self: J) -> J:
        """Updates the record and returns the job."""
        self.record = self._get()
        return self

    def wait(self: J, timeout: Optional[float] = None, check: bool = True) -> J:
        """Waits until the job has finished, even across restarts of the service, and returns it.

        Args:
            timeout: maximum time to wait, in seconds. The job continues after a timeout.
            check: whether to raise an exception if the job failed.

        Raises:
            WaitTimeout: if the timeout has elapsed.
            JobFailed: if the job failed and check is true.
            NotFound: if it was deleted.
        """
        end = None if timeout is None else time.monotonic() + timeout
        stuck = 0
        while not self.finished:
            left = 30.0 if end is None else end - time.monotonic()
            if left <= 0:
                raise WaitTimeout(f"job {self.name} has not finished within {timeout} s; it continues")
            try:
                self.record = self._get({"wait": f"{max(1, int(min(left, 30)))}s"})
                stuck = 0
            except Error as e:
                if not passes(e):
                    raise
                stuck += 1
                time.sleep(min(pause(e, stuck), max(left, 0)))
        if check and self.status == "FAILED":
            raise JobFailed(self.record)
        return self

    def follow(self, logs: bool = True) -> Iterator[Event]:
        """Yields the events of the job until it has finished, reconnecting if necessary.

        Args:
            logs: whether to include the program's output.
        """
        return self._follow(logs, Stop())

    def _follow(self, logs: bool, stop: "Stop") -> Iterator[Event]:
        last, stuck = "", 0
        while not stop.asked:
            try:
                headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
                with self._client._t.open("GET", path("jobs", self.name, "events") + ("?logs=true" if logs else ""), headers=headers) as answer:
                    answer.expect(_SILENCE)
                    stop.reading(answer)
                    for kind, id_, data in events(answer):
                        stuck, last = 0, id_ or last
                        if kind == "reset" or not kind:
                            continue
                        event = Event(kind, json.loads(data))
                        if kind == "job":
                            self.record = {**self.record, **event.data}
                        if kind == "end":
                            self.refresh()
                        yield event
                        if kind in ("end", "deleted"):
                            return
                raise ConnectionFailed("the connection broke")
            except BROKEN as e:
                problem: Error = ConnectionFailed(str(e))
            except Error as e:
                if not passes(e):
                    raise
                problem = e
            stuck += 1
            stop.wait(pause(problem, stuck))

    def log(self) -> str:
        """Returns the log so far, at most the last 16 MiB."""
        most = 16 << 20
        with self._client._t.open("GET", path("jobs", self.name, "logs")) as answer:
            tail = b""
            while True:
                try:
                    block = answer.read(1 << 20)
                except BROKEN as e:
                    raise ConnectionFailed(f"log of {self.name}: {e}") from e
                if not block:
                    return tail.decode("utf-8", "replace")
                tail = (tail + block)[-most:]

    def result(self) -> "Result":
        """Returns the result; while the job runs, it has the files written so far."""
        return Result(self)

    def views(self) -> List[Dict[str, Any]]:
        """Returns the views (plots, tables, structures) with their files."""
        return list(self._get_part("views")["views"])

    def series(self, name: str, file: Optional[str] = None, points: int = 2000) -> Series:
        """Returns a series for plotting.

        Args:
            name: a view of the kind series, or a column of one, with or without its unit: rg for rg_nm.
            file: which file of the view, if it has several.
            points: maximum number of rows, 3 to 10,000.

        Raises:
            NotFound: if there is no such series; the message lists the available ones.
        """
        view, columns = self._find_series(name)
        return Series(self._get_part("series", view, query={"file": file, "points": points, "column": columns}))

    def _find_series(self, name: str) -> Tuple[str, List[str]]:
        known = []
        views = [v for v in self.views() if v["kind"] == "series"]
        for v in views:
            if v["name"] == name:
                return name, []
        for v in views:
            columns = v.get("y") or []
            known += [v["name"], *columns]
            for c in columns:
                if c == name or c.rpartition("_")[0] == name:
                    return v["name"], [c]
        raise NotFound(404, "NOT_FOUND", f"job {self.name} has no series {name!r}; available: {', '.join(known) or 'none'}")

    def table(self, name: str, file: Optional[str] = None, sort: Optional[str] = None) -> Table:
        """Returns a table of the result.

        Args:
            name: a view of the kind table or series.
            file: which file of the view, if it has several.
            sort: a column to sort by; prefix it with - for descending order. Defaults to the order of the file.
        """
        columns: List[Dict[str, Any]] = []
        rows: List[Sequence[Any]] = []
        for page in self._pages(path("jobs", self.name, "tables", name), {"file": file, "sort": sort, "limit": 1000}):
            columns = page["columns"]
            rows += page["rows"]
        return Table([c["name"] for c in columns], rows, {c["name"]: c["unit"] for c in columns if c.get("unit")})

    def cancel(self: J) -> J:
        """Cancels the job, or all jobs of a batch."""
        self.record = self._client._t.call("POST", path("jobs", self.name, "cancel"))
        return self

    def retry(self: J) -> J:
        """Retries a failed job, or the failed jobs of a batch."""
        self.record = self._client._t.call("POST", path("jobs", self.name, "retry"))
        return self

    def delete(self) -> None:
        """Deletes the job and its result."""
        self._client._t.call("DELETE", path("jobs", self.name))

    def share(self, days: float = 7, files: Sequence[str] = ()) -> str:
        """Returns a link that gives anyone who has it access to the result, for some days.

        Args:
            files: the files to share, or folders with a trailing slash. Defaults to all.
        """
        body: Dict[str, Any] = {"ttlSeconds": int(days * 86400)}
        if files:
            body["files"] = list(files)
        return str(self._client._t.call("POST", path("jobs", self.name, "share"), body=body)["url"])

    def show(self, days: float = 1, height: int = 480) -> "Shown":
        """Returns an interactive view of the result's structure for a notebook: a page of the service
        in a frame. This creates a link that gives anyone who has it access to the result, for some
        days; a saved notebook contains this link.

        Args:
            height: height of the frame, in pixels.

        Raises:
            Conflict: if the job has not completed.
        """
        token = self.share(days).rstrip("/").rsplit("/", 1)[-1]
        return Shown(self._client.server + "/ui" + path("embed", token), height)

    def _get(self, query: Query = None) -> Dict[str, Any]:
        return dict(self._client._t.call("GET", path("jobs", self.name), query))

    def _get_part(self, *segments: str, query: Query = None) -> Dict[str, Any]:
        return dict(self._client._t.call("GET", path("jobs", self.name, *segments), query))

    def _pages(self, of: str, query: Mapping[str, Any]) -> Iterator[Dict[str, Any]]:
        return self._client._pages(of, query)


class Batch(Job):
    """Many jobs of one submission. A batch is itself a job, with the same methods."""

    @property
    def counts(self) -> Dict[str, int]:
        """Number of jobs by status."""
        return dict(self.record.get("subjobCounts") or {})

    def wait(self: J, timeout: Optional[float] = None, check: bool = False) -> J:
        """Waits like Job.wait, but by default raises no exception for failed jobs: see counts and table()."""
        return super().wait(timeout, check)

    def rows(self) -> Iterator[Job]:
        """Yields the jobs of the batch, newest first."""
        return self._client.jobs(batch=self.name)

    def table(self, sort: Optional[str] = None, order: Optional[str] = None, status: Sequence[str] = ()) -> Table:  # type: ignore[override]
        """Returns a row for each job: its name, status, the settings that differ, and all metrics.

        Args:
            sort: a metric; defaults to the algorithm's ranking.
            order: asc or desc; defaults to best first.
            status: only rows with one of these statuses.
        """
        if sort and sort != "row" and not sort.startswith("metric:"):
            sort = "metric:" + sort
        settings: List[Dict[str, Any]] = []
        figures: List[Dict[str, Any]] = []
        rows: List[Dict[str, Any]] = []
        for page in self._pages(path("jobs", self.name, "table"), {"sort": sort, "order": order, "status": list(status), "limit": 1000}):
            settings, figures = page["settings"], page["metrics"]
            rows += page["rows"]
        plain = ["row", "jobName", "status"]
        names = plain + [_distinct(c["name"], plain) for c in settings + figures]
        cells = [
            [r.get(c) for c in plain]
            + [_cell((r.get("settings") or {}).get(c["name"])) for c in settings]
            + [(r.get("metrics") or {}).get(c["name"]) for c in figures]
            for r in rows
        ]
        return Table(names, cells, {c["name"]: c["unit"] for c in settings + figures if c.get("unit")})


class Result:
    """The files of a job."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def files(self) -> Dict[str, int]:
        """Returns the names of the files and their sizes in bytes."""
        return {f["path"]: f["size"] for f in self._job._get_part("files")["files"]}

    def read(self, name: str, most: int = 256 << 20) -> bytes:
        """Returns a file.

        Raises:
            NotFound: if there is none.
            Error: if it is larger than most bytes.
        """
        return _files.read(self._job._client._t, self._job.name, name, most)

    def text(self, name: str) -> str:
        """Returns the text of a UTF-8 file."""
        return self.read(name).decode("utf-8")

    def json(self, name: str) -> Any:
        """Returns the value of a JSON file."""
        return json.loads(self.read(name))

    def download(self, folder: _files.PathLike, partial: bool = False) -> List[pathlib.Path]:
        """Downloads all files of the result into a folder, which is created if necessary, and
        returns their paths. Calling it again resumes an interrupted download.

        Args:
            partial: for a batch with failed or unfinished jobs, download the completed ones.
        """
        to = pathlib.Path(folder)
        to.mkdir(parents=True, exist_ok=True)
        archive = self.archive(to / f".{self._job.name}.zip", partial)
        try:
            return _files.unpack(archive, to)
        finally:
            archive.unlink()

    def archive(self, file: _files.PathLike, partial: bool = False) -> pathlib.Path:
        """Downloads the result as a ZIP archive and returns its path. partial is as for download."""
        return self._fetch({"jobName": self._job.name, **({"partial": True} if partial else {})}, file)

    def file(self, name: str, to: _files.PathLike) -> pathlib.Path:
        """Downloads one file of the result and returns its path."""
        return self._fetch({"jobName": self._job.name, "fileName": name}, to)

    def _fetch(self, what: Dict[str, Any], to: _files.PathLike) -> pathlib.Path:
        t = self._job._client._t
        return _files.download(t, lambda: dict(t.call("POST", "/result", body=what)), pathlib.Path(to))

    def __repr__(self) -> str:
        return f"<Result of {self._job.name}>"


class Shown:
    """A page of the service in a notebook."""

    def __init__(self, url: str, height: int) -> None:
        self.url, self.height = url, height

    def __repr__(self) -> str:
        return f"<Shown {self.url}>"

    def _repr_html_(self) -> str:
        return _html.frame(self.url, self.height)


class Stop:
    """Stops a stream from another thread."""

    def __init__(self) -> None:
        self._event, self._answer = threading.Event(), None  # type: threading.Event, Optional[Response]

    @property
    def asked(self) -> bool:
        return self._event.is_set()

    def reading(self, answer: Response) -> None:
        self._answer = answer
        if self.asked:
            answer.abort()

    def wait(self, seconds: float) -> None:
        self._event.wait(seconds)

    def stop(self) -> None:
        self._event.set()
        if self._answer is not None:
            self._answer.abort()


def events(answer: Response) -> Iterator[Tuple[str, str, str]]:
    """Yields the kind, ID and data of Server-Sent Events until the stream ends."""
    kind, id_, data = "", "", []  # type: str, str, List[str]
    while True:
        raw = answer.readline()
        if not raw:
            return
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if kind or id_:
                yield kind, id_, "\n".join(data)
            kind, id_, data = "", "", []
            continue
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "event":
            kind = value
        elif field == "id":
            id_ = value
        elif field == "data":
            data.append(value)


def _distinct(name: str, taken: Sequence[str]) -> str:
    return name if name not in taken else "result:" + name


def _cell(value: Any) -> Union[float, int, str, bool, None]:
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return json.dumps(value)
