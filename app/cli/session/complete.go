package session

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/cli/profile"
	"molrun/app/client"
)

// Completions ask the service, which must answer soon: who presses a key waits.
const completeWithin = 2 * time.Second

// Completer proposes words on the command line.
type Completer = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// CompleteFlag proposes words for a flag.
func CompleteFlag(c *cobra.Command, flag string, with Completer) {
	if err := c.RegisterFlagCompletionFunc(flag, with); err != nil {
		panic(err) // a flag that was just added
	}
}

// Asking completes with what a service answers; with nothing where none does.
func Asking(what func(ctx context.Context, api *client.Client, begun string) ([]string, error)) Completer {
	return func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		const quietly = cobra.ShellCompDirectiveNoFileComp
		o := options{server: flagText(c, "server"), profile: flagText(c, "profile")}
		p, err := o.find(os.Getenv)
		if err != nil {
			return nil, quietly
		}
		api, err := Dial(p)
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

// CompleteProfiles proposes the names of profiles.
func CompleteProfiles(*cobra.Command, []string, string) (words []string, _ cobra.ShellCompDirective) {
	file, _, err := profile.Open(os.Getenv)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for name, p := range file.Profiles {
		words = append(words, name+"\t"+p.Server)
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}
