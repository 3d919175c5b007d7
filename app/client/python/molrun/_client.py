"""The client of a service."""

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

# Maximum number of concurrent uploads.
_AT_ONCE = 4

# References that file settings accept besides local paths.
_REFERENCE = re.compile(r"(job:|sha256:)|[0-9A-HJKMNP-TV-Z]{26}$")


class Client:
    """A client of a service. It is thread-safe.

    Without arguments, it uses the same settings as the command line: MOLRUN_SERVER and
    MOLRUN_KEY, or otherwise the profile saved by `molrun login` or named by MOLRUN_PROFILE.

    Args:
        server: address, such as http://lab.example:8080.
        key: API key; surrounding whitespace is ignored.
        profile: name of a profile of the command line.
        trust: PEM file with the certificate of the service, if no certificate authority has signed it.
        timeout: how long a connection can be idle, in seconds.

    Raises:
        ConfigError: if no service or key is configured, or the key is malformed.
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
        """Returns the owner and the rights of the key."""
        return dict(self._t.call("GET", "/session"))

    # Algorithms

    def algorithms(self, search: str = "") -> List[Dict[str, Any]]:
        """Returns the algorithms of the service, as in GET /algorithms; with search, those that match all its words."""
        words = search.lower().split()
        listed: List[Dict[str, Any]] = self._t.call("GET", "/algorithms")["algorithms"]
        return [a for a in listed if all(w in _words(a) for w in words)]

    def algorithm(self, type: str, version: Optional[str] = None) -> Dict[str, Any]:
        """Returns an algorithm: its settings, example, views and metrics, as in GET /algorithms/{type}."""
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
        """Submits a job, or returns the existing job if the same submission was made before under this name.

        Give settings by name, or in settings if a name clashes with an argument. A file setting
        takes a path, a File, or a reference such as job:NAME/PATH; files are uploaded only if
        the service does not have them.

        Args:
            type: the algorithm.
            name: name of the job; defaults to the type and a random suffix.
            after: jobs that must be COMPLETED first; with after_any, they only have to finish, even if they fail.
            tags: key-value pairs for finding the job.
            notify: addresses to notify when the job finishes: https://… or mailto:…
            priority: -10 to 10; only admins can set it above 0.
            max_runtime: maximum run time in seconds, after which the job is stopped.

        Raises:
            Invalid: if the submission is invalid; faults lists every error.
            Conflict: if a different job with this name exists.
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
        """Submits many jobs of one algorithm, all or none.

        Args:
            each: for each setting that differs, its values, the same number for all. Job i gets value i.
            rows: instead of each, the settings of every job that differ.
            names: names of the jobs; default to the batch's name and a number.

        The other arguments are those of submit and apply to every job.
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
        """Returns an estimate for a submission, as in POST /estimate: whether it can run here, what it
        needs, and when it is expected to start and end. Nothing is queued."""
        body = self._submission(type, {**(settings or {}), **more}, version)
        body["jobName"] = _some_name(type)
        return dict(self._t.call("POST", "/estimate", body=body))

    def job(self, name: str) -> Job:
        """Returns a job or batch.

        Raises:
            NotFound: if there is none with this name.
        """
        return self._job(self._t.call("GET", path("jobs", name)))

    def jobs(self, **filters: Any) -> Iterator[Job]:
        """Yields jobs, newest first. The filters are the parameters of GET /jobs: status, algorithm,
        batch, tag, search, since, until, organization, jobEmail."""
        for page in self._pages("/jobs", {"limit": 100, **filters}):
            for record in page["jobs"]:
                yield self._job(record)

    def _job(self, record: Dict[str, Any]) -> Job:
        return Batch(self, record) if "subjobCounts" in record else Job(self, record)

    # Files

    def upload(self, file: Union[PathLike, bytes, BinaryIO], name: Optional[str] = None, folder: Optional[str] = None) -> File:
        """Uploads a file unless the service already has its bytes.

        Args:
            file: a path, or the content as bytes or a seekable stream.
            name: its name; required if file is the content.
            folder: the folder in which the service lists it, by default inputs.
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
        """Uploads files concurrently and returns them in the same order.

        Args:
            files: paths, or a pattern such as ligands/*.sdf, whose files are sorted by name.

        Raises:
            FileNotFoundError: if no file matches the pattern.
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
        """Yields uploads, newest first, as in GET /files."""
        for page in self._pages("/files", {"folder": folder, "organization": organization or None, "limit": 100}):
            yield from page["files"]

    def delete_file(self, file: Union[str, File]) -> None:
        """Deletes an upload. Jobs submitted with it keep its bytes."""
        self._t.call("DELETE", path("files", file if isinstance(file, str) else file.id))

    # Shared parts of submissions

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
        """Returns JSON-serializable settings in which files are references. Uploads files that were not sent."""
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
        """Uploads the local files among the values concurrently and returns them by path."""
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
        raise ValueError("each: give the same number of values for every setting, not " + ", ".join(f"{len(v)} of {k}" for k, v in columns.items()))
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
