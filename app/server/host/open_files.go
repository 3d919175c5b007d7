package host

import (
	"syscall"

	"molrun/app/server/config"
)

// Files that the service can have open in addition to connections and their transfers:
// database, logs, listeners, results being collected, tasks being started. A quarter of
// the system's limit, within these bounds.
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
	l.Connections = max(2, min(l.Connections, (left-l.Streams*filesPerTransfer)/2)) // as many again can wait for others from their address
	l.Listeners = max(1, min(l.Listeners, l.Connections/2))
	l.ListenersPerKey = min(l.ListenersPerKey, l.Listeners)
	return l
}
