// Package cli implements the command line of molrun: it parses flags, loads the
// configuration and runs the requested command. Each file holds one group of operator
// commands; user commands are in package remote. The packages of app/server do the work,
// together with the subpackages doctor and trial.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"molrun/app/base/fault"
	"molrun/app/base/plaintext"
	"molrun/app/cli/remote"
	_ "molrun/app/task/gauged" // its init function runs the task command
)

// Main runs the command line and returns the exit code of the process.
func Main(args []string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2) // buffered, so that a second signal right after the first is not lost
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() { // runs until the process exits
		<-signals
		cancel()
		second := <-signals
		signal.Reset(second)
		syscall.Kill(os.Getpid(), second.(syscall.Signal)) //nolint:errcheck // a process may signal itself
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
		Long:  `Run protein and simulation jobs on your lab's server, or run that server.`,
		Example: `  molrun demo                                       # see it work, in a minute
  molrun serve --init --listen 127.0.0.1:8080       # start the service
  molrun key create --organization lab --email ann@lab.example`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.Version = version // enables --version
	root.SetVersionTemplate(versionLine())
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(remote.LoginCommand(localKey))
	root.AddCommand(remote.Commands(version)...)
	root.AddCommand(
		serveCommand(), keyCommand(), userCommand(), signInCommand(), demoCommand(), algorithmsCommand(),
		engineCommand(), healthCommand(), versionCommand(),
		secretCommand(), auditCommand(),
		drainCommand(), resumeCommand(), storageCommand(), usageCommand(), pruneCommand(), unitCommand(), makeRoomCommand(),
		packCommand(), unpackCommand(),
		backupCommand(), restoreCommand(), checkCommand(), compactCommand(), doctorCommand(), reportCommand(),
	)
	group(root)
	return root
}

// commandGroups lists the headings of the help and the commands under each of them.
var commandGroups = []struct{ title, commands string }{
	{"Run jobs:", "submit run batch rerun estimate algorithm algorithms"},
	{"Follow jobs and get results:", "jobs status wait logs events top results table plot share cancel retry rm"},
	{"Files, sign-in and assistants:", "files login logout whoami open mcp"},
	{"Run a service:", "demo serve key user sign-in drain resume health storage usage prune audit doctor report"},
	{"Look after a service:", "backup restore check compact secret systemd-unit pack unpack"},
}

// group assigns the commands to their groups in the help.
func group(root *cobra.Command) {
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range root.Commands() {
			if slices.Contains(strings.Fields(g.commands), c.Name()) {
				c.GroupID = g.title
			}
		}
	}
}

// findCommand rejects unknown commands. For an unknown subcommand of a group, cobra would
// print the help and succeed.
func findCommand(root *cobra.Command, args []string) error {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	c, rest, err := root.Find(args)
	if err == nil && c.Runnable() || len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return nil
	}
	word := slices.IndexFunc(rest, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if word < 0 || err == nil && word > 0 {
		return nil // Execute reports the flags
	}
	if wrong := c.ParseFlags(rest[:word]); wrong != nil { // the word may be a flag's value
		return c.FlagErrorFunc()(c, wrong)
	}
	var known []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	return remote.Usagef("unknown command %q%s; see %s --help", rest[word], orNearest("", rest[word], known), c.CommandPath())
}

// flagError reports an invalid flag and suggests the one that was probably meant.
func flagError(c *cobra.Command, err error) error {
	hint := ""
	if unknown := new(pflag.NotExistError); errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		hint = orNearest("--", unknown.GetSpecifiedName(), known)
	}
	return remote.Usagef("%w%s; see %s --help", err, hint, c.CommandPath())
}

// orNearest suggests the known word nearest to word. It returns "" if none is close.
func orNearest(prefix, word string, known []string) string {
	near := plaintext.Nearest(word, known)
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s%s?", prefix, near)
}
