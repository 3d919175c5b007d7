package cli

import (
	"context"
	"fmt"
	"os"
	osuser "os/user"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"molrun/app/apikey"
	"molrun/app/certificate"
	"molrun/app/config"
	"molrun/app/profile"
	"molrun/app/remote"
	"molrun/app/server"
	"molrun/web/client"
)

// localKey adds flags to login that find the service of this machine, and returns what
// makes a key of it.
func localKey(c *cobra.Command) remote.LocalKey {
	flags := addConfigFlags(c, false)
	organization := c.Flags().String("organization", "", "with --local: organization of the key (default the only one)")
	email := c.Flags().String("email", "", "with --local: user of the key (default the only one, or you at this machine)")
	return func(ctx context.Context) (p profile.Profile, err error) {
		config, err := flags.existing(c)
		if err != nil {
			return p, err
		}
		err = server.WithControl(ctx, config, func(ctx context.Context, control *client.Control) error {
			if _, err := control.Address(ctx); err != nil {
				return err // before a key is made that nobody could use
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

// keyFor says whose key login --local makes: that of the user who is named, or of the
// only one there is, or else of a first admin.
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
		return r, usageError{fmt.Errorf("there are several users; say which with --email and --organization, as molrun user list shows them")}
	case len(users) > 0:
		return r, usageError{fmt.Errorf("there is no user %s of organization %q; molrun key create makes one", email, organization)}
	}
	if r.Organization == "" {
		r.Organization = "lab"
	}
	if r.Email == "" {
		r.Email = ownAddress()
	}
	return r, nil
}

// ownAddress names the user of this machine as an e-mail address.
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

// localProfile says how the service of this machine is reached.
func localProfile(ctx context.Context, control *client.Control, c config.Config, key string) (p profile.Profile, err error) {
	p.Key = key
	if p.Server, err = control.Address(ctx); err != nil || !c.TLS.On() {
		return p, err
	}
	cert, _ := certificate.Files(c)
	p.Trust, err = filepath.Abs(cert)
	return p, err
}
