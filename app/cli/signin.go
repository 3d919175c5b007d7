package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/config"
	"molrun/app/datadir"
	"molrun/web/client"
)

func signInCommand() *cobra.Command {
	var organization, email string
	var asJSON bool
	c := &cobra.Command{
		Use:   "sign-in",
		Short: "Make a link that signs in a user in a browser, once",
		Long: `Make a link to the web application that signs in a user without a key, and print it,
alone on standard output. It works once, within 10 minutes, and not after a restart of the
service. The service has to run.

Without --user it is for the only user there is, or the only admin. Where nobody has a key
yet, the link makes the first admin.`,
		Example: "  molrun sign-in\n  molrun sign-in --user ann@lab.example",
		Args:    cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&email, "user", "", "e-mail address of the user")
	c.Flags().StringVar(&organization, "organization", "", "organization of the user, if several have one of that address")
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
			fmt.Fprintf(c.ErrOrStderr(), "signs in %s of %s, once, until %s\n", made.Email, made.Organization, made.ExpiresAt.Local().Format(time.TimeOnly))
			_, err = fmt.Fprintln(c.OutOrStdout(), made.URL)
			return err
		})
	}
	return c
}

// greet prints a link for the first admin where nobody can sign in yet. It stays out of
// the journal of systemd, which others than the operator may read.
func greet(ctx context.Context, c config.Config, out io.Writer) {
	control := datadir.Control(c.Data)
	users, err := control.Users(ctx)
	if err != nil || len(users) > 0 {
		return
	}
	if os.Getenv("JOURNAL_STREAM") != "" {
		fmt.Fprintln(out, "nobody has a key yet: `molrun sign-in` makes a link that signs in the first admin")
		return
	}
	if made, err := control.SignIn(ctx, "", ""); err == nil {
		fmt.Fprintf(out, "Nobody has a key yet. This link signs in the first admin, once, within 10 minutes:\n\n    %s\n\n`molrun sign-in` makes another one.\n", made.URL)
	}
}
