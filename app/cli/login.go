package cli

import (
	"context"
	"fmt"
	"os"
	osuser "os/user"
	"path/filepath"
	"slices"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"molrun/app/cli/remote"
	"molrun/app/client"
	"molrun/app/job/apikey"
	"molrun/app/server"
	"molrun/app/server/config"
	"molrun/app/server/host"
)

// localKey adds the login flags that locate the service on this machine, and returns a
// function that creates a key there.
func localKey(c *cobra.Command) remote.LocalKey {
	flags := addConfigFlags(c, false)
	organization := c.Flags().String("organization", "", "with --local: organization of the key (default the only one)")
	email := c.Flags().String("email", "", "with --local: user of the key (default the only one, or you at this machine)")
	return func(ctx context.Context) (p remote.Profile, err error) {
		config, err := flags.existing(c)
		if err != nil {
			return p, err
		}
		err = server.WithControl(ctx, config, func(ctx context.Context, control *client.Control) error {
			if _, err := control.Address(ctx); err != nil {
				return err // fail before creating a key that could not be used
			}
			request, err := keyFor(ctx, control, *organization, *email)
			if err != nil {
				return err
			}
			key, err := control.CreateKey(ctx, request)
			if err != nil {
				return err
			}
			p, err = localProfile(ctx, control, config, key.Secret)
			return err
		})
		return p, err
	}
}

// keyFor returns the request for the key of login --local. The key belongs to the given
// user, or to the only user, or to a new first admin.
func keyFor(ctx context.Context, control *client.Control, organization, email string) (r client.KeyRequest, err error) {
	users, err := control.Users(ctx)
	if err != nil {
		return r, err
	}
	fits := slices.DeleteFunc(users, func(u client.User) bool {
		return organization != "" && u.Organization != organization || email != "" && u.Email != email
	})
	r = client.KeyRequest{Organization: organization, Email: email, Role: string(apikey.Admin), Name: "command line"}
	switch {
	case len(fits) == 1:
		r.Organization, r.Email, r.Role = fits[0].Organization, fits[0].Email, fits[0].Role
	case len(fits) > 1:
		return r, remote.Usagef("there are several users; specify one with --email and --organization; molrun user list shows them")
	case len(users) > 0:
		return r, remote.Usagef("there is no user %s in organization %q; molrun key create creates one", email, organization)
	}
	if r.Organization == "" {
		r.Organization = "lab"
	}
	if r.Email == "" {
		r.Email = ownAddress()
	}
	return r, nil
}

// ownAddress makes an e-mail address from the current user and host names.
func ownAddress() string {
	name, host := "admin", "localhost.localdomain"
	if u, err := osuser.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil && h != "" {
		host = h + ".localdomain"
	}
	return name + "@" + host
}

// localProfile returns a profile for the service on this machine, with the given key.
func localProfile(ctx context.Context, control *client.Control, c config.Config, key string) (p remote.Profile, err error) {
	p.Key = key
	if p.Server, err = control.Address(ctx); err != nil || !c.TLS.On() {
		return p, err
	}
	cert, _ := host.CertificateFiles(c)
	p.Trust, err = filepath.Abs(cert)
	return p, err
}

func signInCommand() *cobra.Command {
	var organization, email string
	var asJSON bool
	c := &cobra.Command{
		Use:   "sign-in",
		Short: "Create a one-time sign-in link for the web application",
		Long: `Create a link that signs a user in to the web application without a key, and print it to
standard output. It works once, within 10 minutes, until the service restarts. The service
must be running.

Without --user, the link is for the only user or the only admin. If there is no key yet, it
creates the first admin.`,
		Example: "  molrun sign-in\n  molrun sign-in --user ann@lab.example",
		Args:    cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&email, "user", "", "e-mail address of the user")
	c.Flags().StringVar(&organization, "organization", "", "organization of the user, if the address exists in several")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			made, err := control.SignIn(ctx, organization, email)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), made)
			}
			fmt.Fprintf(c.ErrOrStderr(), "signs in %s of %s once, until %s\n", made.Email, made.Organization, made.ExpiresAt.Local().Format(time.TimeOnly))
			_, err = fmt.Fprintln(c.OutOrStdout(), made.URL)
			return err
		})
	}
	return c
}

// greet prints a sign-in link for the first admin if there are no users yet and out is a
// terminal. The link stays out of logs, such as the systemd journal, which people other
// than the operator might read.
func greet(ctx context.Context, c config.Config, out *os.File) {
	control := host.Control(c.Data)
	users, err := control.Users(ctx)
	if err != nil || len(users) > 0 {
		return
	}
	if !isatty.IsTerminal(out.Fd()) {
		fmt.Fprintln(out, "there is no key yet: `molrun sign-in` creates a link that signs in the first admin")
		return
	}
	if made, err := control.SignIn(ctx, "", ""); err == nil {
		fmt.Fprintf(out, "There is no key yet. This link signs in the first admin, once, within 10 minutes:\n\n    %s\n\n`molrun sign-in` creates another one.\n", made.URL)
	}
}
