package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// healthCommand is for containers, whose images often have no curl.
func healthCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "health",
		Short: "Ask the running service whether it is well",
		Long:  "Ask GET /healthz of the service that listens on the configured address. Exits with 0 if it is well.",
		Args:  cobra.NoArgs,
	}
	flags := addConfigFlags(c, true)
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := flags.load()
		if err != nil {
			return err
		}
		host, port, err := net.SplitHostPort(config.Listen)
		if err != nil {
			return usageError{fmt.Errorf("listen: %w", err)}
		}
		if host == "" || net.ParseIP(host).IsUnspecified() {
			host = "127.0.0.1"
		}
		ctx, cancel := context.WithTimeout(c.Context(), 5*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("the service does not answer: %w", err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("the service answers %s", response.Status)
		}
		return nil
	}
	return c
}
