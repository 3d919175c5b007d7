package cli

import (
	"syscall"

	"molrun/app/config"
)

// Files that the service may have open besides connections and what they
// transfer: database, logs, listeners, results being collected, tasks being
// started. A quarter of what the system allows, within these bounds.
const (
	fewestOwnFiles = 24
	mostOwnFiles   = 1024
)

// filesPerTransfer is what an upload or download has open besides its
// connection: a folder and a file.
const filesPerTransfer = 2

// openFiles gives how many files this process may have open at once. Go's
// runtime has raised the limit as far as it may.
func openFiles() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	return int(min(limit.Cur, 1<<30)), nil
}

// fitFiles lowers the bounds on connections and transfers to what so many
// open files allow, so that clients can't take what the service needs itself.
func fitFiles(l config.Limits, files int) config.Limits {
	left := files - max(fewestOwnFiles, min(mostOwnFiles, files/4))
	l.Streams = max(1, min(l.Streams, left/(3*filesPerTransfer)))
	l.StreamsPerKey = min(l.StreamsPerKey, l.Streams)
	l.Connections = max(2, min(l.Connections, left-l.Streams*filesPerTransfer))
	return l
}
