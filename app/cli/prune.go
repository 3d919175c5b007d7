package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"molrun/app/base/unit"
	"molrun/app/cli/remote"
	"molrun/app/client"
	"molrun/app/server"
)

// pruneFlags are the flags of molrun prune.
type pruneFlags struct {
	olderThan, largerThan  string
	dryRun, yes, asJSON    bool
	failed                 bool
	organization, user, by string
}

func pruneCommand() *cobra.Command {
	var f pruneFlags
	c := &cobra.Command{
		Use:   "prune",
		Short: "Delete old finished jobs and their results",
		Long: `Delete finished jobs with their results and logs, and uploads that no other job refers to.
Pinned jobs are kept, and so are results that an unfinished job needs. The command first
shows what would be deleted, with sizes on disk.`,
		Example: `  molrun prune --older-than 30d --failed --dry-run
  molrun prune --older-than 180d --larger-than 1GiB
  molrun prune --older-than 90d --organization lab --user ann@lab.example --yes`,
		Args: cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&f.olderThan, "older-than", "", "jobs that finished at least this long ago, such as 30d (required)")
	c.Flags().BoolVar(&f.failed, "failed", false, "only failed jobs")
	c.Flags().StringVar(&f.organization, "organization", "", "only jobs of this organization")
	c.Flags().StringVar(&f.user, "user", "", "only jobs of the user with this e-mail address")
	c.Flags().StringVar(&f.by, "algorithm", "", "only jobs of this algorithm")
	c.Flags().StringVar(&f.largerThan, "larger-than", "", "only jobs with a result of at least this size, such as 1GiB")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what would be deleted, without deleting it")
	c.Flags().BoolVar(&f.yes, "yes", false, "delete without asking")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON; requires --dry-run or --yes")
	if err := c.MarkFlagRequired("older-than"); err != nil {
		panic(err) // the flag was just added
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		request, err := f.request(time.Now())
		if err != nil {
			return remote.Usage(err)
		}
		config, err := flags.existing(c)
		if err != nil {
			return err
		}
		return server.WithLongControl(c.Context(), config, func(ctx context.Context, control *client.Control) error {
			return f.deleteFound(ctx, c, control, request)
		})
	}
	return c
}

// request validates the flags and returns the request.
func (f *pruneFlags) request(now time.Time) (r client.PruneRequest, err error) {
	var age unit.Duration
	if err := age.UnmarshalText([]byte(f.olderThan)); err != nil {
		return r, fmt.Errorf("--older-than: %w", err)
	}
	if age < 0 {
		return r, errors.New("--older-than: use a time such as 30d")
	}
	var size unit.Bytes
	if f.largerThan != "" {
		if err := size.UnmarshalText([]byte(f.largerThan)); err != nil {
			return r, fmt.Errorf("--larger-than: %w", err)
		}
	}
	switch {
	case f.dryRun && f.yes:
		return r, errors.New("use --dry-run or --yes, not both")
	case f.asJSON && !f.dryRun && !f.yes:
		return r, errors.New("--json requires --dry-run or --yes")
	case !f.dryRun && !f.yes && !isatty.IsTerminal(os.Stdin.Fd()):
		return r, errors.New("the input is not a terminal: use --dry-run to see what would be deleted, or --yes to delete it")
	}
	return client.PruneRequest{
		EndedBefore: now.Add(-time.Duration(age)), Failed: f.failed, Organization: f.organization,
		User: strings.ToLower(f.user), Algorithm: f.by, LargerThan: int64(size),
	}, nil
}

// deleteFound deletes immediately if no confirmation is needed. Otherwise it shows what
// would be deleted, asks, and deletes whatever has not changed since.
func (f *pruneFlags) deleteFound(ctx context.Context, c *cobra.Command, control *client.Control, r client.PruneRequest) error {
	r.DryRun = !f.yes
	found, err := pruneAll(ctx, control, r)
	if err := errors.Join(f.showFound(c, found), err); err != nil || r.DryRun == f.dryRun || len(found) == 0 {
		return err
	}
	if !confirmed(c.InOrStdin(), c.ErrOrStderr(), "Delete them permanently? [y/N] ") {
		fmt.Fprintln(c.ErrOrStderr(), "nothing was deleted")
		return nil
	}
	r.DryRun = false
	gone, err := pruneAll(ctx, control, r)
	fmt.Fprintln(c.OutOrStdout(), prunedText(gone, "deleted"))
	return err
}

// prunePatience limits the total time of all pages. The next prune finds the rest.
const prunePatience = 6 * time.Hour

func pruneAll(ctx context.Context, control *client.Control, r client.PruneRequest) (all []*client.Pruned, err error) {
	ctx, cancel := context.WithTimeout(ctx, prunePatience)
	defer cancel()
	for one, err := range control.Prune(ctx, r) {
		if err != nil {
			return all, err
		}
		all = append(all, one)
	}
	return all, nil
}

// pruneReport is the output of --json.
type pruneReport struct {
	DryRun bool             `json:"dryRun"`
	Jobs   []*client.Pruned `json:"jobs"`
	Bytes  int64            `json:"bytes"`
}

func (f *pruneFlags) showFound(c *cobra.Command, found []*client.Pruned) error {
	if f.asJSON {
		return printJSON(c.OutOrStdout(), pruneReport{f.dryRun, append([]*client.Pruned{}, found...), bytesOf(found)})
	}
	rows := make([][]string, len(found))
	for i, p := range found {
		name := p.JobName
		if p.Rows > 0 {
			name += fmt.Sprintf(" (%d rows)", p.Rows)
		}
		rows[i] = []string{
			name, p.Organization, p.User, p.Type, p.Status, dateText(p.CompletedAt),
			unit.Bytes(p.Bytes).String(), strings.Join(p.Uploads, ", "),
		}
	}
	if len(rows) > 0 {
		heading := []string{"JOB", "ORGANIZATION", "USER", "ALGORITHM", "STATUS", "ENDED", "SIZE", "WITH UPLOADS"}
		if err := printTable(c.OutOrStdout(), heading, rows); err != nil {
			return err
		}
	}
	done := "would be deleted"
	if f.yes {
		done = "deleted"
	}
	_, err := fmt.Fprintln(c.OutOrStdout(), prunedText(found, done))
	return err
}

// prunedText summarizes what was deleted.
func prunedText(found []*client.Pruned, done string) string {
	uploads := 0
	for _, p := range found {
		uploads += len(p.Uploads)
	}
	text := fmt.Sprintf("%s: %d jobs", done, len(found))
	if uploads > 0 {
		text += fmt.Sprintf(" and %d uploads", uploads)
	}
	return text + ", " + unit.Bytes(bytesOf(found)).String()
}

func bytesOf(found []*client.Pruned) (bytes int64) {
	for _, p := range found {
		bytes += p.Bytes
	}
	return bytes
}

// confirmed asks a question and reports whether the answer is yes.
func confirmed(in io.Reader, out io.Writer, question string) bool {
	fmt.Fprint(out, question)
	answer, _ := bufio.NewReader(in).ReadString('\n') // no answer means no
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
