package remote

import (
	"context"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"molrun/app/cli/session"
	"molrun/app/client"
)

var completeJobs = session.Asking(func(ctx context.Context, api *client.Client, begun string) (words []string, err error) {
	q := url.Values{"limit": {"100"}}
	if len(begun) > 1 {
		q.Set("search", begun)
	}
	a, err := api.Get(ctx, q, "jobs")
	if err != nil {
		return nil, err
	}
	list, err := client.Decode[struct {
		Jobs []client.Job `json:"jobs"`
	}](a)
	if err != nil {
		return nil, err
	}
	for _, j := range list.Jobs {
		words = append(words, j.Name)
	}
	return words, nil
})

var completeTypes = session.Asking(func(ctx context.Context, api *client.Client, _ string) (words []string, err error) {
	list, err := api.Algorithms(ctx)
	for _, a := range list {
		words = append(words, a.Type+"\t"+a.Title)
	}
	return words, err
})

// completeSettings completes the names of an algorithm's settings.
func completeSettings(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	words, directive := session.Asking(func(ctx context.Context, api *client.Client, _ string) (words []string, err error) {
		answer, err := api.Get(ctx, nil, "algorithms", args[0])
		if err != nil {
			return nil, err
		}
		a, err := client.Decode[client.Algorithm](answer)
		if err != nil {
			return nil, err
		}
		for _, p := range a.Parameters {
			words = append(words, p.Name+"=")
		}
		return words, nil
	})(c, args, begun)
	if slices.ContainsFunc(words, func(n string) bool { return len(n) <= len(begun) && begun[:len(n)] == n }) {
		return nil, cobra.ShellCompDirectiveDefault // the value is the user's
	}
	return words, directive | cobra.ShellCompDirectiveNoSpace
}
