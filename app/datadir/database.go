package datadir

import (
	"os"

	"github.com/rs/zerolog"

	"molrun/app/config"
	"molrun/storage"
)

// ExitDatabaseFailed is the exit code of a process whose database failed under
// it (EX_IOERR).
const ExitDatabaseFailed = 74

// StorageOptions are the options of the database. When the database fails, the
// process ends: nothing that was confirmed is lost, and a restart recovers.
func StorageOptions(c config.Config, log zerolog.Logger) storage.Options {
	return storage.Options{
		MaxSize:       int64(c.Database.MaxSize),
		AnyFileSystem: c.Database.FileSystem == "any",
		Warn:          func(text string) { log.Error().Msg(text) },
		Fatal: func(err error) {
			log.Error().Err(err).Msg("the database failed; restart the service, nothing that was confirmed is lost")
			os.Exit(ExitDatabaseFailed)
		},
	}
}
