package tables

import (
	"context"
	"math"
)

// maxHeld limits how many numbers of a series are kept in memory. For a longer series,
// the file is read three times.
const maxHeld = 4 << 20

// checkEvery is how many rows are read between two checks of the context.
const checkEvery = 4096

// Series holds columns of numbers, thinned for drawing.
type Series struct {
	Columns []string    // the first is the axis
	Rows    int64       // with a number in the first column, before thinning
	Values  [][]float64 // by column; NaN where the cell has no number
}

// Thin returns columns of numbers, the first of which is the axis, with at most points
// rows. points must be at least 3. It uses the largest-triangle-three-buckets algorithm
// (Steinarsson 2013): the rows are divided into buckets of equal length, and in each
// bucket it keeps the row that spans the largest triangles with the previously kept row
// and the average of the next bucket. The triangles of several columns are added, each
// relative to the range of its column. The first strict columns must hold numbers; other
// columns are omitted if they hold text.
func (t *Table) Thin(ctx context.Context, columns []int, strict, points int) (*Series, error) {
	s := &source{t: t, ctx: ctx, columns: columns, strict: strict}
	if err := s.measure(); err != nil {
		return nil, err
	}
	th := thinner{source: s, points: int64(points)}
	if err := th.thinRows(); err != nil {
		return nil, err
	}
	out := &Series{Rows: s.rows, Values: th.kept}
	for _, c := range s.columns {
		out.Columns = append(out.Columns, t.Columns[c])
	}
	return out, nil
}

// source provides the rows of a series repeatedly.
type source struct {
	t       *Table
	ctx     context.Context
	columns []int
	strict  int // columns that must hold numbers

	rows   int64
	low    []float64 // by column
	high   []float64
	held   [][]float64 // all rows in pieces, unless there are too many
	spills bool
}

// measure reads the file: it counts the rows, determines the range of each column and
// checks that the cells are numbers.
func (s *source) measure() error {
	n := len(s.columns)
	s.low, s.high = make([]float64, n), make([]float64, n)
	for i := range n {
		s.low[i], s.high[i] = math.Inf(1), math.Inf(-1)
	}
	wrong := make([]bool, n)
	err := s.readRows(wrong, func(row []float64) {
		s.rows++
		for i, v := range row {
			s.low[i], s.high[i] = min(s.low[i], or(v, s.low[i])), max(s.high[i], or(v, s.high[i]))
		}
		s.holdRow(row)
	})
	if err == nil {
		s.leaveOut(wrong)
	}
	return err
}

// pieceRows is how many rows are stored per piece, because a growing slice would be
// copied repeatedly.
const pieceRows = 8192

func (s *source) holdRow(row []float64) {
	if s.spills = s.spills || s.rows*int64(len(row)) > int64(s.t.held); s.spills {
		s.held = nil
		return
	}
	if (s.rows-1)%pieceRows == 0 {
		s.held = append(s.held, make([]float64, 0, pieceRows*len(row)))
	}
	last := &s.held[len(s.held)-1]
	*last = append(*last, row...)
}

func or(v, instead float64) float64 {
	if math.IsNaN(v) {
		return instead
	}
	return v
}

// readRows parses the rows that have a number in the axis column.
func (s *source) readRows(wrong []bool, visit func(row []float64)) error {
	r := s.t.rows(s.t.begin)
	row := make([]float64, len(s.columns))
	for n := 0; r.Next(); n++ {
		if n%checkEvery == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		for i, c := range s.columns {
			row[i] = math.NaN()
			if c >= len(r.cells) || wrong[i] {
				continue
			}
			v, ok := Number(r.cells[c])
			switch {
			case ok:
				row[i] = v
			case i >= s.strict:
				wrong[i] = true
			default:
				return s.t.noNumber(c, r)
			}
		}
		if !math.IsNaN(row[0]) {
			visit(row)
		}
	}
	return r.Err()
}

func (t *Table) noNumber(column int, r *Rows) error {
	text := r.cells[column]
	return errorf("has %.40q in line %d of the column %q, which is not a number", text, r.at.line, t.Columns[column])
}

// leaveOut removes columns that do not hold numbers.
func (s *source) leaveOut(wrong []bool) {
	n, kept := len(s.columns), 0
	for i := range s.columns {
		if !wrong[i] {
			s.columns[kept], s.low[kept], s.high[kept] = s.columns[i], s.low[i], s.high[i]
			kept++
		}
	}
	if kept == n {
		return
	}
	for i, piece := range s.held {
		to := 0
		for at, v := range piece {
			if !wrong[at%n] {
				piece[to] = v
				to++
			}
		}
		s.held[i] = piece[:to]
	}
	s.columns, s.low, s.high = s.columns[:kept], s.low[:kept], s.high[:kept]
}

// eachRow visits every row again.
func (s *source) eachRow(visit func(row []float64)) error {
	if s.spills {
		return s.readRows(make([]bool, len(s.columns)), visit)
	}
	n := len(s.columns)
	for _, piece := range s.held {
		for at := 0; at < len(piece); at += n {
			visit(piece[at : at+n])
		}
	}
	return s.ctx.Err()
}

// thinner chooses rows of a series.
type thinner struct {
	*source
	points int64
	kept   [][]float64 // by column

	sums   []float64 // by bucket and column; finally the averages
	counts []int32
}

func (t *thinner) thinRows() error {
	t.kept = make([][]float64, len(t.columns))
	for i := range t.kept {
		t.kept[i] = make([]float64, 0, min(t.rows, t.points))
	}
	if t.rows <= t.points {
		return t.eachRow(t.keepRow)
	}
	if err := t.average(); err != nil {
		return err
	}
	return t.choose()
}

func (t *thinner) keepRow(row []float64) {
	for i, v := range row {
		t.kept[i] = append(t.kept[i], v)
	}
}

// bucket returns the bucket of a row. The first and the last row have their own buckets.
func (t *thinner) bucket(row int64) int64 {
	switch {
	case row == 0:
		return 0
	case row >= t.rows-1:
		return t.points - 1
	}
	return 1 + (row-1)*(t.points-2)/(t.rows-2)
}

// average computes the average of every bucket and column, or NaN if there is none.
func (t *thinner) average() error {
	n := int64(len(t.columns))
	t.sums, t.counts = make([]float64, t.points*n), make([]int32, t.points*n)
	row := int64(0)
	err := t.eachRow(func(values []float64) {
		at := t.bucket(row) * n
		row++
		for i, v := range values {
			if !math.IsNaN(v) {
				t.sums[at+int64(i)] += v
				t.counts[at+int64(i)]++
			}
		}
	})
	for i, count := range t.counts {
		t.sums[i] /= float64(count)
	}
	return err
}

// choose keeps the row of each bucket that spans the largest triangles.
func (t *thinner) choose() error {
	n := int64(len(t.columns))
	best, last := make([]float64, n), make([]float64, n)
	for i := range last {
		last[i] = math.NaN()
	}
	bucket, row, largest := int64(0), int64(0), -1.0
	take := func() {
		t.keepRow(best)
		for i, v := range best {
			last[i] = or(v, last[i])
		}
		largest = -1
	}
	err := t.eachRow(func(values []float64) {
		if b := t.bucket(row); b != bucket {
			take()
			bucket = b
		}
		row++
		next := min(bucket+1, t.points-1) * n
		if area := t.area(last, values, t.sums[next:next+n]); area > largest {
			largest = area
			copy(best, values)
		}
	})
	if row > 0 {
		take()
	}
	return err
}

// area returns the sum of the triangles of all columns. A column without a number at one
// of the corners adds nothing.
func (t *thinner) area(a, b, c []float64) float64 {
	sum := 0.0
	for i := 1; i < len(b); i++ {
		twice := math.Abs((a[0]-c[0])*(b[i]-a[i]) - (a[0]-b[0])*(c[i]-a[i]))
		if width := t.high[i] - t.low[i]; width > 0 && !math.IsNaN(twice) {
			sum += twice / width
		}
	}
	return sum
}
