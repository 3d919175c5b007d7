package remote

import (
	"context"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/client"
)

// completeWithin limits a completion's request to the service, because the user is
// waiting.
const completeWithin = 2 * time.Second

// completer completes words on the command line.
type completer = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// completeFlag registers the completion of a flag's values.
func completeFlag(c *cobra.Command, flag string, with completer) {
	if err := c.RegisterFlagCompletionFunc(flag, with); err != nil {
		panic(err) // the flag was just added
	}
}

// completeFromService returns a completer that queries the service. It completes nothing if the
// service does not respond.
func completeFromService(what func(ctx context.Context, api *client.Client, begun string) ([]string, error)) completer {
	return func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		const quietly = cobra.ShellCompDirectiveNoFileComp
		o := sessionOptions{server: flagText(c, "server"), profile: flagText(c, "profile")}
		p, err := o.findProfile(os.Getenv)
		if err != nil {
			return nil, quietly
		}
		api, err := dial(p)
		if err != nil {
			return nil, quietly
		}
		defer api.Close()
		parent := c.Context()
		if parent == nil {
			parent = context.Background()
		}
		ctx, cancel := context.WithTimeout(parent, completeWithin)
		defer cancel()
		words, err := what(ctx, api, begun)
		if err != nil {
			return nil, quietly
		}
		return words, quietly
	}
}

func flagText(c *cobra.Command, name string) string {
	if f := c.Flags().Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// completeProfiles completes the names of profiles.
func completeProfiles(*cobra.Command, []string, string) (words []string, _ cobra.ShellCompDirective) {
	file, _, err := openProfiles(os.Getenv)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for name, p := range file.Profiles {
		words = append(words, name+"\t"+p.Server)
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

var completeJobs = completeFromService(func(ctx context.Context, api *client.Client, begun string) (words []string, err error) {
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

var completeTypes = completeFromService(func(ctx context.Context, api *client.Client, _ string) (words []string, err error) {
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
	words, directive := completeFromService(func(ctx context.Context, api *client.Client, _ string) (words []string, err error) {
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
		return nil, cobra.ShellCompDirectiveDefault // the name is complete; let the shell complete the value
	}
	return words, directive | cobra.ShellCompDirectiveNoSpace
}
