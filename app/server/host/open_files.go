package host

import (
	"syscall"

	"molrun/app/server/config"
)

// Bounds on the number of open files reserved for everything except connections and their
// transfers: the database, logs, listeners, results being collected, and tasks being
// started. Within these bounds, it is a quarter of the open-file limit.
const (
	minReserved = 24
	maxReserved = 1024
)

// filesPerTransfer is the number of files that an upload or download has open in addition
// to its connection: a directory and a file.
const filesPerTransfer = 2

// OpenFiles returns how many files this process can have open at once. Go's runtime has
// raised the soft limit as far as allowed.
func OpenFiles() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	return int(min(limit.Cur, 1<<30)), nil
}

// FitOpenFiles lowers the limits on connections and transfers to fit a number of open
// files, so that clients cannot exhaust the service's own files.
func FitOpenFiles(l config.Limits, files int) config.Limits {
	left := files - max(minReserved, min(maxReserved, files/4))
	l.Streams = max(1, min(l.Streams, left/(3*filesPerTransfer)))
	l.StreamsPerKey = min(l.StreamsPerKey, l.Streams)
	l.Connections = max(2, min(l.Connections, (left-l.Streams*filesPerTransfer)/2)) // as many more can wait for other connections from their address
	l.Listeners = max(1, min(l.Listeners, l.Connections/2))
	l.ListenersPerKey = min(l.ListenersPerKey, l.Listeners)
	return l
}
