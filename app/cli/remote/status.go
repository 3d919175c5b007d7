package remote

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/cli/terminal"
	"molrun/app/client"
)

func statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "status JOB...", Short: "Show the current state of jobs", Args: jobNames, ValidArgsFunction: completeJobs,
		Example: Examples("molrun status hst5", "molrun status hst5 --json"),
	}
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		for i, name := range args {
			if i > 0 && !s.JSON {
				if err := s.Print(""); err != nil {
					return err
				}
			}
			if err := record(ctx, s, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// record prints a job's record.
func record(ctx context.Context, s *session, name string) error {
	a, err := s.API.Get(ctx, nil, "jobs", name)
	if err != nil {
		return err
	}
	return s.PrintAnswer(a, func() error {
		j, err := client.Decode[client.Job](a)
		if err != nil {
			return err
		}
		return describe(ctx, s, j)
	})
}

func describe(ctx context.Context, s *session, j *client.Job) error {
	_, _, detail := progressOf(j)
	if len(j.Warnings) > 0 { // printed below
		detail = ""
	}
	counts := ""
	if n := rowCount(j); n > 0 {
		_, counts, _ = progressOf(j)
	}
	result := ""
	if j.ResultBytes > 0 {
		result = terminal.Size(j.ResultBytes) + ", molrun results " + j.Name
	}
	failure := ""
	if j.Failure != nil {
		failure = j.Failure.Message + " (" + j.Failure.Code + ")"
	}
	if err := s.Print("%s  %s", terminal.Clean(j.Name), s.Paint(j.Status)); err != nil {
		return err
	}
	pairs := [][2]string{
		{"type", j.Type + " " + j.Version},
		{"submitted", clockTime(j.CreatedAt)},
		{"started", clockTime(j.StartedAt)},
		{"ended", clockTime(j.CompletedAt)},
		{"run time", runTime(j, time.Now())},
		{"rows", counts},
		{"now", detail},
		{"failure", failure},
		{"result", result},
		{"left out", leftOut(j.LeftOut)},
		{"note", j.Note},
	}
	for _, w := range j.Warnings {
		pairs = append(pairs, [2]string{"warning", w})
	}
	err := s.Pairs(pairs)
	if err != nil || j.Metrics == nil {
		return err
	}
	return printMetrics(ctx, s, j)
}

// leftOut describes the program's files that the result omits.
func leftOut(l *client.LeftOut) string {
	if l == nil || len(l.Paths) == 0 {
		return ""
	}
	first := terminal.Clean(l.Paths[0].Path) + ": " + l.Paths[0].Reason
	if l.Count > 1 {
		first += fmt.Sprintf(", and %d more; see the end of the log", l.Count-1)
	}
	return first
}

func clockTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05 MST")
}

// printMetrics prints the metrics of a result that are numbers or short strings. It
// formats them as the algorithm specifies, if the service can be queried.
func printMetrics(ctx context.Context, s *session, j *client.Job) error {
	if len(j.Metrics.Results) == 0 {
		return nil
	}
	var all map[string]any
	if err := decodeExact(j.Metrics.Results, &all); err != nil {
		return nil //nolint:nilerr // a result that is no object has no figures
	}
	a := &client.Algorithm{}
	if answer, err := s.API.Get(ctx, url.Values{"version": {j.Version}}, "algorithms", j.Type); err == nil {
		if a, err = client.Decode[client.Algorithm](answer); err != nil {
			return err
		}
	}
	return s.Pairs(plainMetrics(all, a.Metrics))
}
