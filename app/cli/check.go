package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"molrun/app/config"
	"molrun/app/fault"
	"molrun/app/unit"
	"molrun/storage"
	"molrun/storage/kv"
)

func checkDataCommand() *cobra.Command {
	var o checkOptions
	var asJSON bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Look whether records and files are sound and fit together",
		Long: `Read the whole database (pages, records, indexes, counts) and look at every file
that records name; --deep reads them all and compares their SHA-256. It changes
nothing, and may run while the service does: then it looks at one moment of it.

--repair wants the service stopped. It makes anew what follows from records: indexes,
counts of batches, the floor of IDs (a copy of the database stays beside it), and
moves what no record names to set-aside/ in the data directory. What only a backup
can bring back it leaves as it is, and says so.

Ends with 1 if there are problems. Files that no record names are none: a crash leaves
them, and the service removes them when they are a day old.`,
		Example: "  molrun check --deep\n  molrun check --repair",
		Args:    cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	c.Flags().BoolVar(&o.deep, "deep", false, "read every file and compare it with its digest")
	c.Flags().BoolVar(&o.repair, "repair", false, "put right what follows from the records")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := flags.load()
		if err != nil {
			return err
		}
		found, err := checkData(c.Context(), config, o)
		if o.repair && found != nil {
			tell(c, config.Data, "repair", "")
		}
		if err != nil {
			return fmt.Errorf("check %s: %w", config.Data, err)
		}
		if asJSON {
			err = printJSON(c.OutOrStdout(), found)
		} else {
			err = found.print(c)
		}
		if err == nil && found.Count > 0 {
			err = found.conclusion(o)
		}
		return err
	}
	return c
}

type checkOptions struct{ deep, repair bool }

// checked is what a check has found.
type checked struct {
	Jobs      int          `json:"jobs"`
	Uploads   int          `json:"uploads"`
	Keys      int          `json:"keys"`
	Files     int          `json:"files"` // that were looked at
	Bytes     int64        `json:"bytes"`
	Deep      bool         `json:"deep"`
	Count     int          `json:"problemCount"`
	Derivable int          `json:"derivable"` // of them, --repair puts right
	Problems  []kv.Problem `json:"problems"`  // the first of them
	Strays    []string     `json:"strays"`    // that no record names
	SetAside  string       `json:"setAside,omitempty"`
	Repaired  int          `json:"repaired"` // problems that are gone
}

// maxShownProblems bounds what is told in words.
const maxShownProblems = 1000

func (f *checked) problemf(format string, args ...any) {
	if f.Count++; len(f.Problems) < maxShownProblems {
		f.Problems = append(f.Problems, kv.Problem{Text: fmt.Sprintf(format, args...)})
	}
}

// checkData checks a data directory and, where asked to, repairs it first.
func checkData(ctx context.Context, config config.Config, o checkOptions) (*checked, error) {
	before := 0
	if o.repair {
		found, err := checkData(ctx, config, checkOptions{})
		if err != nil {
			return nil, err
		}
		before = found.Count
		if _, err := storage.Repair(ctx, filepath.Join(config.Data, databaseName), storageOptions(config, zerolog.Nop())); err != nil {
			return nil, err
		}
	}
	found := &checked{Deep: o.deep, Problems: []kv.Problem{}, Strays: []string{}}
	err := withView(ctx, config, func(ctx context.Context, v *view) error {
		sound, err := found.records(ctx, v)
		if err != nil || !sound {
			return err
		}
		if err := found.files(ctx, v, newDigester()); err != nil {
			return err
		}
		return found.strays(v, o)
	})
	found.Repaired = max(0, before-found.Count)
	return found, err
}

// records checks the database and reports whether its records can be read.
func (f *checked) records(ctx context.Context, v *view) (readable bool, err error) {
	report, err := v.records.Check(ctx)
	if err != nil {
		return false, err
	}
	f.Jobs, f.Uploads, f.Keys = report.Jobs, report.Uploads, report.Keys
	f.Count, f.Derivable = report.Count, report.Derivable
	f.Problems = append(f.Problems, report.First...)
	info, err := v.records.Info()
	if err == nil && info.Lost != "" && !v.live {
		f.problemf("%s", info.Lost)
	}
	return report.Readable, err
}

// files looks at every file that records name.
func (f *checked) files(ctx context.Context, v *view, digests *digester) error {
	for file, err := range v.inventory(ctx) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			f.problemf("%v", err)
			continue
		}
		from, info, err := v.files.Open(file.Path)
		if err != nil {
			if !file.Changing || !errors.Is(err, os.ErrNotExist) {
				f.problemf("%v", err)
			}
			continue
		}
		f.Files++
		f.Bytes += info.Size()
		sum, size := file.SHA256, info.Size()
		if f.Deep {
			sum, size, err = digests.stream(ctx, io.Discard, from)
		}
		if err = errors.Join(err, from.Close()); ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			f.problemf("%s can't be read: %v", file.Path, err)
		} else if why := differs(file, sum, size); why != "" {
			f.problemf("%s %s", file.Path, why)
		}
	}
	return nil
}

// strayAge is how old something has to be while the service runs before it is
// left behind rather than on its way into a record.
const strayAge = 24 * time.Hour

func (f *checked) strays(v *view, o checkOptions) error {
	strays, err := v.strays()
	if err != nil {
		return err
	}
	aside := filepath.Join("set-aside", v.taken.UTC().Format(backupLayout))
	for _, s := range strays {
		if v.live && v.taken.Sub(s.Changed) < strayAge {
			continue
		}
		f.Strays = append(f.Strays, s.Path)
		if !o.repair {
			continue
		}
		if v.live {
			return fault.Errorf(fault.Unavailable, "a service runs on the data directory; stop it first")
		}
		if err := v.files.SetAside(s.Path, filepath.ToSlash(aside)); err != nil {
			return err
		}
		f.SetAside = aside
	}
	return nil
}

func (f *checked) print(c *cobra.Command) error {
	w := c.OutOrStdout()
	for _, p := range f.Problems {
		mark := ""
		if p.Derivable {
			mark = " (--repair puts this right)"
		}
		fmt.Fprintf(w, "problem: %s%s\n", p.Text, mark)
	}
	if more := f.Count - len(f.Problems); more > 0 {
		fmt.Fprintf(w, "and %d problems more\n", more)
	}
	for _, s := range f.Strays {
		fmt.Fprintf(w, "no record names %s\n", s)
	}
	if f.SetAside != "" {
		fmt.Fprintf(w, "they are in %s now\n", f.SetAside)
	}
	if f.Repaired > 0 {
		fmt.Fprintf(w, "%d problems are repaired\n", f.Repaired)
	}
	how := "sizes"
	if f.Deep {
		how = "bytes"
	}
	_, err := fmt.Fprintf(w, "%d jobs, %d uploads, %d keys, %s of %d files (%s): %d problems\n",
		f.Jobs, f.Uploads, f.Keys, how, f.Files, unit.Bytes(f.Bytes), f.Count)
	return err
}

// conclusion says what to do.
func (f *checked) conclusion(o checkOptions) error {
	switch {
	case f.Derivable == 0 || o.repair:
		return fmt.Errorf("there are %d problems; only a backup brings back what is lost (molrun restore)", f.Count)
	case f.Derivable == f.Count:
		return fmt.Errorf("there are %d problems; stop the service and run molrun check --repair", f.Count)
	}
	return fmt.Errorf("there are %d problems; molrun check --repair puts %d right, only a backup the others (molrun restore)", f.Count, f.Derivable)
}
