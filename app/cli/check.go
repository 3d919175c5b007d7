package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/base/unit"
	"molrun/app/server/check"
)

func checkCommand() *cobra.Command {
	var o check.Options
	var asJSON bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Verify records and files",
		Long: `Verify the whole database (pages, records, indexes, counts) and every file that a record
refers to; --deep also verifies the SHA-256 of each file. Nothing is changed. While the
service is running, a snapshot is verified.

Records are verified against their checksums (CRC-32C), and derived data against the records.
Task files, outcomes and logs of attempts, the signing key and the audit log have no checksum.

--repair requires the service to be stopped. It rebuilds indexes, counts of batches and the
high-water mark of IDs, and keeps a copy of the old database beside the new one. Files that
no record refers to are moved to set-aside/ in the data directory. Problems that only a
backup can fix are reported and left as they are.

Exits with 1 if there are problems. Files that no record refers to are not problems: a crash
leaves them, and the service deletes them after a day. Files that are not the service's are
listed and left alone.`,
		Example: "  molrun check --deep\n  molrun check --repair",
		Args:    cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	c.Flags().BoolVar(&o.Deep, "deep", false, "read every file and verify its digest")
	c.Flags().BoolVar(&o.Repair, "repair", false, "repair indexes, counts and misplaced files")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := flags.existing(c)
		if err != nil {
			return err
		}
		found, err := check.Run(c.Context(), config, o)
		if o.Repair && found != nil {
			recordAct(c, config.Data, "repair", "")
		}
		if err != nil {
			return fmt.Errorf("check %s: %w", config.Data, err)
		}
		if asJSON {
			err = printJSON(c.OutOrStdout(), found)
		} else {
			err = printCheck(c.OutOrStdout(), found)
		}
		if err == nil && found.Count > 0 {
			err = checkError(found, o.Repair)
		}
		return err
	}
	return c
}

func printCheck(w io.Writer, r *check.Report) error {
	for _, p := range r.Problems {
		mark := ""
		if p.Derivable {
			mark = " (--repair fixes this)"
		}
		fmt.Fprintf(w, "problem: %s%s\n", p.Text, mark)
	}
	if more := r.Count - len(r.Problems); more > 0 {
		fmt.Fprintf(w, "and %d more problems\n", more)
	}
	printStrays(w, r, time.Now())
	if r.Repaired > 0 {
		fmt.Fprintf(w, "repaired %d problems\n", r.Repaired)
	}
	how := "sizes"
	if r.Deep {
		how = "bytes"
	}
	_, err := fmt.Fprintf(w, "%d jobs, %d uploads, %d keys, %s of %d files (%s): %d problems\n",
		r.Jobs, r.Uploads, r.Keys, how, r.Files, unit.Bytes(r.Bytes), r.Count)
	return err
}

// maxStrays is the maximum number of files of each kind to list. The totals include all
// files.
const maxStrays = 100

// printStrays lists unused files and says what happens to them.
func printStrays(w io.Writer, r *check.Report, now time.Time) {
	list := func(what string, strays []check.Stray, todo string) {
		var bytes int64
		for i, s := range strays {
			if bytes += s.Bytes; i < maxStrays {
				fmt.Fprintf(w, "%s: %s (%s, changed %s ago)\n", what, s.Path, unit.Bytes(s.Bytes), ageText(now.Sub(s.Changed)))
			}
		}
		if len(strays) > 0 {
			fmt.Fprintf(w, "%s, %s: %s\n", unit.Count(len(strays), what), unit.Bytes(bytes), todo)
		}
	}
	todo := "no record refers to them; the service deletes them when they are a day old; --repair, with the service stopped, moves them to set-aside/"
	if r.SetAside != "" {
		todo = "they are in " + r.SetAside + " now; check them, then delete them"
	}
	list("stray file", r.Strays, todo)
	list("foreign file", r.Foreign, "molrun does not touch them, and backups do not include them; move them elsewhere")
	if r.Young > 0 {
		fmt.Fprintf(w, "%s younger than a day not listed: the running service may be about to record them\n", unit.Count(r.Young, "file"))
	}
}

// ageText formats a duration in days, hours or minutes.
func ageText(age time.Duration) string {
	switch {
	case age >= 48*time.Hour:
		return unit.Count(int(age/(24*time.Hour)), "day")
	case age >= 2*time.Hour:
		return unit.Count(int(age/time.Hour), "hour")
	}
	return unit.Count(max(0, int(age/time.Minute)), "minute")
}

// checkError returns an error that says how to fix the problems.
func checkError(r *check.Report, repaired bool) error {
	switch {
	case r.Derivable == 0 || repaired:
		return fmt.Errorf("there are %d problems; only a backup can recover lost data (molrun restore)", r.Count)
	case r.Derivable == r.Count:
		return fmt.Errorf("there are %d problems; stop the service and run molrun check --repair", r.Count)
	}
	return fmt.Errorf("there are %d problems; molrun check --repair fixes %d, the others need a backup (molrun restore)", r.Count, r.Derivable)
}
