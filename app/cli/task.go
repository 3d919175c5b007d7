package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"molrun/app/task"
)

// taskCommand is what executors start for each attempt. It is hidden: nobody
// types it, and its protocol is files.
func taskCommand() *cobra.Command {
	var options task.Options
	var isolation string
	var inside bool
	c := &cobra.Command{
		Use:    "task DIR",
		Short:  "Run the attempt in DIR to its outcome",
		Hidden: true,
		Args:   cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if inside {
				return task.Inside()
			}
			if len(args) != 1 {
				return usageError{errors.New("task needs the directory of an attempt")}
			}
			if options.Isolation, err = task.ParseIsolation(isolation); err != nil {
				return usageError{err}
			}
			return task.Run(c.Context(), args[0], options)
		},
	}
	c.Flags().IntVar(&options.LockFD, "lock-fd", 0, "descriptor of the lock, taken by the starter")
	c.Flags().StringVar(&isolation, "isolation", "", "JSON of how programs are kept from the rest of the machine")
	c.Flags().BoolVar(&inside, "inside", false, "be the first process in a sandbox instead")
	return c
}
