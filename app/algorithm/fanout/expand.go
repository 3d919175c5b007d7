package fanout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
)

// Limits on expansion.
const (
	MaxFileBytes = 32 << 20 // total size of the files of one request
	maxBytes     = 64 << 20 // total size of the settings of all jobs
)

// Files gives access to the caller's uploads and results. An error with code Invalid is
// reported to the caller.
type Files interface {
	// List returns the names of the uploads in a folder. The value is true if the upload
	// was ever completed.
	List(ctx context.Context, folder string) (completed map[string]bool, err error)
	// Read returns the content of a file. All files together are limited to MaxFileBytes.
	Read(ctx context.Context, ref string) ([]byte, error)
	// Reserve accounts for memory that the jobs will use. It fails if too much is in use.
	Reserve(bytes int64) error
}

// Rows holds the jobs that a request expands to.
type Rows struct {
	Settings []*strictjson.Value // nil for an invalid job
	Names    []string            // unique within the batch
	Sources  []string            // origin of each job, such as aspirin.sdf
	expansion
}

// entry is the contribution of one source to one job.
type entry struct {
	origin string   // for messages
	label  string   // used in the job's name; "" means its number
	name   string   // name of the job, if a table gives one
	line   int      // in the file; 0 if the entry is a whole file
	cells  []string // one per column; "" means no value
	faulty bool
}

// series is the contribution of one source to all jobs.
type series struct {
	Source
	columns []*algorithm.Parameter // nil for a column that is not a setting
	entries []entry
}

// expansion is a request being expanded.
type expansion struct {
	request   Request
	algorithm *algorithm.File
	files     Files
	most      int // maximum number of jobs
	all       []series
	faults    []fault.Field
	reported  map[string]bool // errors common to all jobs, which are reported once
}

// Expand creates the jobs of a batch; most limits their number. Paths of errors are
// relative to the body of the submission. Rows is nil if the jobs cannot be determined.
func Expand(ctx context.Context, r Request, batch string, a *algorithm.File, files Files, most int) (*Rows, []fault.Field, error) {
	e := expansion{request: r, algorithm: a, files: files, most: most, reported: map[string]bool{}}
	for _, source := range r.Sources {
		s, err := e.loadSource(ctx, source)
		if err != nil {
			return nil, nil, err
		}
		e.all = append(e.all, s)
	}
	if !e.checkCounts() {
		return nil, e.faults, nil
	}
	rows := &Rows{expansion: e}
	if err := rows.fillRows(); err != nil {
		return nil, nil, err
	}
	rows.nameRows(batch)
	return rows, rows.faults, nil
}

// loadSource reads one source.
func (e *expansion) loadSource(ctx context.Context, source Source) (s series, err error) {
	s = series{Source: source}
	if source.Kind == Folder {
		err = e.loadFolder(ctx, &s)
	} else if source.Text == nil {
		source.Text, err = e.files.Read(ctx, source.Ref)
	}
	var refused *fault.Error
	switch {
	case errors.As(err, &refused) && refused.Code == fault.Invalid:
		e.fault(s.at(), "file", refused.Message)
		return s, nil
	case err != nil:
		return s, err
	}
	if source.Setting != AllColumns {
		s.columns = []*algorithm.Parameter{e.parameter(s.at(), "", source.Setting)}
	}
	switch source.Kind {
	case FASTA:
		e.loadRecords(&s, source.Text)
		e.checkRecords(&s)
	case CSV, TSV:
		e.loadTable(&s, source.Text)
	}
	return s, nil
}

// loadFolder lists the files of a folder. It rejects an incomplete upload, which would
// otherwise be missing from the batch.
func (e *expansion) loadFolder(ctx context.Context, s *series) error {
	completed, err := e.files.List(ctx, s.Ref)
	if err != nil {
		return err
	}
	for _, name := range slices.SortedFunc(maps.Keys(completed), compareNatural) {
		if ok, _ := path.Match(s.Pattern, name); !ok { // the pattern was validated
			continue
		}
		if !completed[name] {
			return fault.Errorf(fault.Invalid, "the upload %s/%s is not complete; complete it or delete it", s.Ref, name)
		}
		s.entries = append(s.entries, entry{origin: name, label: e.stem(s.Setting, name), cells: []string{s.Ref + "/" + name}})
	}
	if len(s.entries) == 0 {
		return fault.Errorf(fault.Invalid, "you have no completed upload named %s/%s; GET /files?folder= lists the files of a folder", s.Ref, s.Pattern)
	}
	return nil
}

// stem returns a file name without its extension.
func (e *expansion) stem(setting, name string) string {
	extension := path.Ext(name)
	if p := e.algorithm.Parameters.Named(setting); p != nil && p.Accepts(name) {
		extension = name[len(name)-len(p.Extension(name)):]
	}
	return strings.TrimSuffix(name, extension)
}

// checkRecords checks that the setting of a FASTA source accepts sequences.
func (e *expansion) checkRecords(s *series) {
	if p := s.columns[0]; p != nil && len(p.File) > 0 {
		e.fault(s.at(), "value", fmt.Sprintf("%q is a file, but a record is not; use one file per job, such as folder:inputs/*%s", p.Name, p.File[0]))
		s.entries = nil
	}
}

// given counts how often a request provides a setting. A table with all columns counts as
// providing every setting.
func (r Request) given(name string) int {
	n := 0
	for _, s := range r.Sources {
		if s.Setting == name || s.Setting == AllColumns {
			n++
		}
	}
	if r.Settings != nil && r.Settings.Member(name) != nil {
		n++
	}
	return n
}

func (e *expansion) parameter(loc []any, prefix, name string) *algorithm.Parameter {
	p := e.algorithm.Parameters.Named(name)
	if p == nil {
		e.fault(loc, "unknown", prefix+e.algorithm.NoSetting(name))
	}
	return p
}

// checkCounts reports whether all sources have the same number of entries, and no more
// than the maximum.
func (e *expansion) checkCounts() bool {
	if slices.ContainsFunc(e.all, func(s series) bool { return len(s.entries) == 0 }) {
		for _, s := range e.all {
			if len(s.entries) == 0 && len(e.faults) == 0 {
				e.fault(s.at(), "value", "the table has no rows below the header")
			}
		}
		return false
	}
	fits, first := true, e.all[0]
	for _, s := range e.all {
		switch {
		case len(s.entries) > e.most:
			e.fault(s.at(), "value", fmt.Sprintf("this makes more than %d jobs, the maximum for a batch", e.most))
		case len(s.entries) != len(first.entries) && len(first.entries) <= e.most:
			e.fault(s.at(), "value", fmt.Sprintf("this has %s, but %q has %d: values are paired one to one, so both need the same number",
				unit.Count(len(s.entries), "row"), first.Setting, len(first.entries)))
		default:
			continue
		}
		fits = false
	}
	return fits
}
