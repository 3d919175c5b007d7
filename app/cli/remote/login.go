package remote

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"molrun/app/base/fault"
	"molrun/app/cli/terminal"
	"molrun/app/client"
)

// LocalKey creates a key on the service of this machine, for login --local.
type LocalKey func(ctx context.Context) (Profile, error)

// LoginCommand returns the login command. local creates a key on the machine where the
// service runs; it can add flags to the command.
func LoginCommand(local func(*cobra.Command) LocalKey) *cobra.Command {
	var server, name, trust string
	var here bool
	c := &cobra.Command{
		Use:   "login",
		Short: "Save the address of a service and your API key",
		Long: `Save the address of a service and your API key for all other commands, in a file that only
you can read ($XDG_CONFIG_HOME/molrun/profiles.json or ~/.config/molrun/profiles.json). The
key is read from the terminal, standard input or $MOLRUN_KEY, and tested before it is saved.

With --local, on the machine of the service and as its user, a key is created for you.`,
		Example: Examples("molrun login --server http://lab.example:8080", "molrun login --local --data molrun-data", "molrun login --server https://lab.example --profile lab <key.txt"),
		Args:    cobra.NoArgs,
	}
	f := c.Flags()
	f.StringVar(&server, "server", "", "address of the service (default $MOLRUN_SERVER)")
	f.StringVar(&name, "profile", defaultProfile, "profile name to save it under")
	f.StringVar(&trust, "trust", "", "PEM file with the certificate to trust, if it is self-signed")
	f.BoolVar(&here, "local", false, "create a key, on the machine of the service")
	makeKey := local(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		p := Profile{Server: cmp.Or(server, os.Getenv("MOLRUN_SERVER")), Trust: trust}
		var err error
		switch {
		case here && server != "":
			return Usagef("--local finds the service by its data directory; omit --server")
		case here:
			p, err = makeKey(c.Context())
		case p.Server == "":
			return Usagef("specify the service: --server http://HOST:PORT, or --local on its own machine")
		default:
			p, err = askKey(c, p)
		}
		if err != nil {
			return err
		}
		return saveProfile(c, name, p)
	}
	return c
}

// askKey completes a profile with the user's API key.
func askKey(c *cobra.Command, p Profile) (_ Profile, err error) {
	if p.Server, err = serverAddress(p.Server); err != nil {
		return p, err
	}
	if p.Trust != "" {
		if p.Trust, err = filepath.Abs(p.Trust); err != nil {
			return p, err
		}
	}
	if p.Key, err = parseKey(os.Getenv("MOLRUN_KEY"), "in $MOLRUN_KEY"); err == nil && p.Key == "" {
		p.Key, err = readKey(c, p.Server)
	}
	return p, err
}

// readKey reads a key without echoing it.
func readKey(c *cobra.Command, server string) (string, error) {
	read := bufio.NewReader(c.InOrStdin())
	next := func() (string, error) { return read.ReadString('\n') }
	if in, ok := c.InOrStdin().(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		fmt.Fprintf(c.ErrOrStderr(), "API key for %s (it is not shown): ", server)
		defer fmt.Fprintln(c.ErrOrStderr())
		next = func() (string, error) {
			text, err := term.ReadPassword(int(in.Fd()))
			return string(text), err
		}
	}
	for {
		line, err := next()
		switch {
		case strings.TrimSpace(line) != "": // lines may be empty, and the last one may lack a newline
			return parseKey(line, "on standard input")
		case errors.Is(err, io.EOF):
			return "", Usagef("pass the API key on standard input or in $MOLRUN_KEY")
		case err != nil:
			return "", err
		}
	}
}

// saveProfile tests a key and saves the profile.
func saveProfile(c *cobra.Command, name string, p Profile) error {
	api, err := dial(p)
	if err != nil {
		return err
	}
	defer api.Close()
	a, err := api.Get(c.Context(), nil, "session")
	if err != nil {
		return fmt.Errorf("nothing was saved: %w", err)
	}
	who, err := client.Decode[client.Session](a)
	if err != nil {
		return err
	}
	file, path, err := openProfiles(os.Getenv)
	if err != nil {
		return err
	}
	file.Profiles[name], file.Current = p, name
	if err := file.Write(path); err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "signed in to %s as %s of %s (%s); saved in %s\n", p.Server, terminal.Clean(who.Email), terminal.Clean(who.Organization), who.Role, path)
	return nil
}

func whoamiCommand() *cobra.Command {
	return withSession(&cobra.Command{
		Use: "whoami", Short: "Show your user, organization and role", Args: cobra.NoArgs,
		Example: Examples("molrun whoami", "molrun whoami --json"),
	}, func(ctx context.Context, s *session, _ []string) error {
		a, err := s.API.Get(ctx, nil, "session")
		if err != nil {
			return err
		}
		return s.PrintAnswer(a, func() error {
			who, err := client.Decode[client.Session](a)
			if err != nil {
				return err
			}
			key := who.Key.ID
			if who.Key.ExpiresAt != "" {
				key += ", until " + who.Key.ExpiresAt
			}
			return s.Pairs([][2]string{
				{"server", s.Server + " (molrun " + who.Version + ")"},
				{"user", who.Email},
				{"organization", who.Organization},
				{"role", who.Role},
				{"rights", strings.Join(who.Rights, ", ")},
				{"key", key},
			})
		})
	})
}

func logoutCommand() *cobra.Command {
	var name string
	c := &cobra.Command{
		Use: "logout", Short: "Remove a saved service and its key", Args: cobra.NoArgs,
		Long:    "Remove the address and the key of a profile. The key itself stays valid; an admin can delete it.",
		Example: Examples("molrun logout", "molrun logout --profile lab"),
	}
	c.Flags().StringVar(&name, "profile", "", "profile (default: the current one)")
	completeFlag(c, "profile", completeProfiles)
	c.RunE = func(c *cobra.Command, _ []string) error {
		file, path, err := openProfiles(os.Getenv)
		if err != nil {
			return err
		}
		p, err := file.Find(name)
		if err != nil {
			return err
		}
		name = cmp.Or(name, file.Current)
		delete(file.Profiles, name)
		if file.Current == name {
			file.Current = ""
			for other := range file.Profiles {
				if len(file.Profiles) == 1 {
					file.Current = other
				}
			}
		}
		if err := file.Write(path); err != nil {
			return err
		}
		fmt.Fprintf(c.ErrOrStderr(), "removed %s (%s)\n", name, p.Server)
		return nil
	}
	return c
}

func openCommand() *cobra.Command {
	return withSession(&cobra.Command{
		Use: "open [JOB]", Short: "Open the web application, or the page of a job", Args: cobra.MaximumNArgs(1),
		Long:              "Open the web application in a browser, and print its address.",
		Example:           Examples("molrun open", "molrun open hst5"),
		ValidArgsFunction: completeJobs,
	}, func(ctx context.Context, s *session, args []string) error {
		page, known := s.Server+"/ui/", []string{"session"}
		if len(args) == 1 {
			page, known = page+"jobs/"+url.PathEscape(args[0]), []string{"jobs", args[0]}
		}
		if _, err := s.API.Get(ctx, nil, known...); err != nil {
			return err
		}
		if s.JSON {
			return s.PrintJSON(map[string]string{"url": page})
		}
		if err := s.Print("%s", page); err != nil || !s.Interactive {
			return err
		}
		return browse(ctx, page)
	})
}

// browse opens a page with xdg-open, if there is a desktop.
func browse(ctx context.Context, page string) error {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return nil
	}
	program, err := exec.LookPath("xdg-open")
	if err != nil {
		return fault.Errorf(fault.NotFound, "xdg-open is not installed; open the address yourself")
	}
	return exec.CommandContext(ctx, program, page).Run()
}
