package cli

import (
	"errors"
	"net/http"
	"strings"

	"molrun/app/base/fault"
	"molrun/app/cli/remote"
	"molrun/app/client"
)

// Exit codes tell scripts why a command failed.
const (
	exitFailed  = 1
	exitUsage   = 2
	exitKey     = 3 // the API key was rejected
	exitMissing = 4 // a named object was not found
	exitInvalid = 5 // a value is invalid or a name is taken
	exitRate    = 6 // too many requests
	exitWaited  = 7 // timed out waiting; the job continues
	exitQuota   = 8 // a quota or the disk is full
	exitJob     = 9 // the awaited job FAILED

	exitDamaged  = 10 // the backup is complete, but the data directory is damaged
	exitUntested = 11 // no algorithm could be tested

	exitInterrupted = 130 // Ctrl-C, as in shells

	// 74 is datadir.ExitDatabaseFailed.
)

// silent is an error whose message has already been printed.
type silent struct{ code int }

func (s silent) Error() string { return "" }

// exitCode maps an error to the exit code of the process.
func exitCode(err error) int {
	var quiet silent
	var refused *client.Error
	var damaged damagedError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &quiet):
		return quiet.code
	case errors.As(err, &damaged):
		return exitDamaged
	case errors.As(err, new(remote.UsageError)), foundByCobra(err):
		return exitUsage
	case errors.As(err, new(remote.KeyError)):
		return exitKey
	case errors.As(err, new(*remote.WaitTimeoutError)):
		return exitWaited
	case errors.As(err, new(*remote.StillRunningError)):
		return exitInterrupted
	case errors.As(err, new(*remote.JobFailedError)):
		return exitJob
	case errors.As(err, &refused):
		return exitCodeOf(fault.Code(refused.Code), refused.Status)
	}
	return exitCodeOf(fault.CodeOf(err), 0)
}

// foundByCobra reports whether err is a command-line error from cobra. It compares the
// message, because cobra has no types for these errors.
func foundByCobra(err error) bool {
	return strings.HasPrefix(err.Error(), "unknown command") || strings.HasPrefix(err.Error(), "required flag")
}

func exitCodeOf(code fault.Code, status int) int {
	switch {
	case code == fault.Unauthorized || code == fault.Forbidden:
		return exitKey
	case code == fault.NotFound:
		return exitMissing
	case code == fault.QuotaExceeded || code == fault.StorageFull:
		return exitQuota
	case code == fault.RateLimited:
		return exitRate
	case code == fault.Invalid || status == http.StatusUnprocessableEntity || status == http.StatusConflict || status == http.StatusBadRequest:
		return exitInvalid
	case code == fault.JobAlreadyExists:
		return exitInvalid
	}
	return exitFailed
}
