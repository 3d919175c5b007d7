package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"molrun/app/cli/terminal"
	"molrun/app/client"
)

// SearchAlgorithms makes c, the parent of the operator's commands, list the algorithms of
// the service.
func SearchAlgorithms(c *cobra.Command) {
	c.Use = "algorithms [WORD...]"
	c.Example = Examples("molrun algorithms", "molrun algorithms dock")
	c.Args = cobra.ArbitraryArgs
	withSession(c, func(ctx context.Context, s *session, args []string) error {
		a, err := s.API.Get(ctx, nil, "algorithms")
		if err != nil {
			return err
		}
		list, err := client.Decode[struct {
			Algorithms []json.RawMessage `json:"algorithms"`
		}](a)
		if err != nil {
			return err
		}
		found := slices.DeleteFunc(list.Algorithms, func(text json.RawMessage) bool { return !mentions(text, args) })
		if s.JSON {
			return s.PrintJSON(map[string]any{"algorithms": found})
		}
		if len(found) == 0 {
			s.Notef("no algorithm matches: %s", strings.Join(args, " "))
			return nil
		}
		rows := make([][]string, len(found))
		for i, text := range found {
			one, err := client.Decode[client.Algorithm](text)
			if err != nil {
				return err
			}
			rows[i] = []string{one.Type, one.Version, map[bool]string{true: "yes", false: "no"}[one.Ready], one.Title}
		}
		return s.Table([]terminal.Column{{Title: "TYPE", MinWidth: 12}, {Title: "VERSION", MinWidth: 8}, {Title: "READY"}, {Title: "WHAT IT DOES", MinWidth: 20}}, rows)
	})
}

// mentions reports whether an algorithm's description contains all words, ignoring case.
func mentions(text json.RawMessage, words []string) bool {
	one, err := client.Decode[client.Algorithm](text)
	if err != nil {
		return true
	}
	all := strings.ToLower(strings.Join(slices.Concat([]string{one.Type, one.Title, one.Description}, one.Categories, one.Keywords), "\n"))
	for _, w := range words {
		if !strings.Contains(all, strings.ToLower(w)) {
			return false
		}
	}
	return true
}

func readiness(a *client.Algorithm) string {
	if a.Ready {
		return "yes"
	}
	return "no: " + strings.Join(a.Missing, "; ")
}

func algorithmCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "algorithm", Short: "Show an algorithm, its example or the schema of its settings",
		Example: Examples("molrun algorithm show cg-idp", "molrun algorithm example cg-idp"),
	}
	c.AddCommand(algorithmPart("show", "Show an algorithm and its settings", showAlgorithm),
		algorithmPart("example", "Print an example of its settings", printExample),
		algorithmPart("schema", "Print the JSON Schema of its settings", func(_ context.Context, s *session, a client.Answer) error {
			one, err := client.Decode[client.Algorithm](a)
			if err != nil {
				return err
			}
			return s.PrintJSON(one.Schema)
		}))
	return c
}

func algorithmPart(name, short string, do func(context.Context, *session, client.Answer) error) *cobra.Command {
	var version string
	c := &cobra.Command{
		Use: name + " TYPE", Short: short, Args: oneArgument("the type of an algorithm; molrun algorithms lists them"),
		Example:           Examples("molrun algorithm "+name+" cg-idp", "molrun algorithm "+name+" cg-idp --json"),
		ValidArgsFunction: completeTypes,
	}
	c.Flags().StringVar(&version, "version", "", "version (default: the version that jobs use)")
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		q := url.Values{}
		if version != "" {
			q.Set("version", version)
		}
		a, err := s.API.Get(ctx, q, "algorithms", args[0])
		if err != nil {
			return err
		}
		return do(ctx, s, a)
	})
}

func showAlgorithm(_ context.Context, s *session, a client.Answer) error {
	return s.PrintAnswer(a, func() error {
		one, err := client.Decode[client.Algorithm](a)
		if err != nil {
			return err
		}
		err = s.Pairs([][2]string{
			{"type", one.Type + " " + one.Version},
			{"title", one.Title},
			{"ready", readiness(one)},
			{"tested", map[bool]string{true: "no: written from the program's documentation", false: ""}[one.Status == "untested"]},
			{"cite", strings.Join(one.Cite, ", ")},
		})
		if err != nil {
			return err
		}
		if one.Description != "" {
			if err := s.Print("\n%s\n", terminal.CleanLines(strings.TrimSpace(one.Description))); err != nil {
				return err
			}
		}
		rows := make([][]string, len(one.Parameters))
		for i, p := range one.Parameters {
			rows[i] = []string{p.Name, kindOf(p.Type, p.File), p.Unit, defaultOf(p.Default, p.Required), p.Title}
		}
		return s.Table([]terminal.Column{{Title: "SETTING"}, {Title: "TYPE", MinWidth: 8}, {Title: "UNIT"}, {Title: "DEFAULT", MinWidth: 8}, {Title: "MEANING", MinWidth: 20}}, rows)
	})
}

func kindOf(typ any, file []string) string {
	if len(file) > 0 {
		return strings.Join(file, " ")
	}
	if several, ok := typ.([]any); ok {
		return strings.Trim(fmt.Sprint(several), "[]")
	}
	return fmt.Sprint(typ)
}

func defaultOf(value json.RawMessage, required bool) string {
	switch {
	case required:
		return "required"
	case len(value) == 0:
		return "-"
	}
	return string(value)
}

func printExample(_ context.Context, s *session, a client.Answer) error {
	one, err := client.Decode[client.Algorithm](a)
	if err != nil {
		return err
	}
	return s.PrintJSON(struct {
		Type     string          `json:"type"`
		Settings json.RawMessage `json:"settings"`
	}{one.Type, one.Example})
}

// exampleFile downloads a file of an algorithm's example.
func exampleFile(ctx context.Context, s *session, typ, name string) ([]byte, error) {
	body, err := s.API.OpenBody(ctx, nil, "algorithms", typ, "example", name)
	if err != nil {
		return nil, err
	}
	defer body.Close() // read-only
	return io.ReadAll(body)
}
