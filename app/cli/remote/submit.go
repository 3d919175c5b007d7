package remote

import (
	"context"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"molrun/app/cli/terminal"
	"molrun/app/client"
)

// submitFlags holds the flags for what to do once the job is queued.
type submitFlags struct {
	waiting
	wait, follow bool
	download     string
	dryRun       bool
}

func (a *submitFlags) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&a.wait, "wait", false, "wait until it finishes; exit code 9 if it failed")
	f.BoolVar(&a.follow, "follow", false, "wait, and show the log")
	f.StringVar(&a.download, "download", "", "wait, and download the result into this folder")
	f.BoolVar(&a.dryRun, "dry-run", false, "validate the submission and show it, without queueing it")
	a.waiting.AddFlag(c)
}

// submit sends a submission, and then waits and downloads the result as the flags in a
// request. With --dry-run, it only validates the submission.
func (a *submitFlags) submit(ctx context.Context, s *session, route string, body any) error {
	if a.dryRun {
		return validateSubmission(ctx, s, body)
	}
	answer, err := s.API.Post(ctx, body, route)
	if err != nil {
		return err
	}
	return a.submitted(ctx, s, answer)
}

// submitted prints a queued job, or waits for it and downloads its result, as the flags
// in a request.
func (a *submitFlags) submitted(ctx context.Context, s *session, answer client.Answer) error {
	j, err := client.Decode[client.Job](answer)
	if err != nil {
		return err
	}
	if !j.Created {
		s.Notef("%s already exists with the same settings", terminal.Clean(j.Name))
	}
	if !a.wait && !a.follow && a.download == "" {
		return s.PrintAnswer(answer, func() error {
			s.Notef("to follow it: molrun wait %s", terminal.Clean(j.Name))
			return s.Print("%s  %s", terminal.Clean(j.Name), s.Paint(j.Status))
		})
	}
	if a.follow {
		err = s.FollowLog(ctx, j.Name, a.waiting, progressOutput(s))
	} else {
		j, err = s.Await(ctx, j.Name, a.waiting)
	}
	if err == nil && a.follow {
		j, err = s.API.Job(ctx, j.Name)
	}
	if err != nil {
		return err
	}
	if err := failureOf(j); err != nil {
		return err
	}
	if a.download != "" {
		if err := unpack(ctx, s, client.ResultRequest{Job: j.Name}, a.download); err != nil {
			return err
		}
	}
	if a.follow && !s.JSON {
		return nil
	}
	return record(ctx, s, j.Name)
}

// progressOutput returns the destination of a log that precedes the final output.
func progressOutput(s *session) io.Writer {
	if s.JSON {
		return s.Err
	}
	return s.Out
}

func submitCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "submit [TYPE]", Short: "Submit a job", Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeTypes,
		Long: `Submit a job: an algorithm with settings and files. Local files are uploaded first, unless the
service already has them. Submitting the same job again under the same name returns that job.`,
		Example: Examples(
			`molrun submit cg-idp --set 'sequences=["DSHAKRHHGYKRKFHEKHHSHRGY"]' --set steps=100000`,
			"molrun submit cg-idp --example --name first --wait",
			"molrun submit structure-summary --file structure=model.pdb --tag project:lysozyme",
			"molrun submit -i job.toml --follow --download out"),
	}
	return asSubmit(c, &submitFlags{})
}

func runCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "run [TYPE]", Short: "Submit a job, follow its log and download the result", Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeTypes,
		Long: `Submit a job, show its log until it finishes, and download the result into a folder with the
job's name, or that of --download. Ctrl-C leaves the job running.`,
		Example: Examples(
			"molrun run cg-idp --example --name first",
			"molrun run sequence-properties --set sequence=MDVFMKGLSKAKEGVVAAAEKTKQG --download out"),
	}
	return asSubmit(c, &submitFlags{follow: true, download: "."})
}

// asSubmit makes c submit one job. The initial values in a are the defaults of the
// flags.
func asSubmit(c *cobra.Command, a *submitFlags) *cobra.Command {
	var d description
	follow, download := a.follow, a.download
	d.addFlags(c, "job")
	a.addFlags(c)
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		j, err := d.job(ctx, s, c, args)
		if err != nil {
			return err
		}
		if follow {
			a.follow = a.follow || !a.wait
			if a.download == "" {
				a.download = filepath.Join(download, j.Name)
			}
		}
		if j.Settings == nil && j.Files == nil {
			j.Settings = map[string]any{}
		}
		body, err := prepare(ctx, s, &j, d.folder)
		if err != nil {
			return err
		}
		return a.submit(ctx, s, "submit-job", body)
	})
}

// validateSubmission validates a submission and shows what would be sent.
func validateSubmission(ctx context.Context, s *session, body any) error {
	verdict, err := s.API.Post(ctx, body, "estimate")
	if err != nil {
		return err
	}
	e, err := client.Decode[client.Estimate](verdict)
	if err != nil {
		return err
	}
	if !e.Possible {
		return &client.Error{Status: 422, Code: "INVALID", Details: e.Detail}
	}
	return s.PrintJSON(body)
}
