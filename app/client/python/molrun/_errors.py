"""What can go wrong, as exceptions that tell it."""

from __future__ import annotations

from typing import Any, List, Mapping, NamedTuple, Optional, Tuple, Union


class Error(Exception):
    """Anything that this package reports."""


class ConfigError(Error):
    """It is not known which service to use, or with which key."""


class ConnectionFailed(Error):
    """The service does not answer, or the connection broke and could not be resumed."""


class WaitTimeout(Error, TimeoutError):
    """The time of a wait is over. The job goes on."""


class Fault(NamedTuple):
    """One mistake in a request."""

    loc: Tuple[Union[str, int], ...]  # where, such as ("body", "settings", "steps")
    msg: str
    type: str

    def __str__(self) -> str:
        place = ""
        for part in self.loc:
            if self.msg.startswith((f"line {part}:", f"line {part}, column ")):
                break  # the message names the line and column of a table
            place += f"[{part}]" if isinstance(part, int) else f".{part}"
        return f"{place.lstrip('.')}: {self.msg}"


class ServiceError(Error):
    """The service has refused a request, or failed."""

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
        self.status = status  # of HTTP
        self.code = code  # such as JOB_ALREADY_EXISTS; INVALID if there are faults
        self.message = message
        self.faults = faults  # every mistake of an invalid request
        self.request_id = request_id  # of the request in the service's log
        self.retry_after = retry_after  # seconds after which to try again, if the service says so


class AuthenticationFailed(ServiceError):
    """The service does not know the API key."""


class Forbidden(ServiceError):
    """The key may not do this."""


class QuotaExceeded(Forbidden):
    """The user or the organization would have more than it may."""


class NotFound(ServiceError):
    """There is no such thing, or it belongs to another organization."""


class Conflict(ServiceError):
    """What is there does not allow it, such as a job of this name with other settings."""


class Invalid(ServiceError):
    """The request has mistakes, all of them in faults."""


class RateLimited(ServiceError):
    """Too many requests; retry_after says when to try again."""


class Unavailable(ServiceError):
    """The service cannot do it now, or has failed."""


class JobFailed(Error):
    """A job that was waited for has failed."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        failure = record.get("failure") or {}
        self.job_name: str = record.get("jobName", "")
        self.code: str = failure.get("code", "")  # such as EXIT_STATUS
        self.message: str = failure.get("message", "")
        self.log_tail: str = failure.get("logTail", "")  # the end of what the program printed
        text = f"job {self.job_name} has failed: {self.message or self.code or 'see its log'}"
        super().__init__(text + (f"\n{self.log_tail}" if self.log_tail else ""))


def service_error(status: int, body: Any, headers: Mapping[str, str]) -> ServiceError:
    """Returns the exception for an answer that is no success.

    body is the decoded JSON, or None if it was none; headers have lower-case names.
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
        message = f"the server answered with status {status}; it may not be a molrun service"
    kinds = {401: AuthenticationFailed, 403: Forbidden, 404: NotFound, 409: Conflict, 422: Invalid, 429: RateLimited}
    kind = QuotaExceeded if code == "QUOTA_EXCEEDED" else kinds.get(status, Unavailable if status >= 500 else ServiceError)
    try:
        after: Optional[float] = float(headers.get("retry-after", ""))
    except ValueError:
        after = None
    return kind(status, code, message, tuple(faults), headers.get("x-request-id", ""), after)
