"""Broken connections, and a killed service."""

from __future__ import annotations

import asyncio
import pathlib
import threading
import time
from typing import Callable, List

import pytest
from conftest import PATIENCE, Proxy, Service

import molrun


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_upload_resumes(service: Service, tmp_path: pathlib.Path) -> None:
    # A break costs at most a block of 8 MiB, and starting over 40 MiB on average.
    size = 100 << 20
    proxy = Proxy(service.base, cut_at=[size // 5, size // 5 * 3])
    lab = service.client(base=proxy.base)
    file = tmp_path / "large.txt"
    file.write_bytes(b"0123456789abcdef" * (size // 16))
    sent = lab.upload(file)
    assert sent.size == size and sent.sent
    assert size <= proxy.sent < 1.5 * size and proxy.cuts == 2
    before = proxy.sent
    assert not lab.upload(file).sent and proxy.sent - before < 100_000
    assert lab.submit("size", data=sent).wait(PATIENCE).figures["bytes"] == size
    proxy.close()


def test_download_resumes(service: Service, tmp_path: pathlib.Path) -> None:
    size = 8 << 20
    job = service.client().submit("shell", script=f"head -c {size} /dev/urandom >out/large").wait(PATIENCE)
    proxy = Proxy(service.base, most=3 << 20)
    through = service.client(base=proxy.base).job(job.name)
    assert through.result().file("large", tmp_path / "large").stat().st_size == size
    assert (tmp_path / "large").read_bytes() == job.result().read("large")
    assert proxy.cuts >= 2 and [p.name for p in tmp_path.iterdir()] == ["large"]
    whole = through.result().download(tmp_path / "out")
    assert (tmp_path / "out" / "large") in whole and (tmp_path / "out" / "large").stat().st_size == size
    proxy.close()


def test_waiting_survives_a_killed_service(fresh: Service) -> None:
    lab = fresh.client()
    gate = fresh.gate / "open"
    job = lab.submit("shell", script=f"until [ -e {gate} ]; do sleep 0.1; done; echo released")
    waited, heard = [], []  # type: List[molrun.Job], List[molrun.Event]
    follower = lab.job(job.name)
    threads = [threading.Thread(target=lambda: waited.append(job.wait())), threading.Thread(target=lambda: heard.extend(follower.follow()))]
    for t in threads:
        t.start()
    until(lambda: lab.job(job.name).status == "RUNNING" and bool(heard))
    fresh.kill()
    time.sleep(1)
    fresh.start()
    gate.touch()
    for t in threads:
        t.join(PATIENCE)
    assert waited and waited[0].status == "COMPLETED"
    assert heard[-1].kind == "end" and [str(e) for e in heard if e.kind == "log"] == ["released"]


def test_requests_survive_a_restart_once_the_service_has_responded(fresh: Service, tmp_path: pathlib.Path) -> None:
    lab = fresh.client()
    with pytest.raises(molrun.ConnectionFailed):
        fresh.kill()
        lab.whoami()  # the service has never responded
    fresh.start()
    lab.whoami()
    fresh.kill()
    threading.Timer(1, fresh.start).start()
    assert lab.submit("shell", script="true").wait(PATIENCE).status == "COMPLETED"


def test_fifty_jobs_at_once_with_asyncio(service: Service) -> None:
    async def one(lab: molrun.AsyncClient, i: int) -> str:
        job = await lab.submit("shell", script=f"echo {i} >out/n", name=f"async-{i}")
        async for event in job.follow():
            if event.kind == "end":
                break
        return await job.result().text("n")

    async def all_() -> List[str]:
        async with molrun.AsyncClient(service.base, service.key) as lab:
            texts = await asyncio.gather(*(one(lab, i) for i in range(50)))
            assert len([j async for j in lab.jobs(search="async-")]) == 50
            batch = await lab.batch("shell", each={"script": ["true", "exit 1"]})
            await batch.wait()
            assert isinstance(batch, molrun.AsyncBatch) and batch.counts["FAILED"] == 1
            assert len(await batch.table()) == 2 and len([j async for j in batch.rows()]) == 2
            with pytest.raises(molrun.NotFound):
                await lab.job("absent")
            return list(texts)

    assert asyncio.run(all_()) == [f"{i}\n" for i in range(50)]


def test_cancelled_asyncio_task_ends_its_stream(service: Service) -> None:
    async def follow() -> float:
        async with molrun.AsyncClient(service.base, service.key) as lab:
            job = await lab.submit("shell", script="sleep 600")

            async def listen() -> None:
                async for _ in job.follow():
                    pass

            task = asyncio.create_task(listen())
            await asyncio.sleep(0.5)
            began = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await job.cancel()
            return time.monotonic() - began

    assert asyncio.run(follow()) < PATIENCE
