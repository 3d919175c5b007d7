// Package cli is the command line of molrun: it reads flags and settings and starts
// what was asked for. Each file has one group of commands; the work is done by
// packages daemon, backup, check, audit and doctor.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"molrun/app/fault"
	_ "molrun/app/task/start" // the command `task`
)

// Main runs the command line and returns the exit code of the process.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	go func() { // ends with the process; a second signal ends the process at once
		<-ctx.Done()
		stop()
	}()
	syscall.Umask(0o077) // new files are private to their owner
	root := newRoot()
	root.SetArgs(args)
	err := findCommand(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err != nil && !errors.As(err, new(silent)) {
		fmt.Fprintln(os.Stderr, "molrun:", fault.Text(err))
	}
	return exitCode(err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "molrun",
		Short: "Run protein and molecular-simulation jobs for a lab",
		Long: `molrun is one program that takes jobs over HTTP, runs them on this machine and
keeps their results.`,
		Example: `  molrun demo                                       # see it work, in a minute
  molrun serve --listen 127.0.0.1:8080              # start the service
  molrun key create --organization lab --email ann@lab.example`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
	})
	root.AddCommand(
		serveCommand(), keyCommand(), demoCommand(), algorithmsCommand(),
		engineCommand(), healthCommand(), versionCommand(),
		secretCommand(), auditCommand(),
		drainCommand(), resumeCommand(), storageCommand(), pruneCommand(), unitCommand(),
		backupCommand(), restoreCommand(), checkCommand(), compactCommand(), doctorCommand(),
	)
	return root
}

// findCommand refuses an unknown command of a group. cobra would show the help of
// the group and succeed.
func findCommand(root *cobra.Command, args []string) error {
	c, rest, err := root.Find(args)
	if err != nil || c.Runnable() || len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return nil // Execute reports errors of Find
	}
	return usageError{fmt.Errorf("unknown command %q; see %s --help", rest[0], c.CommandPath())}
}
