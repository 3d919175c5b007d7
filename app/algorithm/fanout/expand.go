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

// Limits of what is expanded.
const (
	MaxFileBytes = 32 << 20 // of the files of one request
	maxBytes     = 64 << 20 // of the settings of all rows
)

// Files gives the uploads and results of the caller. An error that is Invalid says
// to the caller what is wrong.
type Files interface {
	// List returns the names of the uploads in a folder, and of each whether it was ever
	// completed.
	List(ctx context.Context, folder string) (completed map[string]bool, err error)
	// Read returns the bytes of a file. All files together have at most MaxFileBytes.
	Read(ctx context.Context, ref string) ([]byte, error)
	// Reserve counts bytes that the rows take. It fails if too many are in use.
	Reserve(bytes int64) error
}

// Rows are what a request was expanded to.
type Rows struct {
	Settings []*strictjson.Value // nil where a row is faulty
	Names    []string            // unique within the batch
	Sources  []string            // what each row was made of, such as aspirin.sdf
	expansion
}

// entry is what one source gives one row.
type entry struct {
	origin string   // to show
	label  string   // to name the row by; "": its number
	name   string   // of the row, as a table gives it
	line   int      // in the file; 0: it is a file of its own
	cells  []string // one for each column; "" is no value
	faulty bool
}

// series is what one source gives all rows.
type series struct {
	Source
	columns []*algorithm.Parameter // nil where a column is no setting
	entries []entry
}

// expansion is a request while it is expanded.
type expansion struct {
	request   Request
	algorithm *algorithm.File
	files     Files
	most      int // rows
	all       []series
	faults    []fault.Field
	reported  map[string]bool // faults that all rows have
}

// Expand makes the rows of a batch, at most as many as most. The faults begin below
// the body of the submission; there are no rows if they can't be determined.
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

// loadFolder lists the files of a folder. One that is not completed would be missing
// among the rows, so it is refused.
func (e *expansion) loadFolder(ctx context.Context, s *series) error {
	completed, err := e.files.List(ctx, s.Ref)
	if err != nil {
		return err
	}
	for _, name := range slices.SortedFunc(maps.Keys(completed), compareNatural) {
		if ok, _ := path.Match(s.Pattern, name); !ok { // the pattern is valid
			continue
		}
		if !completed[name] {
			return fault.Errorf(fault.Invalid, "the upload %s/%s is not complete; complete it or delete it", s.Ref, name)
		}
		s.entries = append(s.entries, entry{origin: name, label: e.stem(s.Setting, name), cells: []string{s.Ref + "/" + name}})
	}
	if len(s.entries) == 0 {
		return fault.Errorf(fault.Invalid, "no completed upload of yours is named %s/%s; GET /files?folder= lists what a folder has", s.Ref, s.Pattern)
	}
	return nil
}

// stem returns the name of a file without its extension.
func (e *expansion) stem(setting, name string) string {
	extension := path.Ext(name)
	if p := e.algorithm.Parameters.Named(setting); p != nil && p.Accepts(name) {
		extension = name[len(name)-len(p.Extension(name)):]
	}
	return strings.TrimSuffix(name, extension)
}

// checkRecords checks that the setting of a FASTA source takes sequences.
func (e *expansion) checkRecords(s *series) {
	if p := s.columns[0]; p != nil && len(p.File) > 0 {
		e.fault(s.at(), "value", fmt.Sprintf("%q is a file, and a record is none; give one file each, such as folder:inputs/*%s", p.Name, p.File[0]))
		s.entries = nil
	}
}

// given counts how often a request gives a setting; a table with all columns counts.
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

// checkCounts reports whether the sources give the same number of rows, and no more than
// there may be.
func (e *expansion) checkCounts() bool {
	if slices.ContainsFunc(e.all, func(s series) bool { return len(s.entries) == 0 }) {
		for _, s := range e.all {
			if len(s.entries) == 0 && len(e.faults) == 0 {
				e.fault(s.at(), "value", "there is no row below the first line")
			}
		}
		return false
	}
	fits, first := true, e.all[0]
	for _, s := range e.all {
		switch {
		case len(s.entries) > e.most:
			e.fault(s.at(), "value", fmt.Sprintf("a batch has at most %d rows, and this gives more", e.most))
		case len(s.entries) != len(first.entries) && len(first.entries) <= e.most:
			e.fault(s.at(), "value", fmt.Sprintf("this gives %s and %q gives %d: a row takes the next of each, so give as many of each",
				unit.Count(len(s.entries), "row"), first.Setting, len(first.entries)))
		default:
			continue
		}
		fits = false
	}
	return fits
}
