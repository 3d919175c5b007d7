package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/base/unit"
	"molrun/app/cli/remote"
	"molrun/app/client"
	"molrun/app/job/apikey"
)

func keyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "key",
		Short: "Manage API keys",
		Long: `Create and manage API keys. Works whether or not the service is running, and takes effect at
once.`,
	}
	c.AddCommand(
		keyCreateCommand(),
		keyListCommand(),
		keyDisableCommand(),
		keyChangeCommand("enable", "Enable a disabled key", (*client.Control).EnableKey),
		keySetCommand(),
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
		Short: "Create a key and print it once",
		Long:  "Create a key. It is printed once, to standard output, and only its hash is stored.",
		Example: `  molrun key create --organization lab --email ann@lab.example
  molrun key create --organization lab --email bob@lab.example --role admin --expires 90d
  molrun key create --organization lab --email bob@lab.example --name dashboard --scope read --from 10.0.0.0/8`,
		Args: cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&request.Organization, "organization", "", "organization of the key (required)")
	c.Flags().StringVar(&request.Email, "email", "", "e-mail address of the user (required)")
	c.Flags().StringVar(&request.Role, "role", string(apikey.Member), "viewer: read only; member: also submit; admin: also cancel and delete jobs of others, and manage keys")
	c.Flags().StringSliceVar(&request.Scopes, "scope", nil, "restrict the key to part of its role: read, submit, admin (default all)")
	c.Flags().StringSliceVar(&request.Networks, "from", nil, "networks that the key can be used from, such as 10.0.0.0/8 (default any)")
	c.Flags().StringVar(&request.Name, "name", "", "what the key is for, shown in lists")
	c.Flags().StringVar(&expires, "expires", "", "expiry, such as 90d (default never)")
	c.Flags().BoolVar(&asJSON, "json", false, "print the key and its record as JSON")
	for _, name := range []string{"organization", "email"} {
		if err := c.MarkFlagRequired(name); err != nil {
			panic(err) // the flag was just added
		}
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if expires != "" {
			var d unit.Duration
			if err := d.UnmarshalText([]byte(expires)); err != nil {
				return remote.Usagef("--expires: %w", err)
			}
			if time.Duration(d) < time.Second {
				return remote.Usagef("--expires: use a time of at least one second, such as 90d; omit it for a key that never expires")
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

func keySetCommand() *cobra.Command {
	var change client.KeyChange
	c := &cobra.Command{
		Use: "set ID", Short: "Change the role, scopes or name of a key",
		Example: "  molrun key set acatwwcwiblh --role viewer\n  molrun key set acatwwcwiblh --scope read,submit --name CI",
		Args:    exactlyOne("the ID of a key; `molrun key list` shows IDs"),
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&change.Role, "role", "", "viewer, member or admin")
	c.Flags().StringSliceVar(&change.Scopes, "scope", nil, "restrict the key to read, submit, admin; all three for no restriction")
	c.Flags().StringVar(&change.Name, "name", "", "what the key is for")
	c.RunE = func(c *cobra.Command, args []string) error {
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			key, err := control.ChangeKey(ctx, args[0], change)
			if err == nil {
				fmt.Fprintf(c.ErrOrStderr(), "key %s of %s has the role %s\n", key.ID, key.Email, key.Role)
			}
			return err
		})
	}
	return c
}

func keyListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List keys, without their secrets", Args: cobra.NoArgs,
		Long: `List keys, without their secrets. Restrictions of a key and the key that created it follow its
name. --json shows everything.`,
	}
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
				rows[i] = []string{k.ID, k.Organization, k.Email, k.Role, keyEnd(k), dateText(k.LastUsedAt), keyNote(k)}
			}
			return printTable(c.OutOrStdout(), []string{"ID", "ORG", "EMAIL", "ROLE", "STATE", "LAST USED", "NAME"}, rows)
		})
	}
	return c
}

// keyEnd describes whether a key is active and, if it expires, until when.
func keyEnd(k client.Key) string {
	if state := keyState(k); state != "active" || k.ExpiresAt.IsZero() {
		return state
	}
	return "to " + dateText(k.ExpiresAt)
}

// keyNote describes a key by its name and its restrictions.
func keyNote(k client.Key) string {
	var parts []string
	if k.Name != "" {
		parts = append(parts, k.Name)
	}
	if len(k.Scopes) > 0 {
		parts = append(parts, "may only "+strings.Join(k.Scopes, ", "))
	}
	if len(k.Networks) > 0 {
		parts = append(parts, "from "+strings.Join(k.Networks, ", "))
	}
	if k.MadeBy != "" {
		parts = append(parts, "made by "+k.MadeBy)
	}
	return strings.Join(parts, "; ")
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
		Args: exactlyOne("the ID of a key; `molrun key list` shows IDs"),
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
	var revoke, made bool
	c := &cobra.Command{
		Use: "disable ID", Short: "Disable a key; enable reverses it",
		Long: `Disable a key; enable reverses it. Links made with the key work until they expire, at most a
week, unless --revoke-links revokes them for good. Transfers in progress continue.

Keys created with this key keep working, unless --made-keys disables them as well, and the
keys created with those. Use both flags if the key has leaked.`,
		Example: `  molrun key disable acatwwcwiblh
  molrun key disable acatwwcwiblh --revoke-links --made-keys`,
		Args: exactlyOne("the ID of a key; `molrun key list` shows IDs"),
	}
	flags := addConfigFlags(c, false)
	c.Flags().BoolVar(&revoke, "revoke-links", false, "also revoke all links made with the key")
	c.Flags().BoolVar(&made, "made-keys", false, "also disable all keys made with the key")
	c.RunE = func(c *cobra.Command, args []string) error {
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			disable := func(id string) error { return disableKey(c, ctx, control, id, revoke) }
			if err := disable(args[0]); err != nil || !made {
				return err
			}
			return disableMadeKeys(ctx, control, args[0], disable)
		})
	}
	return c
}

func disableKey(c *cobra.Command, ctx context.Context, control *client.Control, id string, revoke bool) error {
	key, err := control.DisableKey(ctx, id)
	if err == nil && revoke {
		err = control.RevokeLinks(ctx, id)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "key %s of %s is %s\n", key.ID, key.Email, keyState(*key))
	if revoke {
		fmt.Fprintln(c.ErrOrStderr(), "links made with it no longer work")
	}
	return nil
}

// disableMadeKeys disables the keys that a disabled key has created, directly or through
// other keys. A key can create more until it is disabled itself, so disableMadeKeys repeats
// until it finds none.
func disableMadeKeys(ctx context.Context, control *client.Control, id string, disable func(id string) error) error {
	closed := map[string]bool{id: true}
	for found := true; found; {
		found = false
		keys, err := control.Keys(ctx)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if closed[k.ID] || !closed[k.MadeBy] {
				continue
			}
			if err := disable(k.ID); err != nil {
				return err
			}
			closed[k.ID], found = true, true
		}
	}
	return nil
}

func keyDeleteCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "delete ID", Short: "Delete a key permanently", Example: "  molrun key delete acatwwcwiblh",
		Args: exactlyOne("the ID of a key; `molrun key list` shows IDs"),
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
		Short: "Replace a key; the old one keeps working for a while",
		Long: `Create a key for the user of an existing key and print it once. The old key keeps working for
the time of --overlap, so that programs can switch to the new one.`,
		Example: `  molrun key rotate acatwwcwiblh
  molrun key rotate acatwwcwiblh --overlap 7d
  molrun key rotate acatwwcwiblh --overlap 0s      # disable the old one at once`,
		Args: exactlyOne("the ID of a key; `molrun key list` shows IDs"),
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&overlapText, "overlap", "24h", "time that the old key keeps working")
	c.Flags().BoolVar(&asJSON, "json", false, "print the new key and its record as JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := overlap.UnmarshalText([]byte(overlapText)); err != nil || overlap < 0 {
			return remote.Usagef("--overlap: %q is not a time; write 0s, 24h or 7d", overlapText)
		}
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			key, err := control.RotateKey(ctx, args[0], time.Duration(overlap))
			if err != nil {
				return err
			}
			fmt.Fprintf(c.ErrOrStderr(), "key %s expires in %s\n", args[0], time.Duration(overlap))
			if asJSON {
				return printJSON(c.OutOrStdout(), key)
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), key.Secret)
			return err
		})
	}
	return c
}

func secretCommand() *cobra.Command {
	c := &cobra.Command{Use: "secret", Short: "Manage the key that signs links"}
	c.AddCommand(secretRotateCommand())
	return c
}

func secretRotateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the key that signs links",
		Long: `Create a new key that signs links. A running service uses it at once. Existing links work
until they expire, at most a week; the next rotation deletes the old key. With --now, all
links of all users are revoked at once, including shares and sign-in links.`,
		Example: `  molrun secret rotate
  molrun secret rotate --now`,
		Args: cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	now := c.Flags().Bool("now", false, "also revoke all links of all users at once")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			rotate := control.RotateSecret
			if *now {
				rotate = control.RotateSecretNow
			}
			kid, err := rotate(ctx)
			if err == nil && *now {
				fmt.Fprintln(c.ErrOrStderr(), "all earlier links are revoked")
			}
			if err == nil {
				fmt.Fprintf(c.ErrOrStderr(), "links are now signed with key %s\n", kid)
			}
			return err
		})
	}
	return c
}
