package host

import (
	"context"
	"path/filepath"
	"time"

	"molrun/app/client"
)

// Names in the data directory.
const (
	Database   = "jobs.db"
	Algorithms = "algorithms"   // folders of algorithms that jobs need
	Socket     = "control.sock" // control socket; mode 0600, so only the operator can open it
)

// LockTimeout limits the wait for another command that has locked the data directory.
const LockTimeout = 15 * time.Second

// Running reports whether a service is listening on the control socket.
func Running(ctx context.Context, data string) bool {
	conn, err := client.DialControl(ctx, filepath.Join(data, Socket))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// Control returns a client of the service running on the data directory.
func Control(data string) *client.Control {
	return client.NewControl(filepath.Join(data, Socket))
}
