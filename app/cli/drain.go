package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"molrun/app/client"
)

func drainCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "drain",
		Short: "Pause the queue, before maintenance",
		Long: `Start no more jobs until molrun resume, even after a restart. Running jobs continue, and on a
cluster so do jobs in its queue. Submissions are still accepted, and their records say why
they wait.`,
		Example: `  molrun drain --reason "new kernel on Friday"`,
		Args:    cobra.NoArgs,
	}
	reason := c.Flags().String("reason", "", "one line shown to users in their queued jobs")
	flags := addConfigFlags(c, false)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			d, err := control.Drain(ctx, *reason)
			if err == nil {
				fmt.Fprintf(c.ErrOrStderr(), "the queue has been paused since %s; to resume: molrun resume\n", d.Since.Local().Format("2006-01-02 15:04:05"))
			}
			return err
		})
	}
	return c
}

func resumeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "resume",
		Short:   "Resume the queue after molrun drain",
		Example: "  molrun resume",
		Args:    cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			err := control.Resume(ctx)
			if err == nil {
				fmt.Fprintln(c.ErrOrStderr(), "the queue is resumed")
			}
			return err
		})
	}
	return c
}
