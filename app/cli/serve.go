package cli

import (
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"molrun/app/server"
	"molrun/app/server/config"
)

func serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Start the service",
		Long: `Start the service: the API and the scheduler. SIGINT or SIGTERM stops it; running jobs
continue, and the next start takes them over. With a new data directory it prints a sign-in
link for the first admin, if its output is a terminal.

Flags take precedence over environment variables (MOLRUN_LISTEN, MOLRUN_RUNNER_CPUS and so
on), and these over the configuration file.`,
		Example: `  molrun serve --init
  molrun serve --data /srv/molrun --listen :8080 --public-url https://molrun.lab.example`,
		Args: cobra.NoArgs,
	}
	flags := addConfigFlags(c, true)
	init := c.Flags().Bool("init", false, "create the data directory if it does not exist (an empty one is always accepted)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := flags.loadConfig()
		if err != nil {
			return err
		}
		o := server.Options{Log: newLogger(config, os.Stderr), Version: version, Init: *init}
		o.Started = func(string) { greet(c.Context(), config, os.Stdout) }
		return server.Run(c.Context(), config, o)
	}
	return c
}

// newLogger returns a logger that writes readable lines to a terminal and JSON elsewhere.
func newLogger(c config.Config, w *os.File) zerolog.Logger {
	var out io.Writer = w
	if c.Log.Format == "pretty" || c.Log.Format == "auto" && isatty.IsTerminal(w.Fd()) {
		out = zerolog.ConsoleWriter{Out: w, TimeFormat: time.DateTime}
	}
	level, err := zerolog.ParseLevel(c.Log.Level)
	if err != nil { // Config.Check already rejects it
		level = zerolog.InfoLevel
	}
	return zerolog.New(out).Level(level).With().Timestamp().Logger()
}
