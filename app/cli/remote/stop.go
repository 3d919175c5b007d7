package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"molrun/app/base/unit"
	"molrun/app/cli/terminal"
	"molrun/app/client"
)

// choice selects the jobs that a command changes: by name, by batch, or by filters.
type choice struct {
	filter filter
	byRule bool
	yes    bool
}

// bulkCommand returns a command that applies do to each selected job.
func bulkCommand(c *cobra.Command, verb, done string, statuses []string, do func(ctx context.Context, s *session, name string) error) *cobra.Command {
	var ch choice
	ch.filter.addFlags(c)
	c.Flags().BoolVar(&ch.byRule, "filter", false, "apply to all jobs selected by the filters")
	c.Flags().BoolVarP(&ch.yes, "yes", "y", false, "do not ask")
	c.ValidArgsFunction = completeJobs
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		chosen, err := ch.jobs(ctx, s, args, statuses, c.CommandPath())
		if err != nil {
			return err
		}
		if len(chosen) == 0 {
			s.Notef("no job to %s", verb)
			return nil
		}
		if (ch.byRule || len(chosen) > 1) && !ch.yes {
			if err := confirm(c, fmt.Sprintf("%s %s: %s?", verb, unit.Count(len(chosen), "job"), sample(chosen))); err != nil {
				return err
			}
		}
		return changeEach(ctx, s, "job", chosen, done, do)
	})
}

// jobs returns the names of the selected jobs.
func (ch *choice) jobs(ctx context.Context, s *session, args, statuses []string, path string) (chosen []string, err error) {
	switch {
	case len(args) > 0 && (ch.byRule || ch.filter.any()):
		return nil, Usagef("%s: use names or filters, not both", path)
	case len(args) > 0:
		return args, nil
	case ch.filter.batch != "" && !ch.byRule:
		return []string{ch.filter.batch}, nil
	case !ch.byRule:
		return nil, Usagef("%s requires the names of jobs, --batch NAME, or --filter with filters", path)
	case !ch.filter.any():
		return nil, Usagef("%s --filter requires filters, such as --status or --tag", path)
	}
	if len(ch.filter.status) == 0 {
		ch.filter.status = statuses
	}
	q := ch.filter.query(time.Now())
	_, err = eachPage(ctx, s, "jobs", q, 0, func(a client.Answer) error {
		j, err := client.Decode[client.Job](a)
		if err == nil {
			chosen = append(chosen, j.Name)
		}
		return err
	})
	return chosen, err
}

// changeEach changes jobs or files one after another; kind is the word for one. It
// continues if the service rejects one.
func changeEach(ctx context.Context, s *session, kind string, chosen []string, done string, do func(ctx context.Context, s *session, name string) error) error {
	var changed []string
	var failed []error
	for _, name := range chosen {
		err := retryRateLimited(ctx, func() error { return do(ctx, s, name) })
		if err != nil && len(chosen) > 1 {
			s.Notef("%s: %v", terminal.Clean(name), err)
		}
		if err != nil {
			failed = append(failed, err)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		changed = append(changed, name)
		if !s.JSON {
			s.Notef("%s is %s", terminal.Clean(name), done)
		}
	}
	if s.JSON {
		if changed == nil {
			changed = []string{}
		}
		if err := s.PrintJSON(map[string]any{"done": changed}); err != nil {
			return err
		}
	}
	switch {
	case len(failed) == 0:
		return nil
	case len(chosen) == 1:
		return failed[0]
	}
	return fmt.Errorf("%d of %s are not %s: %w", len(failed), unit.Count(len(chosen), kind), done, failed[0])
}

// sample lists the first few names.
func sample(chosen []string) string {
	const most = 5
	text := terminal.Clean(strings.Join(chosen[:min(most, len(chosen))], ", "))
	if len(chosen) > most {
		text += ", …"
	}
	return text
}

// confirm asks the user for confirmation. If the input is not a terminal, it returns a
// UsageError.
func confirm(c *cobra.Command, question string) error {
	in, ok := c.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return Usagef("%s The input is not a terminal; add --yes", question)
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s [y/N] ", question)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		return err
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}

func cancelCommand() *cobra.Command {
	return bulkCommand(&cobra.Command{
		Use: "cancel JOB...", Short: "Cancel queued or running jobs",
		Example: Examples("molrun cancel hst5", "molrun cancel --batch screen --yes", "molrun cancel --filter --tag project:old --yes"),
	}, "cancel", "being cancelled", []string{"QUEUED", "RUNNING"}, func(ctx context.Context, s *session, name string) error {
		_, err := s.API.Cancel(ctx, name)
		return err
	})
}

func retryCommand() *cobra.Command {
	return bulkCommand(&cobra.Command{
		Use: "retry JOB...", Short: "Retry failed jobs",
		Long:    "Queue failed jobs again. For a batch, retry its failed jobs.",
		Example: Examples("molrun retry ubq-2", "molrun retry --batch ubq", "molrun retry --filter --since 24h --yes"),
	}, "queue again", "queued again", []string{"FAILED"}, func(ctx context.Context, s *session, name string) error {
		_, err := s.API.Retry(ctx, name)
		return err
	})
}

func removeCommand() *cobra.Command {
	return bulkCommand(&cobra.Command{
		Use: "rm JOB...", Aliases: []string{"delete"}, Short: "Delete finished jobs and their results",
		Example: Examples("molrun rm hst5", "molrun rm --filter --status FAILED --until 2026-01-01 --yes"),
	}, "delete", "deleted", []string{"COMPLETED", "FAILED"}, func(ctx context.Context, s *session, name string) error {
		return s.API.Delete(ctx, name)
	})
}

// isNotFound reports whether err means that the object does not exist.
func isNotFound(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Status == http.StatusNotFound
}

// parseSeconds parses a duration such as 7d and returns it in seconds.
func parseSeconds(flag, text string) (int64, error) {
	var d unit.Duration
	if err := d.UnmarshalText([]byte(text)); err != nil {
		return 0, Usagef("%s: %w", flag, err)
	}
	return int64(time.Duration(d) / time.Second), nil
}
