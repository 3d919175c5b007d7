"""Resumable uploads and downloads."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import pathlib
import tempfile
import time
import unicodedata
import zipfile
from typing import Any, BinaryIO, Callable, Dict, List, NamedTuple, Optional, Union

from ._errors import ConnectionFailed, Error, NotFound, ServiceError
from ._http import BROKEN, PATIENCE, Transport, passes, path, patiently, pause

PathLike = Union[str, "os.PathLike[str]"]
_BLOCK = 1 << 20


class File(NamedTuple):
    """An uploaded file. As a setting, it refers to its bytes under its name."""

    id: str
    name: str
    folder: str
    size: int  # bytes
    sha256: str  # hexadecimal
    sent: bool = True  # False if the service already had its bytes

    @property
    def reference(self) -> str:
        """The reference for settings: the same bytes and name always give the same reference."""
        return f"sha256:{self.sha256}/{unicodedata.normalize('NFC', self.name)}"


class _Part(io.RawIOBase):
    """The rest of a file, as a request body."""

    def __init__(self, f: BinaryIO, left: int, tell: Callable[[int], None]) -> None:
        self._f, self._left, self._tell = f, left, tell

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        want = self._left if size < 0 else min(size, self._left)
        data = self._f.read(want)
        self._left -= len(data)
        self._tell(len(data))
        return data


def digest(f: BinaryIO) -> str:
    """Returns the SHA-256 digest of the whole file, in hexadecimal."""
    f.seek(0)
    h = hashlib.sha256()
    for block in iter(lambda: f.read(_BLOCK), b""):
        h.update(block)
    return h.hexdigest()


def upload(t: Transport, f: BinaryIO, name: str, folder: Optional[str]) -> File:
    """Uploads a file unless the user has already uploaded the same bytes. The upload resumes
    if the connection breaks or the service restarts."""
    sha256 = digest(f)
    size = f.seek(0, os.SEEK_END)
    made: Dict[str, Any] = patiently(lambda: dict(t.call("PUT", path("upload", name), {"folder": folder, "sha256": sha256})))
    file = File(made["fileId"], name, made["folder"], size, sha256, made["status"] != "completed")
    if not file.sent:
        return file
    _send(t, made, f, size, sha256)
    done: Dict[str, Any] = patiently(lambda: dict(t.call("POST", path("upload", file.id, "complete"), body={"size": size})))
    if done["sha256"] != sha256:
        raise Error(f"{name} changed during the upload; upload it again")
    return file


def _send(t: Transport, made: Dict[str, Any], f: BinaryIO, size: int, sha256: str) -> None:
    moved, stuck = time.monotonic(), 0
    repr_digest = "sha-256=:" + base64.b64encode(bytes.fromhex(sha256)).decode() + ":"

    def tell(n: int) -> None:
        nonlocal moved
        if n > 0:
            moved = time.monotonic()

    while True:
        try:
            at = _offset(t, made["uploadUrl"]) if stuck else 0
            if at is None:
                return
            f.seek(at)
            headers = {**made["instructions"]["headers"], "Content-Length": str(size - at), "Upload-Complete": "?1", "Repr-Digest": repr_digest}
            if at:
                headers.update({"Content-Type": "application/partial-upload", "Upload-Offset": str(at)})
            with t.send("PATCH" if at else "PUT", made["uploadUrl"], _Part(f, size - at, tell), headers) as answer:
                answer.read()
            return
        except ServiceError as e:
            if e.code == "LINK_EXPIRED":
                made.update(t.call("POST", path("upload", made["fileId"], "link")))
            elif not passes(e):
                raise
            problem: Error = e
        except ConnectionFailed as e:
            problem = e
        if time.monotonic() - moved > PATIENCE:
            raise problem
        stuck = 1 if time.monotonic() - moved < 1 else stuck + 1
        time.sleep(pause(problem, stuck))


def _offset(t: Transport, url: str) -> Optional[int]:
    """Returns the number of bytes received, or None if the upload is complete."""
    with t.send("HEAD", url) as answer:
        if answer.headers.get("upload-complete") == "?1":
            return None
        return int(answer.headers.get("upload-offset", "0"))


def download(t: Transport, link: Callable[[], Dict[str, Any]], target: pathlib.Path) -> pathlib.Path:
    """Downloads a link to a file, which appears once it is complete. Interrupted downloads
    resume, including those of earlier calls. link returns new links to the same file."""
    part = target.with_name(target.name + ".part")
    note = target.with_name(target.name + ".part.etag")
    stuck = 0
    while True:
        made = patiently(link)
        before = part.stat().st_size if part.exists() else 0
        try:
            _fetch(t, made, part, note)
            break
        except BROKEN + (ConnectionFailed,) as e:
            gained = part.exists() and part.stat().st_size != before
            stuck = 0 if gained else stuck + 1
            if stuck >= 5:
                raise ConnectionFailed(f"download of {target.name}: {e}") from e
            time.sleep(0.5 * stuck)
    os.replace(part, target)
    note.unlink()
    return target


def _fetch(t: Transport, made: Dict[str, Any], part: pathlib.Path, note: pathlib.Path) -> None:
    size: int = made["size"]
    etag = note.read_text(encoding="utf-8") if note.exists() else ""
    have = min(part.stat().st_size, max(size - 1, 0)) if etag and part.exists() else 0
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers.update({"Range": f"bytes={have}-", "If-Range": etag})
    with t.send("GET", made["downloadUrl"], headers=headers) as answer, open(part, "ab") as f:
        if answer.status != 206:
            have = 0
        f.truncate(have)
        if not have:
            note.write_text(answer.headers.get("etag", ""), encoding="utf-8")
        for block in iter(lambda: answer.read(_BLOCK), b""):
            f.write(block)
            have += len(block)
        if have != size:
            raise ConnectionFailed(f"received {have} of {size} bytes")
        f.flush()
        os.fsync(f.fileno())


def unpack(archive: pathlib.Path, folder: pathlib.Path) -> List[pathlib.Path]:
    """Unpacks an archive into a folder, writing each file atomically.

    Raises:
        Error: if a name in the archive leads out of the folder.
    """
    written = []
    with zipfile.ZipFile(archive) as z:
        names = [i for i in z.infolist() if not i.is_dir()]
        for info in names:
            inside(folder, info.filename)
        for info in names:
            target = inside(folder, info.filename)
            target.parent.mkdir(parents=True, exist_ok=True)
            with z.open(info) as from_, replaced(target) as to:
                for block in iter(lambda: from_.read(_BLOCK), b""):
                    to.write(block)
            written.append(target)
    return written


def inside(folder: pathlib.Path, name: str) -> pathlib.Path:
    """Returns the path of a result's file in a folder.

    Raises:
        Error: if its name leads out of the folder or through a symbolic link in it.
    """
    parts = name.split("/")
    if not name or any(p in ("", ".", "..") or "\0" in p or "\\" in p or os.path.splitdrive(p)[0] for p in parts):
        raise Error(f"{name!r} is not a valid path inside a folder")
    at = folder
    for p in parts:
        at = at / p
        if at.is_symlink():
            raise Error(f"{at} is a link; remove it, or choose another folder")
    return at


class replaced:
    """Writes a temporary file and moves it to target if there was no error."""

    def __init__(self, target: pathlib.Path) -> None:
        self._target = target

    def __enter__(self) -> BinaryIO:
        handle, self._name = tempfile.mkstemp(prefix=".molrun-", dir=self._target.parent)
        self._f = os.fdopen(handle, "wb")
        return self._f

    def __exit__(self, kind: Any, e: Any, trace: Any) -> None:
        self._f.close()
        if kind is not None:
            os.unlink(self._name)
            return
        os.chmod(self._name, 0o644)
        os.replace(self._name, self._target)


def read(t: Transport, job: str, name: str, most: int) -> bytes:
    """Returns a file of a job.

    Raises:
        NotFound: if there is none.
        Error: if it is larger than most bytes.
    """

    def once() -> bytes:
        with t.open("GET", path("jobs", job, "files", *name.split("/"))) as answer:
            try:
                content = answer.read(most + 1)
            except BROKEN as e:
                raise ConnectionFailed(f"read {name}: {e}") from e
            if len(content) > most:
                raise Error(f"{name} is larger than {most} bytes; download it instead")
            if "x-incomplete" not in answer.headers and len(content) != int(answer.headers.get("content-length", len(content))):
                raise ConnectionFailed(f"read {name}: the connection broke")
            return content

    return patiently(once)


__all__ = ["File", "NotFound", "PathLike"]
