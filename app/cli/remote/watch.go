package remote

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/client"
)

func waitCommand() *cobra.Command {
	var w waiting
	c := &cobra.Command{
		Use: "wait JOB...", Short: "Wait for jobs to finish", Args: jobNames, ValidArgsFunction: completeJobs,
		Long: `Wait until all these jobs have finished, and show their progress, across restarts of the
service. The exit code is 9 if a job failed, and 7 after --timeout. Ctrl-C leaves the jobs
running.`,
		Example: Examples("molrun wait hst5", "molrun wait screen --timeout 2h"),
	}
	w.AddFlag(c)
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		deadline := time.Now().Add(w.Timeout)
		var failed error
		for _, name := range args {
			left := w
			if w.Timeout > 0 {
				left.Timeout = max(time.Until(deadline), time.Millisecond)
			}
			j, err := s.Await(ctx, name, left)
			if err != nil {
				return err
			}
			if err := failureOf(j); err != nil && failed == nil {
				failed = err
			}
			if err := record(ctx, s, name); err != nil {
				return err
			}
		}
		return failed
	})
}

func logsCommand() *cobra.Command {
	var follow bool
	var attempt int
	var w waiting
	c := &cobra.Command{
		Use: "logs JOB", Short: "Show a job's log", Args: oneArgument("the name of a job"), ValidArgsFunction: completeJobs,
		Example: Examples("molrun logs hst5", "molrun logs -f hst5"),
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing until the job finishes")
	c.Flags().IntVar(&attempt, "attempt", 0, "attempt (default: the last)")
	w.AddFlag(c)
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		if follow {
			return s.FollowLog(ctx, args[0], w, s.Out)
		}
		part, _, err := s.API.Log(ctx, args[0], attempt, 0, -1)
		if err != nil {
			return err
		}
		defer part.Close() // read-only
		return s.CopyLog(part)
	})
}

func eventsCommand() *cobra.Command {
	var f filter
	c := &cobra.Command{
		Use: "events [JOB]", Short: "Stream job events", Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeJobs,
		Long: `Stream the events of your jobs until Ctrl-C, or of one job until it finishes: one line each,
or with --json one object each with event and data, as from GET /events.`,
		Example: Examples("molrun events --organization", "molrun events hst5 --json"),
	}
	f.addFlags(c)
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		if len(args) == 1 {
			return s.Follow(ctx, args[0], false, func(e client.Event) error { return printEvent(s, e) })
		}
		q := f.query(time.Now())
		last := ""
		for {
			err := listenAll(ctx, s, q, &last)
			if ctx.Err() != nil || !isTemporary(err) {
				return err
			}
			if err := pause(ctx, redraw); err != nil {
				return err
			}
		}
	})
}
