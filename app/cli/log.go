package cli

import (
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"

	"molrun/app/config"
)

// newLogger writes for people on a terminal and JSON else.
func newLogger(c config.Config, w *os.File) zerolog.Logger {
	var out io.Writer = w
	if c.Log.Format == "pretty" || c.Log.Format == "auto" && isatty.IsTerminal(w.Fd()) {
		out = zerolog.ConsoleWriter{Out: w, TimeFormat: time.DateTime}
	}
	level, err := zerolog.ParseLevel(c.Log.Level)
	if err != nil { // Config.Check has seen to it
		level = zerolog.InfoLevel
	}
	return zerolog.New(out).Level(level).With().Timestamp().Logger()
}
