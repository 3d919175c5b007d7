package host

import (
	"syscall"

	"molrun/app/server/config"
)

// Files that the service may have open besides connections and their transfers:
// database, logs, listeners, results being collected, tasks being started. A
// quarter of what the system allows, within these bounds.
const (
	minReserved = 24
	maxReserved = 1024
)

// filesPerTransfer is what an upload or download has open besides its
// connection: a directory and a file.
const filesPerTransfer = 2

// OpenFiles returns how many files this process may have open at once. Go's runtime
// has raised the limit as far as it may.
func OpenFiles() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	return int(min(limit.Cur, 1<<30)), nil
}

// FitOpenFiles lowers the bounds on connections and transfers to a number of
// open files, so that clients can't use up those of the service itself.
func FitOpenFiles(l config.Limits, files int) config.Limits {
	left := files - max(minReserved, min(maxReserved, files/4))
	l.Streams = max(1, min(l.Streams, left/(3*filesPerTransfer)))
	l.StreamsPerKey = min(l.StreamsPerKey, l.Streams)
	l.Connections = max(2, min(l.Connections, (left-l.Streams*filesPerTransfer)/2)) // as many may wait for others of their address
	l.Listeners = max(1, min(l.Listeners, l.Connections/2))
	l.ListenersPerKey = min(l.ListenersPerKey, l.Listeners)
	return l
}
