package remote

import (
	"cmp"
	"context"
	"encoding/csv"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/cli/terminal"
	"molrun/app/client"
)

func jobsCommand() *cobra.Command {
	var f filter
	var format string
	var watch bool
	var most int
	c := &cobra.Command{
		Use: "jobs", Short: "List jobs, newest first", Args: cobra.NoArgs,
		Long: `List your jobs, newest first. A batch is one line; --batch lists its jobs. With --watch, the
list is refreshed until Ctrl-C.`,
		Example: Examples("molrun jobs", "molrun jobs --status RUNNING,QUEUED --organization", "molrun jobs --batch screen -o csv"),
	}
	f.addFlags(c)
	c.Flags().StringVarP(&format, "output", "o", "", "output format: wide, csv or json")
	c.Flags().BoolVar(&watch, "watch", false, "refresh continuously")
	c.Flags().IntVar(&most, "limit", 25, "maximum number of jobs; 0 for all")
	completeFlag(c, "output", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"wide", "csv", "json"}, cobra.ShellCompDirectiveNoFileComp
	})
	return withSession(c, func(ctx context.Context, s *session, _ []string) error {
		list := &jobList{session: s, filter: &f, most: most, format: format}
		switch {
		case format != "" && format != "wide" && format != "csv" && format != "json":
			return Usagef("-o %s: write wide, csv or json", format)
		case watch && !s.Interactive:
			return Usagef("--watch needs a terminal; in scripts, use molrun events")
		case watch:
			return list.watch(ctx)
		}
		if format == "json" {
			s.JSON = true
		} else if format != "" {
			s.JSON = false
		}
		return list.print(ctx)
	})
}

// jobList lists jobs.
type jobList struct {
	*session
	filter *filter
	most   int
	format string
}

func (l *jobList) print(ctx context.Context) error {
	q := l.filter.query(time.Now())
	if l.JSON {
		return l.printJSON(ctx, q)
	}
	var jobs []*client.Job
	more, err := eachPage(ctx, l.session, "jobs", q, l.most, func(a client.Answer) error {
		j, err := client.Decode[client.Job](a)
		jobs = append(jobs, j)
		return err
	})
	if err != nil {
		return err
	}
	if l.format == "csv" {
		return l.csv(jobs)
	}
	if len(jobs) == 0 {
		l.Notef("no jobs; molrun submit TYPE --example creates one")
		return nil
	}
	if err := l.table(jobs); err != nil {
		return err
	}
	if more {
		l.Notef("there are more; --limit 0 lists all")
	}
	return nil
}

func (l *jobList) printJSON(ctx context.Context, q url.Values) error {
	list := struct {
		Jobs []client.Answer `json:"jobs"`
		More bool            `json:"more"`
	}{Jobs: []client.Answer{}}
	more, err := eachPage(ctx, l.session, "jobs", q, l.most, func(a client.Answer) error {
		list.Jobs = append(list.Jobs, a)
		return nil
	})
	if err != nil {
		return err
	}
	list.More = more
	return l.PrintJSON(list)
}

func (l *jobList) table(jobs []*client.Job) error {
	columns := []terminal.Column{{Title: "NAME", MinWidth: 12}, {Title: "TYPE", MinWidth: 8}, {Title: "STATE"}, {Title: "SUBMITTED", Right: true}, {Title: "TIME", Right: true}, {Title: "NOTES", MinWidth: 10}}
	if l.format == "wide" {
		l.Width = 10_000
		columns = append(columns, terminal.Column{Title: "USER"}, terminal.Column{Title: "EXECUTOR"}, terminal.Column{Title: "ID"})
	}
	now := time.Now()
	lines := make([][]string, len(jobs))
	for i, j := range jobs {
		lines[i] = []string{j.Name, cmp.Or(j.Type, "(several)"), terminal.State(j.Status), terminal.Ago(j.CreatedAt, now), runTime(j, now), jobNote(j), j.Email, j.Executor, j.ID}[:len(columns)]
	}
	return l.Table(columns, lines)
}

// runTime formats how long a job has run.
func runTime(j *client.Job, now time.Time) string {
	switch {
	case j.StartedAt.IsZero():
		return "-"
	case j.CompletedAt.IsZero():
		return terminal.Duration(now.Sub(j.StartedAt))
	}
	return terminal.Duration(j.CompletedAt.Sub(j.StartedAt))
}

// jobNote returns the most important note on a job in its current state.
func jobNote(j *client.Job) string {
	if j.Status == "FAILED" && j.Failure != nil {
		return j.Failure.Message
	}
	_, head, detail := progressOf(j)
	if len(j.Counts) > 0 {
		return head
	}
	if j.Progress != nil {
		detail = strconv.Itoa(int(100*j.Progress.Fraction)) + " %, " + detail
	}
	return detail
}

func (l *jobList) csv(jobs []*client.Job) error {
	w := csv.NewWriter(l.Out)
	_ = w.Write([]string{"jobName", "type", "version", "status", "jobEmail", "batch", "createdAt", "startedAt", "completedAt", "attempts", "failureCode", "jobId"}) // checked by w.Error below
	for _, j := range jobs {
		code := ""
		if j.Failure != nil {
			code = j.Failure.Code
		}
		_ = w.Write([]string{j.Name, j.Type, j.Version, j.Status, j.Email, j.Batch, stamp(j.CreatedAt), stamp(j.StartedAt), stamp(j.CompletedAt), strconv.Itoa(j.Attempts), code, j.ID})
	}
	w.Flush()
	return w.Error()
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// redraw is the refresh interval of the list.
const redraw = 2 * time.Second

func (l *jobList) watch(ctx context.Context) error {
	for {
		page := newPage(l.session)
		screen := &jobList{session: page.session, filter: l.filter, most: l.most, format: l.format}
		err := screen.print(ctx)
		if err != nil && !isTemporary(err) {
			return err
		}
		if err := page.flush(err); err != nil {
			return err
		}
		if err := pause(ctx, redraw); err != nil {
			return nil //nolint:nilerr // Ctrl-C is how it ends
		}
	}
}
