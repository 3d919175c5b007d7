package tables

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"molrun/app/test/must"
)

func open(t testing.TB, name, text string, complete bool) *Table {
	t.Helper()
	table, err := Open(strings.NewReader(text), int64(len(text)), name, complete)
	must.OK(t, err)
	return table
}

// all returns the cells of all rows.
func all(t testing.TB, table *Table) (rows [][]string) {
	t.Helper()
	r := table.Rows(table.Begin())
	for r.Next() {
		rows = append(rows, texts(r.Cells()))
	}
	must.OK(t, r.Err())
	return rows
}

func TestColumnsAndRows(t *testing.T) {
	tests := []struct {
		name, file, text string
		columns          []string
		rows             [][]string
	}{
		{"csv", "a.csv", "x,y\n1,2\n", []string{"x", "y"}, [][]string{{"1", "2"}}},
		{"windows", "a.csv", "\uFEFFx,y\r\n1,2\r\n", []string{"x", "y"}, [][]string{{"1", "2"}}},
		{"no header", "a.csv", "1,2\n3,4\n", []string{"1", "2"}, [][]string{{"1", "2"}, {"3", "4"}}},
		{"semicolons", "a.csv", "x;y, z\n1;2\n", []string{"x", "y, z"}, [][]string{{"1", "2"}}},
		{"tabs", "a.tsv", "x\ty z\n\t\"a\nb\"\n", []string{"x", "y z"}, [][]string{{"", "a\nb"}}},
		{"tabs in a text", "a.txt", "x\ty\n1\t2\n", []string{"x", "y"}, [][]string{{"1", "2"}}},
		{"commas in a text", "a.dat", "x, y\n1, 2\n", []string{"x", "y"}, [][]string{{"1", "2"}}},
		{"blanks", "a.dat", "  time   rg \n  0.0   1.5\n 1.0\t2.5 \n", []string{"time", "rg"}, [][]string{{"0.0", "1.5"}, {"1.0", "2.5"}}},
		{"description at the end", "a.txt", "id score description\na 1 what, it is\n", []string{"id", "score", "description"}, [][]string{{"a", "1", "what, it is"}}},
		{"comments", "a.csv", "# made by\n\n#by hand\n#x,y\n1,2\n# end\n3,4\n", []string{"x", "y"}, [][]string{{"1", "2"}, {"3", "4"}}},
		{"comment of another width", "a.dat", "# time of\n1 2 3\n", []string{"1", "2", "3"}, [][]string{{"1", "2", "3"}}},
		{"xvg", "a.xvg", "# gmx\n@ title \"Gyration\"\n@    xaxis  label \"Time (ps)\"\n@TYPE xy\n@ s0 legend \"Rg\"\n 0 1.5\n&\n 1 1.6\n", []string{"Time (ps)", "Rg"}, [][]string{{"0", "1.5"}, {"1", "1.6"}}},
		{"quoted", "a.csv", "name,\"a \"\"b\"\", c\"\n\"x, y\" ,\"1\"\n \"two\nlines\",2\nhalf\"way,3\n", []string{"name", `a "b", c`}, [][]string{{"x, y", "1"}, {"two\nlines", "2"}, {`half"way`, "3"}}},
		{"names that are there twice", "a.csv", "x,,x\n1,2,3\n", []string{"x", "2", "x (2)"}, [][]string{{"1", "2", "3"}}},
		{"names of columns with a hole", "a.csv", "x,y\n1,nan\n,2\n1,2,3\n1\n", []string{"x", "y"}, [][]string{{"1", "nan"}, {"", "2"}, {"1", "2", "3"}, {"1"}}},
		{"texts without numbers", "a.csv", "a,b\nc,d\n", []string{"a", "b"}, [][]string{{"c", "d"}}},
		{"hits without header", "a.tsv", "q\tt\t0.9\nq\tu\t0.8\n", []string{"1", "2", "3"}, [][]string{{"q", "t", "0.9"}, {"q", "u", "0.8"}}},
		{"one column", "a.csv", "x\n1\n2\n", []string{"x"}, [][]string{{"1"}, {"2"}}},
		{"header alone", "a.csv", "x,y\n", []string{"x", "y"}, nil},
		{"nothing", "a.csv", "", nil, nil},
		{"comments alone", "a.csv", "# a\n", nil, nil},
	}
	for _, tt := range tests {
		table := open(t, tt.file, tt.text, true)
		must.Equal(t, tt.name+": columns", table.Columns, tt.columns)
		must.Equal(t, tt.name+": rows", all(t, table), tt.rows)
	}
}

func TestLastLineThatIsBeingWrittenIsLeftOut(t *testing.T) {
	for text, want := range map[string]int{"x,y\n1,2\n3,4": 1, "x,y\n1,2\n3,4\n": 2, "x,y\n1,2\n\"a\nb": 1, "x,y": 0} {
		must.Equal(t, fmt.Sprintf("%q", text), len(all(t, open(t, "a.csv", text, false))), want)
	}
	must.Equal(t, "rows of a complete file", len(all(t, open(t, "a.csv", "x,y\n1,2\n3,4", true))), 2)
}

func TestNumbers(t *testing.T) {
	nan := math.NaN()
	for text, want := range map[string]float64{
		"1": 1, "-1.5e-3": -1.5e-3, ".5": .5, "1.": 1, "+2": 2, "1.0D+02": 100, "1d2": 100, "": nan, "NaN": nan, "nan": nan, "NA": nan,
		"n/a": nan, "-": nan, "inf": nan, "-Infinity": nan, "1e999": nan, "null": nan,
	} {
		got, ok := Number([]byte(text))
		if !ok || got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%q is %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"a", "0x10", "1_000", "1,5", "1 2", "dd", "d1", "12:30", "0x1p-2"} {
		if v, ok := Number([]byte(text)); ok {
			t.Errorf("%q is parsed as %v", text, v)
		}
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	long := strings.Repeat("a", maxRecord)
	for want, text := range map[string]string{
		"has a row of more than 1048576 bytes at line 3": "x,y\n1,2\n" + long + ",1\n",
		"has a row of more than 1048576 bytes at line 2": "x,y\n\"" + strings.Repeat("a\n", maxRecord/2) + "\n",
		"has 1001 columns; at most 1000 are supported":   strings.Repeat("1,", 1000) + "1\n",
		`has "b" in line 4 of the column "y"`:            "x,y\n1,2\n# comment\n3,b\n",
		`has "c" in line 2 of the column "x"`:            "x,y\nc,2\n",
	} {
		table, err := Open(strings.NewReader(text), int64(len(text)), "a.csv", true)
		if err == nil {
			_, err = table.Thin(t.Context(), []int{0, 1}, 2, 10)
		}
		var bad Error
		if !errors.As(err, &bad) || !strings.HasPrefix(string(bad), want) {
			t.Errorf("%.100q, want %q", err, want)
		}
	}
}

// wave is a series with a peak, a gap and a column that holds no numbers.
func wave(rows int) string {
	var b strings.Builder
	b.WriteString("time,rg,name,other\n")
	for i := range rows {
		rg := strconv.FormatFloat(math.Sin(float64(i)/50), 'g', 6, 64)
		switch {
		case i == rows/3:
			rg = "40"
		case i%97 == 0:
			rg = ""
		}
		fmt.Fprintf(&b, "%d,%s,n%d,%d\n", i, rg, i, i%7)
	}
	return b.String()
}

func TestSeriesAreThinned(t *testing.T) {
	const rows = 10_000
	table := open(t, "a.csv", wave(rows), true)
	for _, points := range []int{3, 4, 100, 2000} {
		held, err := table.Thin(t.Context(), []int{0, 1}, 2, points)
		must.OK(t, err)
		table.held = 100
		spilled, err := table.Thin(t.Context(), []int{0, 1}, 2, points)
		table.held = maxHeld
		must.OK(t, err)
		if diff := gocmp.Diff(held, spilled, equalNaN); diff != "" {
			t.Errorf("%d points: in memory and from the file differ\n%s", points, diff)
		}
		x := held.Values[0]
		if held.Rows != rows || len(x) != points || !slices.IsSorted(x) || x[0] != 0 || x[points-1] != rows-1 {
			t.Errorf("%d points: %d of %d rows, from %v to %v", points, len(x), held.Rows, x[0], x[len(x)-1])
		}
		if points > 4 && !slices.Contains(held.Values[1], 40) {
			t.Errorf("%d points: the peak is lost", points)
		}
	}
}

var equalNaN = gocmp.Comparer(func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) })

// TestPointsOfTheLargestTrianglesAreKept compares with results of the published algorithm
// (LTTB) for these series.
func TestPointsOfTheLargestTrianglesAreKept(t *testing.T) {
	for _, tt := range []struct {
		text string
		want [][]float64 // 3 points, 4, and so on
	}{
		{"x,y\n0,0\n1,5\n2,1\n3,\n4,-9\n5,2\n6,3\n7,8\n9,0\n12,1\n13,-4\n14,4\n", [][]float64{{0, 4, 14}, {0, 4, 7, 14}, {0, 4, 7, 13, 14}, {0, 1, 4, 7, 13, 14}}},
		{"x,y\n0,\n1,2\n2,3\n3,1\n4,\n5,\n6,7\n7,7\n8,-1\n9,1\n", [][]float64{{0, 1, 9}, {0, 1, 7, 9}, {0, 1, 6, 8, 9}, {0, 1, 3, 6, 8, 9}}},
		{"x,y\n-4,1\n-3,1\n-1,4\n2,4\n2,-2\n3,0\n7,0.5\n8,0\n", [][]float64{{-4, 2, 8}, {-4, 2, 2, 8}, {-4, -1, 2, 3, 8}, {-4, -1, 2, 2, 7, 8}}},
	} {
		for i, want := range tt.want {
			s, err := open(t, "a.csv", tt.text, true).Thin(t.Context(), []int{0, 1}, 2, 3+i)
			must.OK(t, err)
			must.Equal(t, fmt.Sprintf("%d points of %q", 3+i, tt.text), s.Values[0], want)
		}
	}
}

func TestAConstantColumnHidesNoPeak(t *testing.T) {
	var b strings.Builder
	b.WriteString("step,temperature,rg\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "%d,300,%d\n", i, i/555-i/556)
	}
	s, err := open(t, "a.csv", b.String(), true).Thin(t.Context(), []int{0, 1, 2}, 3, 10)
	if err != nil || !slices.Contains(s.Values[2], 1) {
		t.Errorf("the peak is lost: %v, %v", s, err)
	}
}

func TestColumnsWithoutNumbersAreLeftOut(t *testing.T) {
	for _, held := range []int{maxHeld, 10} {
		table := open(t, "a.csv", wave(50), true)
		table.held = held
		s, err := table.Thin(t.Context(), []int{0, 1, 2, 3}, 1, 100)
		must.OK(t, err)
		if !slices.Equal(s.Columns, []string{"time", "rg", "other"}) || len(s.Values) != 3 || len(s.Values[2]) != 50 || s.Values[2][9] != 2 {
			t.Errorf("columns %q, values %v", s.Columns, s.Values)
		}
	}
}

func TestRowsWithoutAxisAreLeftOut(t *testing.T) {
	s, err := open(t, "a.csv", "x,y\n,1\n1,\nNA,3\n2,4\n", true).Thin(t.Context(), []int{0, 1}, 2, 10)
	if err != nil || s.Rows != 2 || !slices.Equal(s.Values[0], []float64{1, 2}) || !math.IsNaN(s.Values[1][0]) {
		t.Errorf("%+v, %v", s, err)
	}
}

// pageOf returns a page in an order; nil means file order.
func pageOf(t testing.TB, table *Table, numeric []bool, by *Order, mark *Mark, limit int) (*Page, error) {
	if by == nil {
		return table.Page(t.Context(), numeric, mark, limit)
	}
	return table.Sorted(t.Context(), numeric, *by, mark, limit)
}

// TestPagesAreAllRowsInOrder compares pages with a sort of the whole table.
func TestPagesAreAllRowsInOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("id,score,name\n")
	type row struct {
		id    int
		score float64
		name  string
	}
	var rows []row
	for i := range 1000 {
		r := row{i, float64(random.IntN(50)) - 25, string(rune('a' + random.IntN(20)))}
		score := strconv.FormatFloat(r.score, 'g', -1, 64)
		if random.IntN(10) == 0 {
			r.score, score = math.NaN(), "nan"
		}
		if random.IntN(10) == 0 {
			r.name = ""
		}
		rows = append(rows, r)
		fmt.Fprintf(&b, "%d,%s,%s\n", i, score, r.name)
	}
	table := open(t, "a.csv", b.String(), true)
	numeric, err := table.Numeric(t.Context())
	if err != nil || !slices.Equal(numeric, []bool{true, true, false}) {
		t.Fatalf("%v, %v", numeric, err)
	}
	sign := map[bool]int{true: 1, false: -1}
	last := func(empty, other bool, order int) int { // rows without a value come last
		switch {
		case empty != other:
			return sign[empty]
		case empty:
			return 0
		}
		return order
	}
	byScore := func(sign int) func(a, b row) int {
		return func(a, b row) int {
			return last(a.score != a.score, b.score != b.score, sign*cmp.Compare(a.score, b.score))
		}
	}
	for name, tt := range map[string]struct {
		by      *Order
		compare func(a, b row) int
	}{
		"file":   {nil, func(a, b row) int { return 0 }},
		"score":  {&Order{Column: 1, Numeric: true}, byScore(1)},
		"-score": {&Order{Column: 1, Numeric: true, Descending: true}, byScore(-1)},
		"-name":  {&Order{Column: 2, Descending: true}, func(a, b row) int { return last(a.name == "", b.name == "", cmp.Compare(b.name, a.name)) }},
	} {
		want := slices.Clone(rows)
		slices.SortStableFunc(want, tt.compare)
		for _, limit := range []int{1, 7, 1000, 1001} {
			if limit == 1 && tt.by != nil {
				continue // takes too long
			}
			got := 0
			for mark := (*Mark)(nil); ; {
				page, err := pageOf(t, table, numeric, tt.by, mark, limit)
				must.OK(t, err)
				for _, cells := range page.Rows {
					if cells[0] != json.Number(strconv.Itoa(want[got].id)) {
						t.Fatalf("%s, pages of %d: row %d is %v, want %+v", name, limit, got, cells, want[got])
					}
					got++
				}
				if mark = page.Next; mark == nil {
					break
				}
			}
			must.Equal(t, fmt.Sprintf("%s, pages of %d", name, limit), got, len(rows))
		}
	}
}

func TestCellsOfAPage(t *testing.T) {
	table := open(t, "a.csv", "id,n,code,big,text\n1,0.10,007,12345678901234567890,a\n2,nan,010,1,\n3,1.0D2,100,2,\xff\n4\n", true)
	numeric, err := table.Numeric(t.Context())
	if err != nil || !slices.Equal(numeric, []bool{true, true, false, true, false}) {
		t.Fatalf("%v, %v", numeric, err)
	}
	page, err := table.Page(t.Context(), numeric, nil, 10)
	must.OK(t, err)
	got, err := json.Marshal(page.Rows)
	if want := `[[1,0.10,"007",12345678901234567890,"a"],[2,null,"010",1,null],[3,100,"100",2,"` + "\uFFFD" + `"],[4,null,null,null,null]]`; err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestPageOfAFileThatWasReplaced(t *testing.T) {
	table := open(t, "a.csv", "x\n1\n2\n3\n", true)
	numeric := []bool{true}
	page, err := table.Page(t.Context(), numeric, nil, 1)
	must.OK(t, err)
	for _, text := range []string{"x\n11\n22\n33\n", "x\n"} {
		_, err := open(t, "a.csv", text, true).Page(t.Context(), numeric, page.Next, 1)
		var bad Error
		if !errors.As(err, &bad) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	table := open(t, "a.csv", wave(10), true)
	numeric := make([]bool, 4)
	_, thin := table.Thin(ctx, []int{0, 1}, 2, 10)
	_, page := table.Page(ctx, numeric, nil, 10)
	_, sorted := table.Sorted(ctx, numeric, Order{}, nil, 10)
	for _, err := range []error{thin, page, sorted} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

// FuzzCSV writes cells with the standard library and reads them back.
func FuzzCSV(f *testing.F) {
	f.Add("a", "b,c", "d\"e\nf", "")
	f.Add("x", "# y", "1", ";")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		rows := [][]string{{"first", "second"}, {"p" + a, "q" + b}, {"r" + c, "s" + d}}
		var text bytes.Buffer
		w := csv.NewWriter(&text)
		if err := w.WriteAll(rows); err != nil || strings.ContainsRune(a+b+c+d, '\r') {
			t.Skip() // the library changes carriage returns
		}
		table := open(t, "a.csv", text.String(), true)
		if table.sep != ',' {
			t.Skip()
		}
		for i, got := range all(t, table) {
			for k, cell := range got {
				if want := strings.Trim(strings.ToValidUTF8(rows[i+1][k], "\uFFFD"), " \t"); strings.Trim(cell, " \t") != want {
					t.Errorf("row %d of %q: %q, want %q", i, text.String(), cell, want)
				}
			}
		}
	})
}

// FuzzRows reads arbitrary bytes as a table with every method.
func FuzzRows(f *testing.F) {
	f.Add([]byte("x,y\n1,2\n"), "a.csv", false)
	f.Add([]byte("@ s0 legend \"a\"\n0 1\n\"\n"), "a.xvg", true)
	f.Add([]byte("\"\"\"\t\"\n\t\"\r\n"), "a.tsv", true)
	f.Fuzz(func(t *testing.T, text []byte, name string, complete bool) {
		table, err := Open(bytes.NewReader(text), int64(len(text)), name, complete)
		if err != nil {
			return
		}
		numeric, err := table.Numeric(t.Context())
		if err != nil || len(table.Columns) == 0 {
			return
		}
		rows := all(t, table)
		if lines := bytes.Count(text, []byte("\n")) + 1; len(rows) > lines {
			t.Errorf("%d rows in %d lines", len(rows), lines)
		}
		paged := 0
		for mark := (*Mark)(nil); ; {
			page, err := table.Page(t.Context(), numeric, mark, 1)
			must.OK(t, err)
			paged += len(page.Rows)
			if mark = page.Next; mark == nil {
				break
			}
		}
		must.Equal(t, "rows in pages", paged, len(rows))
		sorted, err := table.Sorted(t.Context(), numeric, Order{Numeric: numeric[0]}, nil, len(rows)+1)
		if err != nil || len(sorted.Rows) != len(rows) {
			t.Errorf("%d rows sorted, %d in file order, %v", len(sorted.Rows), len(rows), err)
		}
		if _, err := json.Marshal(sorted.Rows); err != nil {
			t.Error(err)
		}
		columns := make([]int, len(table.Columns))
		for i := range columns {
			columns[i] = i
		}
		s, err := table.Thin(t.Context(), columns, 1, 3)
		if err == nil && (len(s.Values[0]) > 3 || int64(len(s.Values[0])) != min(3, s.Rows)) {
			t.Errorf("%d points of %d rows", len(s.Values[0]), s.Rows)
		}
	})
}

// table1e6 has a million rows of six columns.
func table1e6() string {
	var b strings.Builder
	b.WriteString("step,time_ps,replica,rg_nm,epot_kJ_mol,name\n")
	for i := range 1_000_000 {
		fmt.Fprintf(&b, "%d,%.2f,1,%.4f,%.3f,r%d\n", i*200, float64(i)*2, 1.3+math.Sin(float64(i)/1e4), -812+math.Cos(float64(i)), i*7919%1_000_003)
	}
	return b.String()
}

func BenchmarkSeries(b *testing.B) {
	text := table1e6()
	for name, columns := range map[string][]int{"2columns": {1, 3}, "4columns": {1, 3, 4, 0}, "5columns": {1, 0, 2, 3, 4}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := open(b, "a.csv", text, true).Thin(b.Context(), columns, len(columns), 2000); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPage(b *testing.B) {
	text := table1e6()
	numeric := []bool{true, true, true, true, true, false}
	for name, by := range map[string]*Order{"file": nil, "number": {Column: 3, Numeric: true, Descending: true}, "text": {Column: 5}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := pageOf(b, open(b, "a.csv", text, true), numeric, by, nil, 100)
				must.OK(b, err)
			}
		})
	}
}
