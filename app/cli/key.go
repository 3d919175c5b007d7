package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/apikey"
	"molrun/app/unit"
	"molrun/web/client"
)

func keyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "key",
		Short: "Make and manage API keys",
		Long: `Make and manage API keys. Works while the service runs and while it does not,
and takes effect at once.`,
	}
	c.AddCommand(
		keyCreateCommand(),
		keyListCommand(),
		keyDisableCommand(),
		keyChangeCommand("enable", "Open a disabled key again", (*client.Control).EnableKey),
		keyRotateCommand(),
		keyDeleteCommand(),
	)
	return c
}

func keyCreateCommand() *cobra.Command {
	var request client.KeyRequest
	var expires string
	var asJSON bool
	c := &cobra.Command{
		Use:   "create",
		Short: "Make a key and print it, once",
		Long:  "Make a key. It is printed once, alone on standard output, and only its hash is kept.",
		Example: `  molrun key create --organization lab --email ann@lab.example
  molrun key create --organization lab --email bob@lab.example --role admin --expires 90d`,
		Args: cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&request.Organization, "organization", "", "organization whose jobs the key opens (required)")
	c.Flags().StringVar(&request.Email, "email", "", "e-mail address of the user (required)")
	c.Flags().StringVar(&request.Role, "role", string(apikey.Member), "member, or admin: may stop and delete what others submitted")
	c.Flags().StringVar(&expires, "expires", "", "time after which the key closes by itself, such as 90d (default never)")
	c.Flags().BoolVar(&asJSON, "json", false, "print the key's record, with the key in it, as JSON")
	for _, name := range []string{"organization", "email"} {
		if err := c.MarkFlagRequired(name); err != nil {
			panic(err) // a flag that was just added
		}
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if expires != "" {
			var d unit.Duration
			if err := d.UnmarshalText([]byte(expires)); err != nil {
				return usageError{fmt.Errorf("--expires: %w", err)}
			}
			if time.Duration(d) < time.Second {
				return usageError{errors.New("--expires: give a time of at least a second ahead, such as 90d; leave it out for a key that never expires")}
			}
			request.Expires = time.Duration(d)
		}
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			key, err := control.CreateKey(ctx, request)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), key)
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), key.Secret)
			return err
		})
	}
	return c
}

func keyListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "list", Short: "List the keys, without their secrets", Args: cobra.NoArgs}
	flags := addConfigFlags(c, false)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			keys, err := control.Keys(ctx)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), keys)
			}
			rows := make([][]string, len(keys))
			for i, k := range keys {
				rows[i] = []string{k.ID, k.Organization, k.Email, k.Role, keyState(k), dateText(k.CreatedAt), dateText(k.ExpiresAt), dateText(k.LastUsedAt)}
			}
			return printTable(c.OutOrStdout(), []string{"ID", "ORGANIZATION", "EMAIL", "ROLE", "STATE", "CREATED", "EXPIRES", "LAST USED"}, rows)
		})
	}
	return c
}

func keyState(k client.Key) string {
	switch {
	case k.Disabled:
		return "disabled"
	case !k.ExpiresAt.IsZero() && time.Now().After(k.ExpiresAt):
		return "expired"
	}
	return "active"
}

func keyChangeCommand(name, short string, change func(*client.Control, context.Context, string) (*client.Key, error)) *cobra.Command {
	c := &cobra.Command{
		Use: name + " ID", Short: short, Example: "  molrun key " + name + " acatwwcwiblh",
		Args: exactlyOne("the ID of a key; `molrun key list` shows them"),
	}
	flags := addConfigFlags(c, false)
	c.RunE = func(c *cobra.Command, args []string) error {
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			key, err := change(control, ctx, args[0])
			if err == nil {
				fmt.Fprintf(c.ErrOrStderr(), "key %s of %s is %s\n", key.ID, key.Email, keyState(*key))
			}
			return err
		})
	}
	return c
}

func keyDisableCommand() *cobra.Command {
	var revoke bool
	c := keyChangeCommand("disable", "Close a key; enable opens it again", func(control *client.Control, ctx context.Context, id string) (*client.Key, error) {
		key, err := control.DisableKey(ctx, id)
		if err != nil || !revoke {
			return key, err
		}
		return key, control.RevokeLinks(ctx, id)
	})
	c.Long = `Close a key; enable opens it again. Links to files that were made with the key
work until they expire, at most a week, unless --revoke-links ends them. Transfers
that have begun go on. Enabling the key does not bring its links back.`
	c.Example += "\n  molrun key disable acatwwcwiblh --revoke-links"
	disable := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		err := disable(c, args)
		if err == nil && revoke {
			fmt.Fprintln(c.ErrOrStderr(), "links that were made with it no longer work")
		}
		return err
	}
	c.Flags().BoolVar(&revoke, "revoke-links", false, "also end all links that were made with the key")
	return c
}

func keyDeleteCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "delete ID", Short: "Remove a key for ever", Example: "  molrun key delete acatwwcwiblh",
		Args: exactlyOne("the ID of a key; `molrun key list` shows them"),
	}
	flags := addConfigFlags(c, false)
	c.RunE = func(c *cobra.Command, args []string) error {
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			err := control.DeleteKey(ctx, args[0])
			if err == nil {
				fmt.Fprintf(c.ErrOrStderr(), "key %s is deleted\n", args[0])
			}
			return err
		})
	}
	return c
}

func keyRotateCommand() *cobra.Command {
	overlap := unit.Duration(24 * time.Hour)
	var overlapText string
	var asJSON bool
	c := &cobra.Command{
		Use:   "rotate ID",
		Short: "Replace a key by a new one; the old one closes after a while",
		Long: `Make a key for the user of another one and print it, once. The old key keeps
working for the time of --overlap, so that programs can change to the new one.`,
		Example: `  molrun key rotate acatwwcwiblh
  molrun key rotate acatwwcwiblh --overlap 7d
  molrun key rotate acatwwcwiblh --overlap 0s      # close the old one at once`,
		Args: exactlyOne("the ID of a key; `molrun key list` shows them"),
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&overlapText, "overlap", "24h", "how long the old key goes on working")
	c.Flags().BoolVar(&asJSON, "json", false, "print the new key's record, with the key in it, as JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := overlap.UnmarshalText([]byte(overlapText)); err != nil || overlap < 0 {
			return usageError{fmt.Errorf("--overlap: %q is no time; write 0s, 24h or 7d", overlapText)}
		}
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			key, err := control.RotateKey(ctx, args[0], time.Duration(overlap))
			if err != nil {
				return err
			}
			fmt.Fprintf(c.ErrOrStderr(), "key %s closes in %s\n", args[0], time.Duration(overlap))
			if asJSON {
				return printJSON(c.OutOrStdout(), key)
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), key.Secret)
			return err
		})
	}
	return c
}
