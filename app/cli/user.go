package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"molrun/app/client"
)

func userCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "user",
		Short: "List and restrict users",
		Long: `List and restrict users. Restrictions apply at once to all keys of the user, including later
ones. Works whether or not the service is running.`,
	}
	c.AddCommand(userListCommand(), userSetCommand(), userSwitchCommand("disable", true), userSwitchCommand("enable", false), userDeleteCommand())
	return c
}

func userListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "list", Short: "List the users", Args: cobra.NoArgs}
	flags := addConfigFlags(c, false)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			users, err := control.Users(ctx)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), users)
			}
			rows := make([][]string, len(users))
			for i, u := range users {
				rows[i] = []string{u.Organization, u.Email, u.Role, userState(u), strconv.Itoa(u.Keys), strconv.Itoa(u.Jobs), dateText(u.LastUsedAt)}
			}
			return printTable(c.OutOrStdout(), []string{"ORG", "EMAIL", "ROLE", "STATE", "KEYS", "JOBS", "LAST USED"}, rows)
		})
	}
	return c
}

func userState(u client.User) string {
	if u.Disabled {
		return "disabled"
	}
	return "active"
}

// forUser returns a command that acts on one user.
func forUser(c *cobra.Command, do func(ctx context.Context, control *client.Control, organization, email string) error) *cobra.Command {
	c.Args = exactlyOne("the e-mail address of a user; `molrun user list` shows users")
	flags := addConfigFlags(c, false)
	organization := c.Flags().String("organization", "", "organization of the user (required)")
	if err := c.MarkFlagRequired("organization"); err != nil {
		panic(err) // the flag was just added
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			return do(ctx, control, *organization, args[0])
		})
	}
	return c
}

// changeUser changes a user and prints the resulting state.
func changeUser(c *cobra.Command, change *client.UserChange) *cobra.Command {
	return forUser(c, func(ctx context.Context, control *client.Control, organization, email string) error {
		u, err := control.ChangeUser(ctx, organization, email, *change)
		if err == nil {
			fmt.Fprintf(c.ErrOrStderr(), "%s is %s, with the role %s\n", u.Email, userState(*u), u.Role)
		}
		return err
	})
}

func userSetCommand() *cobra.Command {
	var change client.UserChange
	c := &cobra.Command{
		Use: "set EMAIL", Short: "Set the highest role of a user",
		Long: `Set the highest role of a user: keys with a higher role are limited to it. The user need not
have a key yet.`,
		Example: "  molrun user set bob@lab.example --organization lab --role viewer",
	}
	c.Flags().StringVar(&change.Role, "role", "", "viewer, member or admin")
	return changeUser(c, &change)
}

func userSwitchCommand(name string, disabled bool) *cobra.Command {
	short := map[bool]string{true: "Disable all keys of a user; enable reverses it", false: "Enable the keys of a disabled user"}[disabled]
	c := &cobra.Command{Use: name + " EMAIL", Short: short, Example: "  molrun user " + name + " bob@lab.example --organization lab"}
	return changeUser(c, &client.UserChange{Disabled: &disabled})
}

func userDeleteCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "delete EMAIL", Short: "Delete a user and all of the user's keys; jobs and files are kept",
		Example: "  molrun user delete bob@lab.example --organization lab",
	}
	return forUser(c, func(ctx context.Context, control *client.Control, organization, email string) error {
		err := control.DeleteUser(ctx, organization, email)
		if err == nil {
			fmt.Fprintf(c.ErrOrStderr(), "%s is deleted\n", email)
		}
		return err
	})
}
