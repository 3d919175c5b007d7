package fanout

import (
	"fmt"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
)

// memberBytes is about what a member takes of memory, apart from its text.
const memberBytes = 64

// fillRows makes the rows of sources that fit one another.
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
			r.fault([]any{Member}, "value", fmt.Sprintf("the settings of all rows take more than %d MiB; put what rows share into a file, or submit several batches", maxBytes>>20))
			return nil
		}
		if err := r.files.Reserve(int64(taken)); err != nil {
			return err
		}
		r.Settings[i] = v
	}
	return nil
}

// origin says what a row is made of.
func (r *Rows) origin(row int) string {
	parts := make([]string, len(r.all))
	for k, s := range r.all {
		parts[k] = s.entries[row].origin
	}
	return strings.Join(parts, ", ")
}

// row returns the settings of one row, nil if a source of it is faulty.
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

// PlaceFault puts a fault of a row's settings where the caller can fix it. It reports
// false if the same was reported for another row already.
func (r *Rows) PlaceFault(row int, f fault.Field) (fault.Field, bool) {
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
	if r.request.IsSent() {
		loc = []any{1} // a column that is missing in the first line
	}
	f.Loc = append(loc, f.Loc...)
	key := fmt.Sprint(f.Loc, f.Msg)
	first := !r.reported[key]
	r.reported[key] = true
	return f, first
}

// hasSetting reports whether a source gives a setting.
func (s *series) hasSetting(name string) bool {
	for _, p := range s.columns {
		if p != nil && p.Name == name {
			return true
		}
	}
	return false
}

// placeFault puts a fault of an entry: at its line and column, or at the setting with
// what the entry is.
func (s *series) placeFault(e entry, setting string, f fault.Field) fault.Field {
	if s.Kind == CSV || s.Kind == TSV {
		return s.within(e.line, setting, f)
	}
	f.Loc, f.Msg = s.at(), fmt.Sprintf("%s: %s", e.origin, f.Msg)
	return f
}

// within puts a fault at a line of a source and a column of it, if there are any.
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

// at returns where a source stands below the body; that of the body is the body.
func (s *Source) at() []any {
	if s.Text != nil {
		return []any{}
	}
	return []any{Member, "each", s.Setting}
}

// addFault records what is wrong in a source.
func (e *expansion) addFault(s *series, line int, column, msg string) {
	e.faults = append(e.faults, s.within(line, column, fault.Field{Msg: msg, Type: "value"}))
}

func (e *expansion) fault(loc []any, kind, msg string) {
	e.faults = append(e.faults, fault.Field{Loc: loc, Msg: msg, Type: kind})
}
