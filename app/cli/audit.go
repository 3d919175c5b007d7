package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/base/unit"
	"molrun/app/cli/remote"
	"molrun/app/job/audit"
)

func auditCommand() *cobra.Command {
	var since, key, action string
	var follow, asJSON bool
	c := &cobra.Command{
		Use:   "audit",
		Short: "Show the audit log",
		Long: `Show the audit log: submissions, cancellations, retries and deletions, uploads, links to
results, changes to keys and the signing key, prune, backup, restore, repair and compact,
and failed authentication. Works whether or not the service is running.`,
		Example: `  molrun audit --since 24h
  molrun audit --key acatwwcwiblh --action job
  molrun audit --action authenticate --follow`,
		Args: cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&since, "since", "", "only entries since this date or within this time, such as 2026-11-20, 24h or 7d")
	c.Flags().StringVar(&key, "key", "", "only entries by or about the API key with this ID")
	c.Flags().StringVar(&action, "action", "", "only this action, such as job.submit, or group, such as job")
	c.Flags().BoolVar(&follow, "follow", false, "keep printing new entries until interrupted")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, one object per line")
	c.RunE = func(c *cobra.Command, _ []string) error {
		from, err := parseSince(since, time.Now())
		if err != nil {
			return remote.Usagef("--since: %w", err)
		}
		config, err := flags.existing(c)
		if err != nil {
			return err
		}
		filter := audit.Filter{Since: from, Key: key, Action: action}
		print := printEntries(c.OutOrStdout(), asJSON)
		if follow {
			return audit.Follow(c.Context(), config.Data, filter, print)
		}
		return audit.ReadEntries(config.Data, filter, print)
	}
	return c
}

// parseSince parses an age or a date.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	var ago unit.Duration
	if err := ago.UnmarshalText([]byte(text)); err != nil {
		return time.Time{}, errors.New("use an age, such as 24h or 7d, or a date, such as 2026-11-20")
	}
	return now.Add(-time.Duration(ago)), nil
}

// printEntries returns a function that prints one entry, as JSON or as a row of a table
// with fixed column widths.
func printEntries(w io.Writer, asJSON bool) func(audit.Entry) error {
	encoder := json.NewEncoder(w)
	if asJSON {
		return func(e audit.Entry) error { return encoder.Encode(e) }
	}
	first := true
	return func(e audit.Entry) error {
		if first {
			first = false
			if _, err := fmt.Fprintf(w, auditColumns, "TIME", "KEY", "ORGANIZATION", "ACTION", "RESULT", "REMOTE", "OBJECT"); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(w, auditColumns, e.Time.Local().Format(time.DateTime), or(e.Key, "-"), or(e.Organization, "-"),
			e.Action, e.Result, or(e.Remote, "-"), e.Object)
		return err
	}
}

const auditColumns = "%-19s  %-12s  %-14s  %-15s  %-18s  %-15s  %s\n"

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

// byCommand is the origin of actions that a command performs itself rather than by a
// request to the service.
const byCommand = "command"

// recordAct adds a command's action on the whole data directory to the audit log. The
// action has already happened, so an error only causes a warning.
func recordAct(c *cobra.Command, data, action, object string) {
	e := audit.Entry{Time: unit.At(time.Now()), Action: action, Object: object, Result: "ok", Remote: byCommand}
	if err := audit.Append(data, e); err != nil {
		fmt.Fprintf(c.ErrOrStderr(), "warning: could not write to the audit log: %v\n", err)
	}
}
