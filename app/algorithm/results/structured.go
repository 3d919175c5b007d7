package results

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/base/tables"
)

// columnOf is a statistic over the rows of a table.
type columnOf struct {
	path   string
	column string // "" only for counting rows
	take   string
	where  map[string]string // required text of cells, by column
}

func (s columnOf) file() string { return s.path }

func (s columnOf) find(in *reading, file string) (*strictjson.Value, error) {
	f, err := openFile(in.out, file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read-only
	info, err := f.Stat()
	at, ok := f.(io.ReaderAt)
	if err == nil && !ok {
		err = errors.New("it does not support random access")
	}
	if err != nil {
		return nil, err
	}
	t, err := tables.Open(at, info.Size(), file, true)
	if err != nil {
		return nil, fmt.Errorf("%s %w", file, err)
	}
	return s.of(t, file)
}

func (s columnOf) of(t *tables.Table, file string) (*strictjson.Value, error) {
	column, found := s.index(t, s.column)
	want := map[int]string{}
	for name, text := range s.where {
		i, ok := s.index(t, name)
		if !ok && len(t.Columns) > 0 {
			return nil, fmt.Errorf("%s has no column %q; it has %s", file, name, strings.Join(t.Columns, ", "))
		}
		want[i] = text
	}
	switch {
	case len(t.Columns) == 0 && s.take == "count":
		return number(0), nil // a table without rows
	case !found && s.column != "":
		return nil, fmt.Errorf("%s has no column %q; it has %s", file, s.column, strings.Join(t.Columns, ", "))
	}
	return s.walk(t.Rows(t.Begin()), column, want)
}

func (s columnOf) index(t *tables.Table, name string) (int, bool) {
	i := slices.Index(t.Columns, name)
	return i, i >= 0
}

// walk computes the statistic of the matching rows.
func (s columnOf) walk(rows *tables.Rows, column int, want map[int]string) (*strictjson.Value, error) {
	sum, text := statistic{take: s.take}, []byte(nil)
	for rows.Next() {
		cells := rows.Cells()
		if !hasCells(cells, want) {
			continue
		}
		v := 1.0
		if column >= 0 {
			if column >= len(cells) {
				continue
			}
			var isNumber bool
			if v, isNumber = tables.Number(cells[column]); !isNumber && (s.take == "last" || s.take == "first" && text == nil && sum.n == 0) {
				text = slices.Clone(cells[column])
			}
			if !isNumber || math.IsNaN(v) {
				continue
			}
		}
		sum.add(v)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if text != nil && sum.n == 0 {
		return figure(text), nil
	}
	return sum.value()
}

func hasCells(cells [][]byte, want map[int]string) bool {
	for i, text := range want {
		if i >= len(cells) || string(cells[i]) != text {
			return false
		}
	}
	return true
}

// memberOf is a value in a JSON file, or a statistic of a list in it.
type memberOf struct {
	path string
	at   []string // path of names and indexes
	take string   // "" means the value itself
}

func (s memberOf) file() string { return s.path }

// maxJSON limits the size of a JSON file with a metric. Matrices of predicted errors take
// some MB.
const maxJSON = 64 << 20

func (s memberOf) find(in *reading, file string) (*strictjson.Value, error) {
	info, err := fs.Stat(in.out, file)
	switch {
	case err != nil:
		return nil, err
	case info.Size() > maxJSON:
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", file, info.Size(), maxJSON)
	}
	text, err := readTail(in.out, file, maxJSON)
	if err != nil {
		return nil, err
	}
	v, err := strictjson.Parse(text)
	if invalid, ok := errors.AsType[*fault.Error](err); ok {
		return nil, fmt.Errorf("%s is not valid JSON: %s", file, invalid.Message)
	}
	if err != nil {
		return nil, err
	}
	for i, name := range s.at {
		if v = child(v, name); v == nil {
			return nil, fmt.Errorf("%s has no %s", file, "/"+strings.Join(s.at[:i+1], "/"))
		}
	}
	return s.figure(v, file)
}

func (s memberOf) figure(v *strictjson.Value, file string) (*strictjson.Value, error) {
	if s.take == "count" && v.Kind == strictjson.Array {
		return number(float64(len(v.Items))), nil
	}
	if s.take != "" {
		sum := statistic{take: s.take}
		addNumbers(&sum, v)
		return sum.value()
	}
	if v.Kind == strictjson.Array || v.Kind == strictjson.Object || v.Kind == strictjson.Null {
		return nil, fmt.Errorf("%s has no single value there; use take to reduce a list", file)
	}
	return v, nil
}

func child(v *strictjson.Value, name string) *strictjson.Value {
	if v.Kind != strictjson.Array {
		return v.Member(name)
	}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v.Items) {
		return v.Items[i]
	}
	return nil
}

// addNumbers adds the numbers of a list, including nested lists.
func addNumbers(sum *statistic, v *strictjson.Value) {
	for _, item := range v.Items {
		addNumbers(sum, item)
	}
	if f, err := strconv.ParseFloat(v.Text, 64); v.Kind == strictjson.Number && err == nil {
		sum.add(f)
	}
}

// bFactorOf is a statistic of the B factors of a PDB file, where predicted structures
// store their confidence. It uses the CA atoms, one for each protein residue, or all
// atoms if there are none. It reads only the first of several models.
type bFactorOf struct {
	path, take string
	plddt      *PLDDT // nil if no view declares the B factors as pLDDT
}

func (s bFactorOf) file() string { return s.path }

func (s bFactorOf) find(in *reading, file string) (*strictjson.Value, error) {
	f, err := openFile(in.out, file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read-only
	backbone, all := statistic{take: s.take}, statistic{take: s.take}
	lines := bufio.NewScanner(f)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "ENDMDL") {
		line := lines.Text()
		if len(line) < 66 || !strings.HasPrefix(line, "ATOM  ") && !strings.HasPrefix(line, "HETATM") {
			continue
		}
		b, err := strconv.ParseFloat(strings.TrimSpace(line[60:66]), 64)
		if err != nil || math.IsNaN(b) || math.IsInf(b, 0) {
			return nil, fmt.Errorf("%s has an atom without a B factor in columns 61 to 66", file)
		}
		all.add(b)
		if line[12:16] == " CA " && line[:6] == "ATOM  " {
			backbone.add(b)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	factor := s.plddt.percent(all.most)
	if backbone.n > 0 {
		return backbone.times(factor).value()
	}
	return all.times(factor).value()
}
