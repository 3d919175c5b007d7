package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"molrun/app/cli/remote"
	"molrun/app/client"
	"molrun/app/server"
	"molrun/app/server/config"
	"molrun/app/server/host"
)

// configFlags are the flags shared by all commands that need the configuration.
type configFlags struct {
	file, data, listen, publicURL string
	set                           *pflag.FlagSet
}

func addConfigFlags(c *cobra.Command, serving bool) *configFlags {
	f := &configFlags{set: c.Flags()}
	f.set.StringVar(&f.file, "config", "", "configuration file (default $MOLRUN_CONFIG, or config.toml if it exists)")
	f.set.StringVar(&f.data, "data", "", "data directory (default molrun-data)")
	if serving {
		f.set.StringVar(&f.listen, "listen", "", "address of the API (default 127.0.0.1:8080)")
		f.set.StringVar(&f.publicURL, "public-url", "", "public base URL of the service, for links (behind a proxy)")
	}
	return f
}

// loadConfig loads the configuration. Flags override environment variables, which
// override the file, which overrides the defaults.
func (f *configFlags) loadConfig() (config.Config, error) {
	file, named := f.configFile()
	c, err := config.Load(file, !named, os.Environ())
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

// existing loads the configuration for a command on an existing data directory, and
// prints which directory that is.
func (f *configFlags) existing(c *cobra.Command) (config.Config, error) {
	config, err := f.loadConfig()
	if err == nil {
		nameData(c, config)
		err = host.FindData(config.Data)
	}
	return config, err
}

// nameData prints to standard error which data directory a command uses.
func nameData(c *cobra.Command, config config.Config) {
	data := config.Data
	if abs, err := filepath.Abs(data); err == nil {
		data = abs
	}
	fmt.Fprintln(c.ErrOrStderr(), "data directory:", data)
}

// configFile returns the path of the configuration file, and whether a flag or
// environment variable names it. The default file need not exist.
func (f *configFlags) configFile() (file string, named bool) {
	for _, file := range []string{f.file, os.Getenv("MOLRUN_CONFIG")} {
		if file != "" {
			return file, true
		}
	}
	return "config.toml", false
}

// operate loads the configuration and runs fn against the control socket.
func operate(c *cobra.Command, flags *configFlags, fn func(context.Context, *client.Control) error) error {
	config, err := flags.existing(c)
	if err != nil {
		return err
	}
	return server.WithControl(c.Context(), config, fn)
}

// exactlyOne accepts exactly one argument; the error says what it should be.
func exactlyOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return remote.Usagef("%s requires %s", c.CommandPath(), what)
		}
		return nil
	}
}
