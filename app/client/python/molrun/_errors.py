"""Exceptions."""

from __future__ import annotations

from typing import Any, List, Mapping, NamedTuple, Optional, Tuple, Union


class Error(Exception):
    """Base class of all exceptions of this package."""


class ConfigError(Error):
    """No service or no key is configured, or a profile is unusable."""


class ConnectionFailed(Error):
    """The service does not respond, or the connection broke and could not be resumed."""


class WaitTimeout(Error, TimeoutError):
    """The timeout of a wait has elapsed. The job continues."""


class Fault(NamedTuple):
    """An error in a request."""

    loc: Tuple[Union[str, int], ...]  # location, such as ("body", "settings", "steps")
    msg: str
    type: str

    def __str__(self) -> str:
        place = ""
        for part in self.loc:
            if self.msg.startswith((f"line {part}:", f"line {part}, column ")):
                break  # the message already gives the line and column of a table
            place += f"[{part}]" if isinstance(part, int) else f".{part}"
        return f"{place.lstrip('.')}: {self.msg}"


class ServiceError(Error):
    """The service rejected a request, or failed."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        faults: Tuple[Fault, ...] = (),
        request_id: str = "",
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__("\n".join(map(str, faults)) or message)
        self.status = status  # HTTP status
        self.code = code  # such as JOB_ALREADY_EXISTS; INVALID if there are faults
        self.message = message
        self.faults = faults  # all errors of an invalid request
        self.request_id = request_id  # identifies the request in the service's log
        self.retry_after = retry_after  # seconds to wait before retrying, if the service says so


class AuthenticationFailed(ServiceError):
    """The service does not accept the API key."""


class Forbidden(ServiceError):
    """The key does not have the right to do this."""


class QuotaExceeded(Forbidden):
    """The request exceeds a quota of the user or the organization."""


class NotFound(ServiceError):
    """It does not exist, or it belongs to another organization."""


class Conflict(ServiceError):
    """What is there does not allow it, such as a job of this name with other settings."""


class Invalid(ServiceError):
    """The request is invalid; faults lists all errors."""


class RateLimited(ServiceError):
    """Too many requests; retry after retry_after seconds."""


class Unavailable(ServiceError):
    """The service is temporarily unable to handle the request, or has failed."""


class JobFailed(Error):
    """A job failed while it was waited for."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        failure = record.get("failure") or {}
        self.job_name: str = record.get("jobName", "")
        self.code: str = failure.get("code", "")  # such as EXIT_STATUS
        self.message: str = failure.get("message", "")
        self.log_tail: str = failure.get("logTail", "")  # the last lines of the log
        text = f"job {self.job_name} failed: {self.message or self.code or 'see its log'}"
        super().__init__(text + (f"\n{self.log_tail}" if self.log_tail else ""))


def service_error(status: int, body: Any, headers: Mapping[str, str]) -> ServiceError:
    """Returns the exception for an error response.

    body is the decoded JSON, or None if it is not JSON; header names are lower-case.
    """
    code, message, faults = "", "", []  # type: str, str, List[Fault]
    if isinstance(body, dict):
        error = body.get("error")
        if isinstance(error, dict):
            code, message = str(error.get("code", "")), str(error.get("message", ""))
        detail = body.get("detail")
        if isinstance(detail, list):
            for d in detail:
                if isinstance(d, dict):
                    faults.append(Fault(tuple(d.get("loc") or ()), str(d.get("msg", "")), str(d.get("type", ""))))
    if faults:
        code, message = code or "INVALID", message or faults[0].msg
    if not message:
        message = f"the server responded with status {status}; it might not be a molrun service"
    kinds = {401: AuthenticationFailed, 403: Forbidden, 404: NotFound, 409: Conflict, 422: Invalid, 429: RateLimited}
    kind = QuotaExceeded if code == "QUOTA_EXCEEDED" else kinds.get(status, Unavailable if status >= 500 else ServiceError)
    try:
        after: Optional[float] = float(headers.get("retry-after", ""))
    except ValueError:
        after = None
    return kind(status, code, message, tuple(faults), headers.get("x-request-id", ""), after)
