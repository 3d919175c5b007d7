package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/audit"
	"molrun/app/fault"
	"molrun/app/unit"
)

// auditFilter selects entries.
type auditFilter struct {
	since       time.Time
	key, action string
}

func (f auditFilter) takes(e audit.Entry) bool {
	return !e.Time.Before(f.since) && (f.key == "" || e.Key == f.key || strings.HasPrefix(e.Action, "key.") && e.Object == f.key) &&
		(f.action == "" || e.Action == f.action || strings.HasPrefix(e.Action, f.action+"."))
}

func auditCommand() *cobra.Command {
	var since, key, action string
	var follow, asJSON bool
	c := &cobra.Command{
		Use:   "audit",
		Short: "Show who changed what",
		Long: `Show the audit log: submissions, cancels, retries and deletions, new and
completed uploads, links to results, all that is done to keys and to the
secret, prune, backup, restore, repair and compact, and failed authentications.
Works while the service runs and while it does not.`,
		Example: `  molrun audit --since 24h
  molrun audit --key acatwwcwiblh --action job
  molrun audit --action authenticate --follow`,
		Args: cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&since, "since", "", "only what is newer: a time ago, such as 24h or 7d, or a date such as 2026-11-20")
	c.Flags().StringVar(&key, "key", "", "only what the API key with this ID did, or was done to it")
	c.Flags().StringVar(&action, "action", "", "only this action, such as job.submit, or its group, such as job")
	c.Flags().BoolVar(&follow, "follow", false, "go on with what is added, until interrupted")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	c.RunE = func(c *cobra.Command, _ []string) error {
		from, err := sinceWhen(since, time.Now())
		if err != nil {
			return usageError{fmt.Errorf("--since: %w", err)}
		}
		config, err := flags.load()
		if err != nil {
			return err
		}
		print := printAudit(c.OutOrStdout(), asJSON)
		r := &auditReader{path: filepath.Join(config.Data, auditName), filter: auditFilter{from, key, action}, print: print}
		defer r.close()
		return r.run(c.Context(), follow)
	}
	return c
}

// sinceWhen reads a time ago or a date.
func sinceWhen(text string, now time.Time) (time.Time, error) {
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
		return time.Time{}, errors.New("give a time ago, such as 24h or 7d, or a date, such as 2026-11-20")
	}
	return now.Add(-time.Duration(ago)), nil
}

// printAudit gives what prints an entry: as a line of a table whose columns
// are as wide as they usually need, or as JSON.
func printAudit(w io.Writer, asJSON bool) func(audit.Entry) error {
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

// auditReader reads the files of the audit log, oldest first.
type auditReader struct {
	path   string
	filter auditFilter
	print  func(audit.Entry) error

	file *os.File // the current one
	rest string   // of a line whose end is not there yet
}

// followEvery is how often the file is looked at for more.
const followEvery = 300 * time.Millisecond

func (r *auditReader) run(ctx context.Context, follow bool) error {
	if err := r.older(); err != nil {
		return err
	}
	for {
		if err := r.current(); err != nil {
			return err
		}
		if !follow {
			return nil
		}
		select {
		case <-time.After(followEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// older reads the files that are full. The current one is opened first, so
// that nothing is missed if it becomes one of them meanwhile.
func (r *auditReader) older() error {
	if err := r.open(); err != nil {
		return err
	}
	last := 0
	for {
		if _, err := os.Stat(auditFile(r.path, last+1)); err != nil {
			break
		}
		last++
	}
	for i := last; i > 0; i-- {
		file, err := os.Open(auditFile(r.path, i))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		same := r.isOpen(file)
		if !same {
			err = r.lines(file)
		}
		r.rest = ""
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (r *auditReader) isOpen(other *os.File) bool {
	if r.file == nil {
		return false
	}
	a, errA := r.file.Stat()
	b, errB := other.Stat()
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// open opens the current file, where there is one.
func (r *auditReader) open() error {
	file, err := os.Open(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(r.path)); err != nil {
			return fault.Errorf(fault.NotFound, "there is no data directory %s; name it by --data", filepath.Dir(r.path))
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	r.file = file
	return nil
}

// current reads on in the open file, and goes to the next one when that was
// put in its place.
func (r *auditReader) current() error {
	if r.file != nil {
		if err := r.lines(r.file); err != nil {
			return err
		}
		next, err := os.Stat(r.path)
		if info, errOpen := r.file.Stat(); err != nil || errOpen != nil || os.SameFile(next, info) {
			return nil
		}
		if err := r.lines(r.file); err != nil { // what came before the new file
			return err
		}
		r.close()
		r.file, r.rest = nil, ""
	}
	if err := r.open(); err != nil || r.file == nil {
		return err
	}
	return r.lines(r.file)
}

// lines prints what is there of a file from where it was left.
func (r *auditReader) lines(file *os.File) error {
	reader := bufio.NewReader(file)
	for {
		part, err := reader.ReadString('\n')
		r.rest += part
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		var e audit.Entry
		broken := json.Unmarshal([]byte(r.rest), &e)
		r.rest = ""
		if broken == nil && r.filter.takes(e) {
			if err := r.print(e); err != nil {
				return err
			}
		}
	}
}

func (r *auditReader) close() {
	if r.file != nil {
		_ = r.file.Close() // only read from
	}
}
