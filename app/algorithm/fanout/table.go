package fanout

import (
	"fmt"
	"slices"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/base/tables"
)

// nameColumn is the column that contains the job names.
const nameColumn = "jobName"

// loadTable reads the columns of a table: all of them, or the one for its setting.
func (e *expansion) loadTable(s *series, text []byte) {
	t := tables.ReadSheet(text, s.Kind == TSV, e.most)
	for _, w := range t.Wrong {
		e.addFault(s, w.Line, "", w.Msg)
	}
	for _, row := range t.Rows {
		s.entries = append(s.entries, entry{origin: fmt.Sprintf("line %d", row.Line), line: row.Line, cells: row.Cells, faulty: row.Cells == nil})
	}
	if s.Setting == AllColumns {
		e.takeColumns(s, t.Columns)
	} else {
		e.takeColumn(s, t.Columns)
	}
	e.readNumbers(s, t.Local)
}

func (e *expansion) takeColumns(s *series, columns []string) {
	for _, name := range columns {
		s.columns = append(s.columns, e.column(s, name))
	}
	i := slices.Index(columns, nameColumn)
	for k := range s.entries {
		if one := &s.entries[k]; i >= 0 && !one.faulty {
			one.name = one.cells[i]
		}
	}
}

func (e *expansion) takeColumn(s *series, columns []string) {
	at := slices.Index(columns, s.Setting)
	if at < 0 {
		if columns != nil {
			e.fault(s.at(), "value", fmt.Sprintf("the table has no column %q; it has %s", s.Setting, strings.Join(columns, ", ")))
		}
		s.entries = nil
	}
	for k := range s.entries {
		if one := &s.entries[k]; !one.faulty {
			one.cells = one.cells[at : at+1]
		}
	}
}

// column returns the parameter that a table column provides, or nil if there is none.
func (e *expansion) column(s *series, name string) *algorithm.Parameter {
	at := append(s.at(), 1, name) // line 1 is the header
	switch {
	case name == "" || name == nameColumn: // "" is already reported
		return nil
	case e.request.given(name) > 1:
		e.fault(at, "value", fmt.Sprintf("the setting of column %q is also given outside the table: remove one of the two", name))
		return nil
	}
	return e.parameter(at, fmt.Sprintf("column %q: ", name), name)
}
