package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"molrun/web/client"
)

func secretCommand() *cobra.Command {
	c := &cobra.Command{Use: "secret", Short: "Renew what signs links"}
	c.AddCommand(secretRotateCommand())
	return c
}

func secretRotateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "rotate",
		Short: "Make a new key that signs links",
		Long: `Make a new key that signs links. A running service uses it at once. Links that
were made before go on working until they expire, at most a week, then the old
key goes with the next rotation. To end all links at once, stop the service,
remove the file named secret from the data directory, and start it again.`,
		Example: "  molrun secret rotate",
		Args:    cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			kid, err := control.RotateSecret(ctx)
			if err == nil {
				fmt.Fprintf(c.ErrOrStderr(), "links are signed with key %s from now on\n", kid)
			}
			return err
		})
	}
	return c
}
