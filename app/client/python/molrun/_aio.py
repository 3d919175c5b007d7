"""The asyncio client: every method of a client and of its jobs is a coroutine."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
from typing import Any, AsyncIterator, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, TypeVar

from . import _jobs
from ._client import Client
from ._files import File
from ._jobs import Event, Stop
from ._tables import Series, Table

T = TypeVar("T")

# Maximum number of concurrent requests, each in its own thread.
_THREADS = 128


class AsyncClient:
    """Client for asyncio. Its arguments and methods are those of Client.

    Requests run in threads, so only the standard library is needed. Use it as
    `async with AsyncClient() as lab:`, or close it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.sync = Client(*args, **kwargs)
        self._pool = concurrent.futures.ThreadPoolExecutor(_THREADS, thread_name_prefix="molrun")

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes connections and ends the threads."""
        self.sync.close()
        self._pool.shutdown(wait=False)

    async def whoami(self) -> Dict[str, Any]:
        return await self._run(self.sync.whoami)

    async def algorithms(self, search: str = "") -> List[Dict[str, Any]]:
        return await self._run(self.sync.algorithms, search)

    async def algorithm(self, type: str, version: Optional[str] = None) -> Dict[str, Any]:
        return await self._run(self.sync.algorithm, type, version)

    async def submit(self, type: str, settings: Optional[Mapping[str, Any]] = None, **more: Any) -> "AsyncJob":
        return AsyncJob(self, await self._run(self.sync.submit, type, settings, **more))

    async def batch(self, type: str, settings: Optional[Mapping[str, Any]] = None, **more: Any) -> "AsyncBatch":
        return AsyncBatch(self, await self._run(self.sync.batch, type, settings, **more))

    async def estimate(self, type: str, settings: Optional[Mapping[str, Any]] = None, **more: Any) -> Dict[str, Any]:
        return await self._run(self.sync.estimate, type, settings, **more)

    async def job(self, name: str) -> "AsyncJob":
        return self._of(await self._run(self.sync.job, name))

    async def jobs(self, **filters: Any) -> AsyncIterator["AsyncJob"]:
        async for j in self._each(self.sync.jobs(**filters)):
            yield self._of(j)

    async def upload(self, file: Any, name: Optional[str] = None, folder: Optional[str] = None) -> File:
        return await self._run(self.sync.upload, file, name, folder)

    async def upload_all(self, files: Any, folder: Optional[str] = None) -> List[File]:
        return await self._run(self.sync.upload_all, files, folder)

    async def files(self, folder: Optional[str] = None, organization: bool = False) -> AsyncIterator[Dict[str, Any]]:
        async for f in self._each(self.sync.files(folder, organization)):
            yield f

    async def delete_file(self, file: Any) -> None:
        await self._run(self.sync.delete_file, file)

    def _of(self, job: _jobs.Job) -> "AsyncJob":
        return AsyncBatch(self, job) if isinstance(job, _jobs.Batch) else AsyncJob(self, job)

    async def _run(self, do: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, functools.partial(do, *args, **kwargs))

    async def _each(self, iterator: Iterator[T]) -> AsyncIterator[T]:
        end: Any = object()
        while True:
            one: T = await self._run(next, iterator, end)
            if one is end:
                return
            yield one


class AsyncJob:
    """Job for asyncio. sync is the underlying Job, whose record, name and status can be read at any time."""

    def __init__(self, client: AsyncClient, job: _jobs.Job) -> None:
        self._client, self.sync = client, job

    @property
    def record(self) -> Dict[str, Any]:
        return self.sync.record

    @property
    def name(self) -> str:
        return self.sync.name

    @property
    def status(self) -> str:
        return self.sync.status

    @property
    def figures(self) -> Dict[str, Any]:
        return self.sync.figures

    def __repr__(self) -> str:
        return repr(self.sync).replace("<", "<Async", 1)

    def _repr_html_(self) -> str:
        return self.sync._repr_html_()

    async def refresh(self) -> "AsyncJob":
        await self._client._run(self.sync.refresh)
        return self

    async def wait(self, timeout: Optional[float] = None, check: Optional[bool] = None) -> "AsyncJob":
        kwargs = {} if check is None else {"check": check}
        await self._client._run(self.sync.wait, timeout, **kwargs)
        return self

    async def follow(self, logs: bool = True) -> AsyncIterator[Event]:
        stop = Stop()
        try:
            async for e in self._client._each(self.sync._follow(logs, stop)):
                yield e
        finally:
            stop.stop()  # a thread might be waiting for the next event

    async def log(self) -> str:
        return await self._client._run(self.sync.log)

    async def views(self) -> List[Dict[str, Any]]:
        return await self._client._run(self.sync.views)

    async def series(self, name: str, file: Optional[str] = None, points: int = 2000) -> Series:
        return await self._client._run(self.sync.series, name, file, points)

    async def table(self, *args: Any, **kwargs: Any) -> Table:
        return await self._client._run(self.sync.table, *args, **kwargs)

    async def cancel(self) -> "AsyncJob":
        await self._client._run(self.sync.cancel)
        return self

    async def retry(self) -> "AsyncJob":
        await self._client._run(self.sync.retry)
        return self

    async def delete(self) -> None:
        await self._client._run(self.sync.delete)

    async def share(self, days: float = 7, files: Sequence[str] = ()) -> str:
        return await self._client._run(self.sync.share, days, files)

    async def show(self, days: float = 1, height: int = 480) -> "_jobs.Shown":
        return await self._client._run(self.sync.show, days, height)

    def result(self) -> "AsyncResult":
        return AsyncResult(self._client, self.sync.result())


class AsyncBatch(AsyncJob):
    """Batch for asyncio."""

    @property
    def counts(self) -> Dict[str, int]:
        assert isinstance(self.sync, _jobs.Batch)
        return self.sync.counts

    async def rows(self) -> AsyncIterator[AsyncJob]:
        async for j in self._client.jobs(batch=self.name):
            yield j


class AsyncResult:
    """Result for asyncio."""

    def __init__(self, client: AsyncClient, result: _jobs.Result) -> None:
        self._client, self.sync = client, result

    async def files(self) -> Dict[str, int]:
        return await self._client._run(self.sync.files)

    async def read(self, name: str, most: int = 256 << 20) -> bytes:
        return await self._client._run(self.sync.read, name, most)

    async def text(self, name: str) -> str:
        return await self._client._run(self.sync.text, name)

    async def json(self, name: str) -> Any:
        return await self._client._run(self.sync.json, name)

    async def download(self, folder: Any, partial: bool = False) -> List[Any]:
        return list(await self._client._run(self.sync.download, folder, partial))

    async def archive(self, file: Any, partial: bool = False) -> Any:
        return await self._client._run(self.sync.archive, file, partial)

    async def file(self, name: str, to: Any) -> Any:
        return await self._client._run(self.sync.file, name, to)
