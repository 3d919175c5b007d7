// Package cli is the command line of molrun: it reads flags and settings,
// joins the packages, and starts what was asked for.
//
// # Backups
//
// A directory of backups, as molrun backup makes it and molrun restore reads it,
// holds
//
//	molrun-backups.json    whose backups these are
//	20261121T034000Z/      a backup, named after its moment; may be removed alone
//	  backup.json          what it is, and the digest of SHA256SUMS
//	  SHA256SUMS           of every file in it, for sha256sum --check, too
//	  data/                the data directory: jobs.db, secret, uploads/, jobs/ ...
//	partial/               a backup that is not done; the next one goes on with it
//
// A file that the backup before has too is a hard link to that one's, as
// stored files never change: each backup is whole, and costs what is new. What
// damages such a file in place damages it in all of them, which
// molrun backup --deep finds and mends for the backups from then on. Nothing is
// ever linked to the live data. Why a backup is of one moment stands in hold.go.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"molrun/app/config"
	"molrun/app/fault"
	_ "molrun/app/task/start" // the command `task`
	"molrun/web/client"
)

// version is set by the linker.
var version = "dev"

// Exit codes, so that scripts can tell what went wrong.
const (
	exitFailed  = 1
	exitUsage   = 2
	exitKey     = 3 // the API key was refused
	exitMissing = 4 // what was named does not exist
	exitInvalid = 5 // a value is invalid or a name taken
	exitStorage = 74
)

// Main runs the command line and gives the exit code of the process.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	go func() { // ends with the process: a second signal then ends it at once
		<-ctx.Done()
		stop()
	}()
	syscall.Umask(0o077) // what is made here is its owner's alone
	root := newRoot()
	root.SetArgs(args)
	err := checkCommand(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err != nil && !errors.As(err, new(silent)) {
		fmt.Fprintln(os.Stderr, "molrun:", message(err))
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
		storageCommand(), pruneCommand(), unitCommand(),
		backupCommand(), restoreCommand(), checkDataCommand(), compactCommand(), doctorCommand(),
	)
	return root
}

// checkCommand refuses a word where the name of a command of a group is
// wanted. cobra would show the group's help and call it done.
func checkCommand(root *cobra.Command, args []string) error {
	c, rest, err := root.Find(args)
	if err != nil || c.Runnable() || len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return nil // an error of Find is found again, and told, by Execute
	}
	return usageError{fmt.Errorf("unknown command %q; see %s --help", rest[0], c.CommandPath())}
}

// usageError is a mistake in the command line itself.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// silent is an error whose message was printed already.
type silent struct{ code int }

func (s silent) Error() string { return "" }

func message(err error) string {
	var fault *fault.Error
	if errors.As(err, &fault) && len(fault.Fields) == 0 {
		text := fault.Message
		if fault.Err != nil {
			text += ": " + fault.Err.Error()
		}
		return text
	}
	return err.Error()
}

// exitCode is the one table from errors to exit codes.
func exitCode(err error) int {
	var usage usageError
	var quiet silent
	var refused *client.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &quiet):
		return quiet.code
	case errors.As(err, &usage), foundByCobra(err):
		return exitUsage
	case errors.As(err, &refused):
		return exitCodeOf(fault.Code(refused.Code), refused.Status)
	}
	return exitCodeOf(fault.CodeOf(err), 0)
}

// foundByCobra reports whether err is a mistake in the command line that
// cobra tells by its text alone.
func foundByCobra(err error) bool {
	return strings.HasPrefix(err.Error(), "unknown command") || strings.HasPrefix(err.Error(), "required flag")
}

func exitCodeOf(code fault.Code, status int) int {
	switch {
	case code == fault.Unauthorized || code == fault.Forbidden:
		return exitKey
	case code == fault.NotFound:
		return exitMissing
	case code == fault.Invalid || code == fault.JobAlreadyExists || status == 422:
		return exitInvalid
	}
	return exitFailed
}

// configFlags are the flags of every command that needs the configuration.
type configFlags struct {
	file, data, listen, publicURL string
	set                           *pflag.FlagSet
}

func addConfigFlags(c *cobra.Command, serving bool) *configFlags {
	f := &configFlags{set: c.Flags()}
	f.set.StringVar(&f.file, "config", "", "configuration file (default config.toml where there is one, or $MOLRUN_CONFIG)")
	f.set.StringVar(&f.data, "data", "", "directory of all that is kept (default molrun-data)")
	if serving {
		f.set.StringVar(&f.listen, "listen", "", "address of the API (default 127.0.0.1:8080)")
		f.set.StringVar(&f.publicURL, "public-url", "", "what links begin with, where it is not the address that clients use")
	}
	return f
}

// load reads flags over variables over the file over defaults.
func (f *configFlags) load() (config.Config, error) {
	file, optional := f.file, false
	if file == "" {
		file = os.Getenv("MOLRUN_CONFIG")
	}
	if file == "" {
		file, optional = "config.toml", true
	}
	c, err := config.Load(file, optional, os.Environ())
	if err != nil {
		return c, err
	}
	for name, target := range map[string]*string{"data": &c.Data, "listen": &c.Listen, "public-url": &c.PublicURL} {
		if flag := f.set.Lookup(name); flag != nil && flag.Changed {
			*target = flag.Value.String()
		}
	}
	return c, c.Check()
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			fmt.Fprintf(c.OutOrStdout(), "molrun %s %s %s/%s\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}

// versionText is what the linker was told, or what the module says.
func versionText() string {
	if info, ok := debug.ReadBuildInfo(); ok && version == "dev" && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return version
}
