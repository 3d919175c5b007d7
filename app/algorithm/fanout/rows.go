package fanout

import (
	"fmt"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
)

// memberBytes is the approximate memory used by a member, apart from its text.
const memberBytes = 64

// fillRows builds the jobs from sources of equal length.
func (r *Rows) fillRows() error {
	n := len(r.all[0].entries)
	r.Settings, r.Sources = make([]*strictjson.Value, n), make([]string, n)
	size := 0
	for i := range n {
		r.Sources[i] = r.origin(i)
		v := r.row(i)
		if v == nil {
			continue
		}
		taken := len(v.Raw) + memberBytes*len(v.Members)
		if size += taken; size > maxBytes {
			r.fault([]any{Member}, "value", fmt.Sprintf("the settings of all jobs exceed %d MiB; put shared values into a file, or submit several batches", maxBytes>>20))
			return nil
		}
		if err := r.files.Reserve(int64(taken)); err != nil {
			return err
		}
		r.Settings[i] = v
	}
	return nil
}

// origin describes the source entries of a job.
func (r *Rows) origin(row int) string {
	parts := make([]string, len(r.all))
	for k, s := range r.all {
		parts[k] = s.entries[row].origin
	}
	return strings.Join(parts, ", ")
}

// row returns the settings of one job, or nil if one of its source entries is invalid.
func (r *Rows) row(i int) *strictjson.Value {
	v := &strictjson.Value{Kind: strictjson.Object, Raw: []byte{'{'}}
	add := func(name string, value *strictjson.Value) {
		if len(v.Members) > 0 {
			v.Raw = append(v.Raw, ',')
		}
		v.Members = append(v.Members, strictjson.Member{Name: name, Value: value})
		v.Raw = append(append(strictjson.AppendQuoted(v.Raw, name), ':'), value.Raw...)
	}
	if given := r.request.Settings; given != nil {
		for _, m := range given.Members {
			add(m.Name, m.Value)
		}
	}
	for _, s := range r.all {
		one := s.entries[i]
		if one.faulty {
			return nil
		}
		for k, p := range s.columns {
			if p != nil && one.cells[k] != "" {
				add(p.Name, s.value(p, one.cells[k]))
			}
		}
	}
	v.Raw = append(v.Raw, '}')
	return v
}

func (s *series) value(p *algorithm.Parameter, text string) *strictjson.Value {
	if s.Kind == FASTA {
		return p.FromSequence(text)
	}
	return p.FromText(text)
}

// LocateFault moves an error in a job's settings to where the caller can fix it. It
// returns false if the same error was already reported for another job.
func (r *Rows) LocateFault(row int, f fault.Field) (fault.Field, bool) {
	name := ""
	if len(f.Loc) > 0 {
		name, _ = f.Loc[0].(string)
	}
	for k := range r.all {
		if s := &r.all[k]; s.hasSetting(name) {
			return s.placeFault(s.entries[row], name, f), true
		}
	}
	if name == "" {
		s := &r.all[0]
		return s.placeFault(s.entries[row], "", f), true
	}
	loc := []any{Member, "settings"}
	if r.request.IsBody() {
		loc = []any{1} // the column is missing from the header
	}
	f.Loc = append(loc, f.Loc...)
	key := fmt.Sprint(f.Loc, f.Msg)
	first := !r.reported[key]
	r.reported[key] = true
	return f, first
}

// hasSetting reports whether the source provides a setting.
func (s *series) hasSetting(name string) bool {
	for _, p := range s.columns {
		if p != nil && p.Name == name {
			return true
		}
	}
	return false
}

// placeFault moves an error to the line and column of a table entry. For other sources,
// it moves the error to the setting and adds the entry's origin to the message.
func (s *series) placeFault(e entry, setting string, f fault.Field) fault.Field {
	if s.Kind == CSV || s.Kind == TSV {
		return s.within(e.line, setting, f)
	}
	f.Loc, f.Msg = s.at(), fmt.Sprintf("%s: %s", e.origin, f.Msg)
	return f
}

// within moves an error to a line and column of the source, if given.
func (s *Source) within(line int, column string, f fault.Field) fault.Field {
	f.Loc = s.at()
	switch {
	case column != "":
		f.Loc = append(f.Loc, line, column)
		f.Msg = fmt.Sprintf("line %d, column %q: %s", line, column, f.Msg)
	case line > 0:
		f.Loc = append(f.Loc, line)
		f.Msg = fmt.Sprintf("line %d: %s", line, f.Msg)
	}
	return f
}

// at returns the path of the source relative to the body, which is empty if the source is
// the body.
func (s *Source) at() []any {
	if s.Text != nil {
		return []any{}
	}
	return []any{Member, "each", s.Setting}
}

// addFault records an error in a source.
func (e *expansion) addFault(s *series, line int, column, msg string) {
	e.faults = append(e.faults, s.within(line, column, fault.Field{Msg: msg, Type: "value"}))
}

func (e *expansion) fault(loc []any, kind, msg string) {
	e.faults = append(e.faults, fault.Field{Loc: loc, Msg: msg, Type: kind})
}
