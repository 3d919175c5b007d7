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
		Use: "wait JOB...", Short: "Wait until jobs have ended", Args: jobNames, ValidArgsFunction: completeJobs,
		Long: `Wait until all these jobs have ended, and show their progress. It goes on when the service
restarts. If a job has failed, the exit code is 9; with --timeout, it is 7 if time is up.
Ctrl-C leaves the jobs running.`,
		Example: Examples("molrun wait hst5", "molrun wait screen --timeout 2h"),
	}
	w.AddFlag(c)
	return connected(c, func(ctx context.Context, s *session, args []string) error {
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
		Use: "logs JOB", Short: "Print what the program of a job prints", Args: oneArgument("the name of a job"), ValidArgsFunction: completeJobs,
		Example: Examples("molrun logs hst5", "molrun logs -f hst5"),
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the job has ended")
	c.Flags().IntVar(&attempt, "attempt", 0, "which attempt (default the last)")
	w.AddFlag(c)
	return connected(c, func(ctx context.Context, s *session, args []string) error {
		if follow {
			return s.FollowLog(ctx, args[0], w, s.Out)
		}
		part, _, err := s.API.Log(ctx, args[0], attempt, 0, -1)
		if err != nil {
			return err
		}
		defer part.Close() // only read from
		return s.CopyLog(part)
	})
}

func eventsCommand() *cobra.Command {
	var f filter
	c := &cobra.Command{
		Use: "events [JOB]", Short: "Tell what happens to jobs, until Ctrl-C or the job's end", Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeJobs,
		Long: `Tell what happens to your jobs, or to one until its end: a line each, or with --json an object
each with event and data, as GET /events says.`,
		Example: Examples("molrun events --organization", "molrun events hst5 --json"),
	}
	f.addFlags(c)
	return connected(c, func(ctx context.Context, s *session, args []string) error {
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
