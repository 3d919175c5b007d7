package cli

import (
	"github.com/spf13/cobra"

	"molrun/app/task"
)

// taskCommand is what executors start for each attempt. It is hidden: nobody
// types it, and its protocol is files.
func taskCommand() *cobra.Command {
	var options task.Options
	c := &cobra.Command{
		Use:    "task DIR",
		Short:  "Run the attempt in DIR to its outcome",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return task.Run(c.Context(), args[0], options)
		},
	}
	c.Flags().IntVar(&options.LockFD, "lock-fd", 0, "descriptor of the lock, taken by the starter")
	return c
}
