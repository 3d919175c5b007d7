"""The service."""

from __future__ import annotations

import concurrent.futures
import glob
import io
import os
import pathlib
import re
import secrets
from types import TracebackType
from typing import Any, BinaryIO, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Type, Union

from . import _files
from ._errors import Error
from ._files import File, PathLike
from ._http import Transport, path
from ._jobs import Batch, Job
from ._profile import find

# How many files are sent at a time.
_AT_ONCE = 4

# What settings may name instead of a local file.
_REFERENCE = re.compile(r"(job:|sha256:)|[0-9A-HJKMNP-TV-Z]{26}$")


class Client:
    """A service and who talks to it. Threads may share it.

    Without arguments it uses what the command line uses: MOLRUN_SERVER and MOLRUN_KEY, or else
    the profile that `molrun login` has kept, or that MOLRUN_PROFILE names.

    Args:
        server: address, such as http://lab.example:8080.
        key: API key; white space around it does not count.
        profile: name of a profile of the command line.
        trust: PEM file of the certificate that the service shows, where no authority vouches for it.
        timeout: the longest silence of a connection, in seconds.

    Raises:
        ConfigError: if no service or no key is known, or the key can't be one.
    """

    def __init__(
        self,
        server: Optional[str] = None,
        key: Optional[str] = None,
        *,
        profile: Optional[str] = None,
        trust: Optional[str] = None,
        timeout: float = 300.0,
    ) -> None:
        self._t = Transport(find(server, key, profile, trust), timeout)
        self._algorithms: Dict[str, Dict[str, Any]] = {}

    @property
    def server(self) -> str:
        """The address of the service."""
        return self._t.profile.server

    def close(self) -> None:
        """Closes connections."""
        self._t.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], e: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self.server}>"

    def whoami(self) -> Dict[str, Any]:
        """Returns who the key belongs to and what it may do."""
        return dict(self._t.call("GET", "/session"))

    # Algorithms

    def algorithms(self, search: str = "") -> List[Dict[str, Any]]:
        """Returns what the service can run, as GET /algorithms says; with search, those with all of its words."""
        words = search.lower().split()
        listed: List[Dict[str, Any]] = self._t.call("GET", "/algorithms")["algorithms"]
        return [a for a in listed if all(w in _words(a) for w in words)]

    def algorithm(self, type: str, version: Optional[str] = None) -> Dict[str, Any]:
        """Returns an algorithm: its settings, example, views and figures, as GET /algorithms/{type} says."""
        return dict(self._t.call("GET", path("algorithms", type), {"version": version}))

    # Jobs

    def submit(
        self,
        type: str,
        settings: Optional[Mapping[str, Any]] = None,
        *,
        name: Optional[str] = None,
        version: Optional[str] = None,
        after: Sequence[Union[str, Job]] = (),
        after_any: bool = False,
        tags: Optional[Mapping[str, str]] = None,
        note: Optional[str] = None,
        notify: Sequence[str] = (),
        priority: int = 0,
        max_runtime: Optional[float] = None,
        **more: Any,
    ) -> Job:
        """Queues a job, or returns the one that the same submission of this name has made before.

        Settings are given by name, or in settings where a name is one of the arguments. A setting that
        is a file takes a path, a File, or a reference such as job:NAME/PATH; files are sent only if
        the service does not have them.

        Args:
            type: the algorithm.
            name: of the job; without it, the type and a few letters.
            after: jobs that have to be COMPLETED first; with after_any they need only have ended.
            tags: by which the job can be found.
            notify: who is told of the end: https://… or mailto:…
            priority: -10 to 10; only admins may ask for more than 0.
            max_runtime: seconds after which the job is stopped.

        Raises:
            Invalid: if the service does not take it; faults has every mistake.
            Conflict: if there is another job of this name.
        """
        body = self._submission(type, {**(settings or {}), **more}, version, after, after_any, tags, note, notify, priority, max_runtime)
        body["jobName"] = name or _some_name(type)
        return Job(self, self._t.call("POST", "/submit-job", body=body))

    def batch(
        self,
        type: str,
        settings: Optional[Mapping[str, Any]] = None,
        *,
        each: Optional[Mapping[str, Iterable[Any]]] = None,
        rows: Optional[Iterable[Mapping[str, Any]]] = None,
        names: Optional[Sequence[str]] = None,
        name: Optional[str] = None,
        version: Optional[str] = None,
        after: Sequence[Union[str, Job]] = (),
        after_any: bool = False,
        tags: Optional[Mapping[str, str]] = None,
        note: Optional[str] = None,
        notify: Sequence[str] = (),
        priority: int = 0,
        max_runtime: Optional[float] = None,
        **more: Any,
    ) -> Batch:
        """Queues many jobs of one algorithm, all or none.

        Args:
            each: the settings that differ: their values, equally many of each. Row i has value i.
            rows: instead of each, the settings of every row that differ.
            names: of the rows; without them, the batch's name and a number.

        The other arguments are those of submit, and hold for every row.
        """
        table = _rows(each, rows)
        common = {**(settings or {}), **more}
        whole = self._submission(type, common, version, after, after_any, tags, note, notify, priority, max_runtime)
        files = self._file_settings(type, version)
        sent = self._send_local([row.get(s) for row in table for s in files])
        whole["settings"] = [{**whole["settings"], **self._plain(row, files, sent)} for row in table]
        whole["batchName"] = name or _some_name(type)
        if names is not None:
            whole["jobNames"] = list(names)
        return Batch(self, self._t.call("POST", "/submit-batch", body=whole))

    def estimate(self, type: str, settings: Optional[Mapping[str, Any]] = None, *, version: Optional[str] = None, **more: Any) -> Dict[str, Any]:
        """Returns how a submission would fare, as POST /estimate says: whether it can run here, what it
        needs, and when it is expected to start and end. Nothing is queued."""
        body = self._submission(type, {**(settings or {}), **more}, version)
        body["jobName"] = _some_name(type)
        return dict(self._t.call("POST", "/estimate", body=body))

    def job(self, name: str) -> Job:
        """Returns a job or batch.

        Raises:
            NotFound: if there is none of this name.
        """
        return self._job(self._t.call("GET", path("jobs", name)))

    def jobs(self, **filters: Any) -> Iterator[Job]:
        """Yields jobs, the newest first. The filters are the parameters of GET /jobs: status, algorithm,
        batch, tag, search, since, until, organization, jobEmail."""
        for page in self._pages("/jobs", {"limit": 100, **filters}):
            for record in page["jobs"]:
                yield self._job(record)

    def _job(self, record: Dict[str, Any]) -> Job:
        return Batch(self, record) if "subjobCounts" in record else Job(self, record)

    # Files

    def upload(self, file: Union[PathLike, bytes, BinaryIO], name: Optional[str] = None, folder: Optional[str] = None) -> File:
        """Uploads a file unless the service has its bytes.

        Args:
            file: a path, or the content. A stream has to be seekable.
            name: its name; required for a content.
            folder: where the service lists it, inputs by default.
        """
        if isinstance(file, bytes):
            file = io.BytesIO(file)
        if not isinstance(file, (str, os.PathLike)):
            if not name:
                raise ValueError("give the content a name, such as receptor.pdb")
            return _files.upload(self._t, file, name, folder)
        with open(file, "rb") as f:
            return _files.upload(self._t, f, name or pathlib.Path(file).name, folder)

    def upload_all(self, files: Union[str, Iterable[PathLike]], folder: Optional[str] = None) -> List[File]:
        """Uploads files, several at a time, and returns them in their order.

        Args:
            files: paths, or a pattern such as ligands/*.sdf, whose files come by name.

        Raises:
            FileNotFoundError: if the pattern has no files.
        """
        if isinstance(files, str):
            paths: List[PathLike] = list(sorted(glob.glob(files, recursive=True)))
            if not paths:
                raise FileNotFoundError(f"no file matches {files}")
        else:
            paths = list(files)
        with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(lambda p: self.upload(p, folder=folder), paths))

    def files(self, folder: Optional[str] = None, organization: bool = False) -> Iterator[Dict[str, Any]]:
        """Yields uploads, the newest first, as GET /files says."""
        for page in self._pages("/files", {"folder": folder, "organization": organization or None, "limit": 100}):
            yield from page["files"]

    def delete_file(self, file: Union[str, File]) -> None:
        """Deletes an upload. Jobs that were submitted with it keep its bytes."""
        self._t.call("DELETE", path("files", file if isinstance(file, str) else file.id))

    # What submissions have in common

    def _submission(
        self,
        type: str,
        settings: Mapping[str, Any],
        version: Optional[str] = None,
        after: Sequence[Union[str, Job]] = (),
        after_any: bool = False,
        tags: Optional[Mapping[str, str]] = None,
        note: Optional[str] = None,
        notify: Sequence[str] = (),
        priority: int = 0,
        max_runtime: Optional[float] = None,
    ) -> Dict[str, Any]:
        body: Dict[str, Any] = {"type": type, "settings": self._plain(settings, self._file_settings(type, version))}
        if after:
            body["after"] = [j.name if isinstance(j, Job) else j for j in after]
        for member, value in {
            "version": version,
            "afterAny": after_any,
            "tags": dict(tags or {}),
            "note": note,
            "notify": list(notify),
            "priority": priority,
            "maxRuntimeSeconds": max_runtime and int(max_runtime),
        }.items():
            if value:
                body[member] = value
        return body

    def _file_settings(self, type: str, version: Optional[str]) -> List[str]:
        known = f"{type}@{version or ''}"
        if known not in self._algorithms:
            self._algorithms[known] = self.algorithm(type, version)
        return [p["name"] for p in self._algorithms[known]["parameters"] if p.get("file")]

    def _plain(self, settings: Mapping[str, Any], files: Sequence[str], sent: Mapping[str, File] = {}) -> Dict[str, Any]:
        """Returns settings as JSON takes them, with references to files, which are uploaded unless they were sent."""
        plain = {}
        for name, value in settings.items():
            known = sent.get(os.fspath(value)) if name in files and isinstance(value, (str, os.PathLike)) else None
            plain[name] = self._value(known or value, name in files)
        return plain

    def _value(self, value: Any, is_file: bool) -> Any:
        if isinstance(value, File):
            return value.reference
        if isinstance(value, os.PathLike) or is_file and isinstance(value, str) and _is_local(value):
            return self.upload(value).reference
        if isinstance(value, Mapping):
            return {k: self._value(v, False) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._value(v, is_file) for v in value]
        if hasattr(value, "tolist"):  # numpy
            return value.tolist()
        return value

    def _send_local(self, values: Iterable[Any]) -> Dict[str, File]:
        """Uploads the local files among the values, several at a time, and returns them by path."""
        local = sorted({os.fspath(v) for v in values if isinstance(v, os.PathLike) or isinstance(v, str) and _is_local(v)})
        return dict(zip(local, self.upload_all(local)))

    def _pages(self, of: str, query: Mapping[str, Any]) -> Iterator[Dict[str, Any]]:
        start: Optional[str] = None
        while True:
            page = dict(self._t.call("GET", of, {**query, "startKey": start}))
            yield page
            start = page.get("startKey")
            if not start:
                return


def _rows(each: Optional[Mapping[str, Iterable[Any]]], rows: Optional[Iterable[Mapping[str, Any]]]) -> List[Dict[str, Any]]:
    if (each is None) == (rows is None):
        raise ValueError("give either each or rows")
    if rows is not None:
        return [dict(r) for r in rows]
    columns = {name: list(values) for name, values in (each or {}).items()}
    lengths = {len(v) for v in columns.values()}
    if len(lengths) != 1:
        raise ValueError("each: give equally many values of every setting; there are " + ", ".join(f"{len(v)} of {k}" for k, v in columns.items()))
    return [dict(zip(columns, values)) for values in zip(*columns.values())]


def _is_local(text: str) -> bool:
    return not _REFERENCE.match(text) and os.path.isfile(text)


def _some_name(type: str) -> str:
    return f"{type}-{secrets.token_hex(3)}"


def _words(algorithm: Mapping[str, Any]) -> str:
    return " ".join(
        [algorithm["type"], algorithm.get("title", ""), algorithm.get("description", "")]
        + list(algorithm.get("categories", []))
        + list(algorithm.get("functions", []))
        + list(algorithm.get("keywords", []))
    ).lower()


__all__ = ["Client", "Error"]
