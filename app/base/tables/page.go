package tables

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
)

const (
	sampled   = 200     // rows used to decide whether a column holds numbers
	maxKey    = 256     // bytes of text used to sort rows
	pageBytes = 4 << 20 // approximate size of the rows of a page
)

// Cell is a cell of a page: nil, a json.Number or a string.
type Cell = any

// Numeric reports which columns hold numbers, judging by the first rows. Numbers with
// leading zeros count as names.
func (t *Table) Numeric(ctx context.Context) ([]bool, error) {
	seen, text := make([]bool, len(t.Columns)), make([]bool, len(t.Columns))
	r := t.Rows(t.begin)
	for n := 0; n < sampled && r.Next(); n++ {
		for i, c := range r.cells[:min(len(r.cells), len(text))] {
			v, ok := Number(c)
			text[i] = text[i] || !ok || len(c) > 1 && c[0] == '0' && '0' <= c[1] && c[1] <= '9'
			seen[i] = seen[i] || ok && !math.IsNaN(v)
		}
	}
	for i := range seen {
		seen[i] = seen[i] && !text[i]
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	return seen, ctx.Err()
}

// Page is a range of rows of a table.
type Page struct {
	Rows [][]Cell // one cell per column
	Next *Mark    // start of the next page; nil on the last
}

// Mark is where a page starts: at a position, or after a row in a sorted table.
type Mark struct {
	Offset int64   `json:"o"`
	Row    int64   `json:"r"`
	Number float64 `json:"n,omitempty"`
	Text   string  `json:"t,omitempty"`
	Empty  bool    `json:"e,omitempty"` // the row has no value in the column
}

// Page returns up to limit rows in file order, starting at a mark; nil means the first
// row. It reads no other rows.
func (t *Table) Page(ctx context.Context, numeric []bool, from *Mark, limit int) (*Page, error) {
	at := t.begin
	if from != nil {
		if !t.isBegin(from.Offset) {
			return nil, errorf("has changed since the previous page; start again from the first page")
		}
		at = Position{Offset: from.Offset, Row: from.Row}
	}
	page := &Page{Rows: [][]Cell{}}
	r := t.Rows(at)
	size := 0
	for r.Next() {
		if len(page.Rows) == limit || size > pageBytes {
			page.Next = &Mark{Offset: r.at.Offset, Row: r.at.Row}
			break
		}
		page.Rows = append(page.Rows, t.cells(r.cells, numeric))
		size += len(r.raw)
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	return page, ctx.Err()
}

// isBegin reports whether a line starts at an offset.
func (t *Table) isBegin(offset int64) bool {
	if offset == t.begin.Offset {
		return true
	}
	var before [1]byte
	_, err := t.file.ReadAt(before[:], max(0, offset-1))
	return err == nil && before[0] == '\n' && offset < t.size
}

// cells copies one cell per column from a row.
func (t *Table) cells(row [][]byte, numeric []bool) []Cell {
	cells := make([]Cell, len(t.Columns))
	for i, c := range row[:min(len(row), len(cells))] {
		cells[i] = cellOf(c, numeric[i])
	}
	return cells
}

func cellOf(c []byte, numeric bool) Cell {
	text := strings.ToValidUTF8(string(c), "\uFFFD")
	if !numeric {
		if text == "" {
			return nil
		}
		return text
	}
	switch v, ok := Number(c); {
	case !ok:
		return text
	case math.IsNaN(v):
		return nil
	case json.Valid(c): // exactly as in the file
		return json.Number(text)
	default:
		b, _ := json.Marshal(v) // v is finite
		return json.Number(b)
	}
}

// Order is the sort order of a table.
type Order struct {
	Column     int
	Numeric    bool // by number; otherwise by the first 256 bytes of the text
	Descending bool
}

// Sorted returns up to limit rows in an order, starting after a mark; nil means the
// beginning. Rows without a value in the column come last, and equal rows are in file
// order. It reads the whole file but keeps no more than the page in memory.
func (t *Table) Sorted(ctx context.Context, numeric []bool, by Order, after *Mark, limit int) (*Page, error) {
	top := topMarks{by: by}
	r := t.Rows(t.begin)
	for r.Next() {
		if r.at.Row%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		mark := by.markOf(r)
		if after == nil || by.compare(after, &mark) < 0 {
			top.add(mark, limit+1)
		}
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	slices.SortFunc(top.marks, func(a, b Mark) int { return by.compare(&a, &b) })
	return t.rowsAt(top.marks, numeric, limit)
}

// rowsAt reads the rows at marks, which are up to one more than a page holds.
func (t *Table) rowsAt(marks []Mark, numeric []bool, limit int) (*Page, error) {
	page := &Page{Rows: [][]Cell{}}
	r := t.Rows(t.begin)
	size := 0
	for i, m := range marks {
		if i == limit || size > pageBytes {
			page.Next = &marks[i-1]
			break
		}
		r.seek(Position{Offset: m.Offset, Row: m.Row})
		if !r.Next() {
			break // the file has become shorter
		}
		page.Rows = append(page.Rows, t.cells(r.cells, numeric))
		size += len(r.raw)
	}
	return page, r.Err()
}

// markOf returns the mark of the current row.
func (by Order) markOf(r *Rows) Mark {
	m := Mark{Offset: r.at.Offset, Row: r.at.Row, Empty: true}
	if by.Column >= len(r.cells) {
		return m
	}
	c := r.cells[by.Column]
	if !by.Numeric {
		m.Empty = len(c) == 0
		m.Text = string(bytes.ToValidUTF8(c[:min(len(c), maxKey)], []byte("\uFFFD")))
		return m
	}
	if v, ok := Number(c); ok && !math.IsNaN(v) {
		m.Number, m.Empty = v, false
	}
	return m
}

func (by Order) compare(a, b *Mark) int {
	if a.Empty != b.Empty {
		if a.Empty {
			return 1
		}
		return -1
	}
	order := cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Text, b.Text))
	if by.Descending {
		order = -order
	}
	return cmp.Or(order, cmp.Compare(a.Row, b.Row))
}

// topMarks keeps the first marks in an order, as a heap with the last of them on top.
type topMarks struct {
	by    Order
	marks []Mark
}

func (f *topMarks) add(m Mark, most int) {
	if len(f.marks) < most {
		heap.Push(f, m)
		return
	}
	if f.by.compare(&m, &f.marks[0]) < 0 {
		f.marks[0] = m
		heap.Fix(f, 0)
	}
}

func (f *topMarks) Len() int           { return len(f.marks) }
func (f *topMarks) Less(i, j int) bool { return f.by.compare(&f.marks[i], &f.marks[j]) > 0 }
func (f *topMarks) Swap(i, j int)      { f.marks[i], f.marks[j] = f.marks[j], f.marks[i] }
func (f *topMarks) Push(m any)         { f.marks = append(f.marks, m.(Mark)) }
func (f *topMarks) Pop() any           { panic("marks are replaced, never removed") }
