package remote

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"molrun/app/cli/terminal"
	"molrun/app/client"
)

func shareCommand() *cobra.Command {
	var ttl, revoke string
	var files []string
	var list bool
	c := &cobra.Command{
		Use: "share JOB", Short: "Create a link that shows a result without a key", Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeJobs,
		Long: `Create a link that shows the result of a job, and nothing else, to anyone who has the link,
until it expires or is revoked.`,
		Example: Examples("molrun share hst5 --for 7d", "molrun share --list"),
	}
	c.Flags().StringVar(&ttl, "for", "7d", "lifetime of the link")
	c.Flags().StringArrayVar(&files, "file", nil, "only this file, or folder (ending in /)")
	c.Flags().BoolVar(&list, "list", false, "list active links")
	c.Flags().StringVar(&revoke, "revoke", "", "revoke the link with this ID")
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		switch {
		case list:
			return listShares(ctx, s)
		case revoke != "":
			return s.API.Remove(ctx, "shares", revoke)
		case len(args) == 0:
			return Usagef("%s requires the name of a job", c.CommandPath())
		}
		seconds, err := parseSeconds("--for", ttl)
		if err != nil {
			return err
		}
		a, err := s.API.Post(ctx, map[string]any{"ttlSeconds": seconds, "files": files}, "jobs", args[0], "share")
		if err != nil {
			return err
		}
		return s.PrintAnswer(a, func() error {
			made, err := client.Decode[client.Share](a)
			if err != nil {
				return err
			}
			s.Notef("anyone with this link can see the result; molrun share --revoke %s revokes it", made.ID)
			return s.Print("%s", made.URL)
		})
	})
}

func listShares(ctx context.Context, s *session) error {
	a, err := s.API.Get(ctx, nil, "shares")
	if err != nil {
		return err
	}
	return s.PrintAnswer(a, func() error {
		list, err := client.Decode[struct {
			Shares []client.Share `json:"shares"`
		}](a)
		if err != nil {
			return err
		}
		lines := make([][]string, len(list.Shares))
		for i, one := range list.Shares {
			lines[i] = []string{one.ID, one.Job, one.ExpiresAt, cmp.Or(one.LastUsedAt, "never")}
		}
		return s.Table([]terminal.Column{{Title: "ID"}, {Title: "JOB", MinWidth: 10}, {Title: "UNTIL", MinWidth: 10}, {Title: "LAST USED", MinWidth: 9}}, lines)
	})
}
