package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/cli/doctor"
	"molrun/app/cli/remote"
)

// healthCommand is meant for containers, whose images often have no curl.
func healthCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "health",
		Short: "Check service health",
		Long: `Request GET /healthz from the service of the data directory, wherever it listens, without any
proxy. A user who can't read that directory requests it from the configured address. Prints
one line and exits with 0 if the service is healthy, 1 if it is not or does not respond in
time, and 2 or 5 if it could not be asked.`,
		Example: "  molrun health --data /srv/molrun\n  molrun health --listen 127.0.0.1:8080 --timeout 2s",
		Args:    cobra.NoArgs,
	}
	flags := addConfigFlags(c, true)
	timeout := c.Flags().Duration("timeout", 5*time.Second, "time to wait for a response")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *timeout <= 0 {
			return remote.Usagef("--timeout: use a time above 0, such as 5s")
		}
		config, err := flags.loadConfig()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(c.Context(), *timeout)
		defer cancel()
		address, err := doctor.CheckHealth(ctx, config, flags.listen)
		if err == nil {
			_, err = fmt.Fprintf(c.OutOrStdout(), "healthy: %s\n", address)
		}
		return err
	}
	return c
}
