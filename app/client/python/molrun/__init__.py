"""Run protein and molecular-simulation jobs on a molrun service.

    import molrun
    lab = molrun.Client()  # the profile of `molrun login`
    job = lab.submit("cg-idp", sequences=["DSHAKRHHGY"], steps=1_000_000)
    for event in job.follow():
        print(event)
    job.result().download("out")
"""

from ._aio import AsyncBatch, AsyncClient, AsyncJob, AsyncResult
from ._client import Client
from ._errors import (
    AuthenticationFailed,
    ConfigError,
    Conflict,
    ConnectionFailed,
    Error,
    Fault,
    Forbidden,
    Invalid,
    JobFailed,
    NotFound,
    QuotaExceeded,
    RateLimited,
    ServiceError,
    Unavailable,
    WaitTimeout,
)
from ._files import File
from ._jobs import Batch, Event, Job, Result
from ._tables import Column, Series, Table

__all__ = [
    "AsyncBatch",
    "AsyncClient",
    "AsyncJob",
    "AsyncResult",
    "AuthenticationFailed",
    "Batch",
    "Client",
    "Column",
    "ConfigError",
    "Conflict",
    "ConnectionFailed",
    "Error",
    "Event",
    "Fault",
    "File",
    "Forbidden",
    "Invalid",
    "Job",
    "JobFailed",
    "NotFound",
    "QuotaExceeded",
    "RateLimited",
    "Result",
    "Series",
    "ServiceError",
    "Table",
    "Unavailable",
    "WaitTimeout",
]
