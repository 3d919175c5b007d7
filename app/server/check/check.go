// Package check verifies that the records and files of a data directory are intact and
// consistent, and repairs data derived from the records.
package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/base/digest"
	"molrun/app/base/fault"
	"molrun/app/server/config"
	"molrun/app/server/host"
	"molrun/app/server/snapshot"
	"molrun/blobs"
	"molrun/storage"
	"molrun/storage/kv"
)

// Options configures a check.
type Options struct {
	Deep   bool // read every file and compare it with its digest
	Repair bool // first repair derived data; the service must be stopped
}

// Report is the result of a check.
type Report struct {
	Jobs      int          `json:"jobs"`
	Uploads   int          `json:"uploads"`
	Keys      int          `json:"keys"`
	Files     int          `json:"files"` // number of files checked
	Bytes     int64        `json:"bytes"`
	Deep      bool         `json:"deep"`
	Count     int          `json:"problemCount"`
	Derivable int          `json:"derivable"` // number of problems that a repair fixes
	Problems  []kv.Problem `json:"problems"`  // the first problems, up to maxProblems
	Strays    []Stray      `json:"strays"`    // files that no record names
	Young     int          `json:"young"`     // number of recent strays; not listed, because a service might be about to record them
	Foreign   []Stray      `json:"foreign"`   // files that the service did not create
	SetAside  string       `json:"setAside,omitempty"`
	Repaired  int          `json:"repaired"` // number of repaired problems
}

// Stray is a file or directory that does not belong to any record of the service.
type Stray = blobs.Orphan

// Run checks a data directory.
func Run(ctx context.Context, config config.Config, o Options) (*Report, error) {
	before := 0
	if o.Repair {
		found, err := Run(ctx, config, Options{})
		if err != nil {
			return nil, err
		}
		before = found.Count
		database := filepath.Join(config.Data, host.Database)
		if _, err := storage.Repair(ctx, database, host.StorageOptions(config, zerolog.Nop())); err != nil {
			return nil, err
		}
	}
	report := &Report{Deep: o.Deep, Problems: []kv.Problem{}, Strays: []Stray{}, Foreign: []Stray{}}
	err := snapshot.WithSnapshot(ctx, config, func(ctx context.Context, s *snapshot.Snapshot) error {
		readable, err := report.checkRecords(ctx, s)
		if err != nil || !readable {
			return err
		}
		if err := report.checkFiles(ctx, s); err != nil {
			return err
		}
		return report.findStrays(s, o.Repair)
	})
	report.Repaired = max(0, before-report.Count)
	return report, err
}

// checkRecords checks the database and reports whether its records can be read.
func (r *Report) checkRecords(ctx context.Context, s *snapshot.Snapshot) (readable bool, err error) {
	found, err := s.Records.Check(ctx)
	if err != nil {
		return false, err
	}
	r.Jobs, r.Uploads, r.Keys = found.Jobs, found.Uploads, found.Keys
	r.Count, r.Derivable = found.Count, found.Derivable
	for _, p := range found.Problems {
		p.Text = withNames(s.Records, p.Text)
		r.Problems = append(r.Problems, p)
	}
	info, err := s.Records.Info()
	if err == nil && info.Lost != "" && !s.Live {
		r.problemf("%s", info.Lost)
	}
	return found.Readable, err
}

// checkFiles checks every file named by the records.
func (r *Report) checkFiles(ctx context.Context, s *snapshot.Snapshot) error {
	digests := digest.New()
	for file, err := range s.Inventory(ctx) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			r.problemf("%v", err)
			continue
		}
		from, info, err := s.Files.Open(file.Path)
		if err != nil {
			switch missing := errors.Is(err, os.ErrNotExist); {
			case !missing:
				r.problemf("%s can't be read: %v%s", file, err, remedy(file))
			case !file.Changing:
				r.problemf("%s is missing%s", file, remedy(file))
			}
			continue
		}
		r.Files++
		r.Bytes += info.Size()
		sum, size := file.SHA256, info.Size()
		if r.Deep {
			sum, size, err = digests.Stream(ctx, io.Discard, from)
		}
		if err = errors.Join(err, from.Close()); ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			r.problemf("%s can't be read: %v%s", file, err, remedy(file))
		} else if why := snapshot.Mismatch(file, sum, size); why != "" {
			r.problemf("%s %s%s", file, why, remedy(file))
		}
	}
	return nil
}

// strayAge is the minimum age of a file to count as a leftover while the service runs. A
// younger one might be about to be recorded.
const strayAge = 24 * time.Hour

// findStrays lists files that no record names and, in a repair, sets them aside.
func (r *Report) findStrays(s *snapshot.Snapshot, repair bool) error {
	strays, foreign, err := s.Strays()
	if err != nil {
		return err
	}
	unknown, err := s.Files.Unknown(ownNames)
	if err != nil {
		return err
	}
	r.Foreign = append(r.Foreign, append(unknown, foreign...)...)
	aside := filepath.Join("set-aside", s.Taken.UTC().Format(snapshot.NameLayout))
	for _, stray := range strays {
		if s.Live && s.Taken.Sub(stray.Changed) < strayAge {
			r.Young++
			continue
		}
		r.Strays = append(r.Strays, stray)
		if !repair {
			continue
		}
		if s.Live {
			return fault.Errorf(fault.Unavailable, "the service is running on this data directory; stop it first")
		}
		if err := s.Files.SetAside(stray.Path, filepath.ToSlash(aside)); err != nil {
			return err
		}
		r.SetAside = aside
	}
	return nil
}

// maxProblems limits the number of listed problems; all are counted.
const maxProblems = 1000

func (r *Report) problemf(format string, args ...any) {
	if r.Count++; len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, kv.Problem{Text: fmt.Sprintf(format, args...)})
	}
}
