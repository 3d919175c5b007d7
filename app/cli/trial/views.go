package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"molrun/app/base/structure"
	"molrun/app/client"
)

// View is one of the views of a result.
type View struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Files  int    `json:"files"`
	Opened int    `json:"opened"` // files with something to show
}

// maxOpened is the maximum number of files read for one view.
const maxOpened = 20

// maxRead is the maximum number of bytes read from a file.
const maxRead = 8 << 20

// errNoRows reports that a table has only a heading, as after a search without hits.
var errNoRows = errors.New("it has no rows")

// checkViews opens every file of every view.
func (t *Tester) checkViews(ctx context.Context, job *client.Job, o *Outcome) {
	views, err := t.API.Views(ctx, job.Name)
	if err != nil {
		o.failf("list the views: %s", sentence(err))
		return
	}
	for _, v := range views {
		seen := View{Name: v.Name, Kind: v.Kind, Files: len(v.Files)}
		for _, f := range v.Files[:min(len(v.Files), maxOpened)] {
			switch err := t.openView(ctx, job.Name, v, f); {
			case err == nil:
				seen.Opened++
			case !errors.Is(err, errNoRows):
				o.failf("the view %s can't show %s: %s", v.Name, f.Path, sentence(err))
			}
		}
		o.Views = append(o.Views, seen)
	}
}

// openView reads a file of a view and checks that it has something to show.
func (t *Tester) openView(ctx context.Context, job string, v client.View, f client.ViewFile) error {
	text, err := t.readBeginning(ctx, job, f.Path)
	if err != nil {
		return err
	}
	switch v.Kind {
	case "structure":
		if n, known := countAtoms(f.Path, text); known && n == 0 {
			return fmt.Errorf("it has no atoms")
		}
	case "trajectory":
		return t.openTopology(ctx, job, f)
	case "series":
		return t.openSeries(ctx, job, v.Name, f.Path)
	case "table":
		rows, err := t.API.Table(ctx, job, v.Name, f.Path)
		if err == nil && len(rows.Rows) == 0 {
			err = errNoRows
		}
		return err
	}
	return nil
}

// readBeginning returns the beginning of a file. An empty file is an error.
func (t *Tester) readBeginning(ctx context.Context, job, file string) ([]byte, error) {
	text, err := t.API.ReadFile(ctx, job, file, maxRead)
	if err == nil && len(text) == 0 {
		err = fmt.Errorf("it is empty")
	}
	return text, err
}

func (t *Tester) openTopology(ctx context.Context, job string, f client.ViewFile) error {
	if f.Topology == "" {
		return fmt.Errorf("its topology file is missing")
	}
	text, err := t.readBeginning(ctx, job, f.Topology)
	if err != nil {
		return fmt.Errorf("its topology %s: %s", f.Topology, sentence(err))
	}
	if n, known := countAtoms(f.Topology, text); known && n == 0 {
		return fmt.Errorf("its topology %s has no atoms", f.Topology)
	}
	return nil
}

func (t *Tester) openSeries(ctx context.Context, job, view, file string) error {
	s, err := t.API.Series(ctx, job, view, file)
	switch {
	case err != nil:
		return err
	case s.Rows == 0 || len(s.Columns) < 2:
		return fmt.Errorf("it has %d columns of numbers and %d rows", len(s.Columns), s.Rows)
	}
	for i, column := range s.Values {
		if !hasNumber(column) {
			return fmt.Errorf("its column %s has no numbers", s.Columns[i].Name)
		}
	}
	return nil
}

func hasNumber(column []*float64) bool {
	for _, v := range column {
		if v != nil {
			return true
		}
	}
	return false
}

// countAtoms counts the atoms in the beginning of a structure file. known is false if the
// format is not supported.
func countAtoms(file string, text []byte) (n int, known bool) {
	lines := strings.Split(string(text), "\n")
	switch strings.ToLower(path.Ext(file)) {
	case ".cif", ".mmcif":
		m, _ := structure.Read(bytes.NewReader(text)) // the last line may be cut off
		return m.Atoms, true
	case ".pdb", ".ent", ".pdbqt", ".pqr":
		for _, line := range lines {
			if strings.HasPrefix(line, "ATOM") || strings.HasPrefix(line, "HETATM") {
				n++
			}
		}
		return n, true
	case ".xyz":
		return counted(lines, 0, 20), true
	case ".gro":
		return counted(lines, 1, 20), true
	case ".sdf", ".mol":
		return counted(lines, 3, 3), strings.Contains(lines[min(3, len(lines)-1)], "V2000")
	}
	return 0, false
}

// counted parses the number in the first width columns of a line.
func counted(lines []string, line, width int) int {
	if line >= len(lines) {
		return 0
	}
	text := lines[line]
	n, err := strconv.Atoi(strings.TrimSpace(text[:min(width, len(text))]))
	if err != nil {
		return 0
	}
	return n
}
