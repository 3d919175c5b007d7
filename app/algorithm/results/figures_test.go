package results

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"molrun/app/base/tomltree"
	"molrun/app/test/must"
)

const resultsFile = `
[metrics]
score = { file = "log/tm.txt", pattern = 'score=\s*(\S+)' }
last = { file = "log/tm.txt", pattern = '(?m)^step (\d+)$' }
optional = { file = "log/tm.txt", pattern = 'x|no(thing)?' }
rg = { title = "Rg", unit = "nm" }
`

// read parses a section of an algorithm file.
func read[T any](t *testing.T, section func(*tomltree.Reader) T, text string) T {
	t.Helper()
	r := tomltree.Parse([]byte(text))
	v := section(r)
	if wrong := r.Errors(); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return v
}

func TestFigures(t *testing.T) {
	metrics := read(t, ReadMetrics, resultsFile)
	const fits = "score= 0.98\nstep 1\nstep 20\nx\n"
	tests := []struct {
		name     string
		files    map[string]string
		want     string
		problems []string
	}{
		{"none", nil, "", []string{"metric score: open log/tm.txt: file does not exist"}},
		{"of a file", map[string]string{"log/tm.txt": fits}, `{"last":20,"score":0.98}`, []string{"metric optional: nothing in log/tm.txt matches"}},
		{"last match counts", map[string]string{"log/tm.txt": "score=1\nscore=2\n" + fits + "nothing"}, `{"last":20,"optional":"thing","score":0.98}`, nil},
		{"merged", map[string]string{"log/tm.txt": fits + "nothing", "metrics.json": `{"score":5, "rg":1.50, "a":{"b":[null]}}`}, `{"a":{"b":[null]},"last":20,"optional":"thing","rg":1.5,"score":0.98}`, nil},
		{"odd numbers", map[string]string{"log/tm.txt": "score=.5\nstep 007\nnothing"}, `{"last":7,"optional":"thing","score":0.5}`, nil},
		{"no numbers", map[string]string{"log/tm.txt": "score=nan\nstep 1\nnothing"}, `{"last":1,"optional":"thing","score":"nan"}`, nil},
		{"below all numbers", map[string]string{"log/tm.txt": "score=-inf\nstep 1\nnothing"}, `{"last":1,"optional":"thing","score":"-inf"}`, nil},
		{"control characters", map[string]string{"log/tm.txt": "score=a\x1b[31mb\xff\nstep 1\nnothing"}, `{"last":1,"optional":"thing","score":"a[31mb?"}`, nil},
		{"metrics.json of Python's NaN", map[string]string{"log/tm.txt": fits + "nothing", "metrics.json": `{"a":NaN}`}, `{"last":20,"optional":"thing","score":0.98}`, []string{"metrics.json is not valid JSON"}},
		{"metrics.json is a list", map[string]string{"log/tm.txt": fits + "nothing", "metrics.json": `[]`}, `{"last":20,"optional":"thing","score":0.98}`, []string{"metrics.json must hold an object"}},
		{"metrics.json too large", map[string]string{"log/tm.txt": fits + "nothing", "metrics.json": strings.Repeat(" ", maxMetricsFile) + "{}"}, `{"last":20,"optional":"thing","score":0.98}`, []string{"at most 1048576 are read"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := fstest.MapFS{}
			for name, text := range tt.files {
				out[name] = &fstest.MapFile{Data: []byte(text)}
			}
			got, problems := metrics.ReadMetrics(out)
			if string(got) != tt.want {
				t.Errorf("figures %s, want %s", got, tt.want)
			}
			if len(problems) != len(tt.problems) {
				t.Fatalf("problems %q, want %q", problems, tt.problems)
			}
			for i, p := range tt.problems {
				must.Contain(t, "problem", problems[i], p)
			}
		})
	}
}

func TestOnlyTheEndOfALongFileIsRead(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "x"), []byte("0123456789"), 0o600))
	for _, out := range []fs.FS{os.DirFS(dir), fstest.MapFS{"x": &fstest.MapFile{Data: []byte("0123456789")}}} {
		for most, want := range map[int64]string{3: "789", 10: "0123456789", 99: "0123456789"} {
			if got, err := readTail(out, "x", most); string(got) != want || err != nil {
				t.Errorf("%T: the last %d bytes are %q, %v; want %q", out, most, got, err, want)
			}
		}
	}
}

// A program can leave anything in its output folder; this must never block the service.
func TestFiguresIgnorePipesAndFolders(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, syscall.Mkfifo(filepath.Join(dir, "metrics.json"), 0o600))
	must.OK(t, os.MkdirAll(filepath.Join(dir, "log", "tm.txt"), 0o700))
	got, problems := read(t, ReadMetrics, resultsFile).ReadMetrics(os.DirFS(dir))
	if got != nil || len(problems) != 2 || !strings.Contains(problems[0], "not a regular file") {
		t.Errorf("figures %s, problems %q", got, problems)
	}
}

// Searching a long text piecewise must find the same as searching it whole.
func TestLastMatchOfALongText(t *testing.T) {
	line := "abcdefg hijklmn opqrstu\n"
	tests := []struct {
		name, pattern string
		at            []int // offsets where "step <offset>" is on its own line
	}{
		{"at the start", `(?m)^(step \d+)$`, []int{0}},
		{"at the start of the text only", `^(step \d+)`, []int{0, 30 << 10}},
		{"at the end of the text only", `(step \d+)\n$`, []int{0, 10 << 10, 20 << 10}},
		{"all over", `(?m)^(step \d+)$`, []int{0, 100, 10 << 10, 20<<10 + 5, 29 << 10}},
		{"across lines", `u\n(step \d+)\na`, []int{10 << 10}},
		{"nowhere", `(stop)`, []int{5}},
	}
	const size = 4 << 10
	lengths := []int{size, size + 1, size + 2, size + 9} // leaves only a few bytes for the last piece
	for shift := range 20 {                              // shifts the boundaries of the pieces
		lengths = append(lengths, 30<<10+shift*131)
	}
	for _, length := range lengths {
		for _, tt := range tests {
			var text strings.Builder
			for _, at := range tt.at {
				for text.Len() < at {
					text.WriteString(line)
				}
				fmt.Fprintf(&text, "step %d\n", at)
			}
			for text.Len() < length {
				text.WriteString(line[:min(len(line), length-text.Len())])
			}
			re := regexp.MustCompile(tt.pattern)
			want := ""
			if all := re.FindAllStringSubmatch(text.String(), -1); len(all) > 0 {
				want = all[len(all)-1][1]
			}
			if got := lastMatchInPieces(re, []byte(text.String()), size, 100); string(got) != want {
				t.Errorf("%s: %q, want %q", tt.name, got, want)
			}
		}
	}
}
