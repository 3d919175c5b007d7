package doctor

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"molrun/app/server/config"
	"molrun/app/server/host"
	"molrun/storage/kv/boltfile"
)

// installation is the input of the checks.
type installation struct {
	config   config.Config
	data     string // absolute path
	database string
	holder   boltfile.Process // process that has the database open
	held     bool
	running  bool // a service responds on the control socket
	now      time.Time
}

// inspect determines the state of the data directory.
func inspect(ctx context.Context, c config.Config) *installation {
	in := &installation{config: c, data: c.Data, now: time.Now()}
	if abs, err := filepath.Abs(c.Data); err == nil {
		in.data = abs
	}
	in.config.Data = in.data
	in.database = filepath.Join(in.data, host.Database)
	in.holder, in.held = boltfile.Holder(in.database)
	in.running = host.Running(ctx, in.data)
	return in
}

// existingDir returns the data directory or, if it does not exist yet, its nearest
// existing parent.
func (in *installation) existingDir() string {
	dir := in.data
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}
