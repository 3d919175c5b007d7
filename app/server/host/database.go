package host

import (
	"errors"
	"os"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/server/config"
	"molrun/storage"
	"molrun/storage/kv/boltfile"
)

// ExitDatabaseFailed is the exit code of a process whose database failed or was removed
// while in use (EX_IOERR).
const ExitDatabaseFailed = 74

// goneNotice is how long a service that has lost its data directory rejects requests and
// reports that it is not ready, before it exits.
const goneNotice = 3 * time.Second

// StorageOptions returns the options of the database. When the database fails, the
// process exits. No confirmed change is lost, and a restart recovers.
func StorageOptions(c config.Config, log zerolog.Logger) storage.Options {
	return storage.Options{
		MaxSize:       int64(c.Database.MaxSize),
		AnyFileSystem: c.Database.FileSystem == "any",
		Warn:          func(text string) { log.Error().Msg(text) },
		Announce:      func(text string) { log.Info().Msg(text) },
		Fatal: func(err error) {
			if errors.Is(err, boltfile.ErrGone) {
				log.Error().Err(err).Str("data", c.Data).
					Msg("the data directory was deleted, moved or replaced; shutting down; restore it before the next start")
				time.AfterFunc(goneNotice, func() { os.Exit(ExitDatabaseFailed) })
				return
			}
			log.Error().Err(err).Msg("database failed; restart the service (no acknowledged changes are lost)")
			os.Exit(ExitDatabaseFailed)
		},
	}
}
