package task

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

var omissionLine = regexp.MustCompile(`\n\[molrun: (\d+) bytes omitted here\]\n`)

func TestLogKeepsBeginningAndEnd(t *testing.T) {
	tests := []struct {
		name        string
		line        func(i int) string
		lines, step int
	}{
		{"short lines", func(i int) string { return fmt.Sprintln("line", i) }, 60000, 1},
		{"without line ends", func(i int) string { return fmt.Sprintf("%08d", i) }, 60000, 7},
		{"larger than the limit at once", func(i int) string { return strings.Repeat(fmt.Sprintln(i), 20000) }, 9, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const limit = 64 << 10
			dir := t.TempDir()
			l, err := openLog(dir, limit)
			must.OK(t, err)
			var all bytes.Buffer
			for i := range tt.lines {
				line := tt.line(i)
				all.WriteString(line)
				l.Write([]byte(line))
				if i%997 == 0 { // a reader always finds a complete log
					checkLog(t, dir, all.String(), limit)
				}
			}
			must.OK(t, l.Close())
			checkLog(t, dir, all.String(), limit)
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("directory has %v, %v; want only the log", entries, err)
			}
		})
	}
}

// checkLog checks that the log is the whole text, or its beginning and end with
// the correct number of missing bytes between them.
func checkLog(t *testing.T, dir, all string, limit int) {
	t.Helper()
	got := must.Read(t, dir+"/"+LogFile)
	if len(got) > limit {
		t.Fatalf("the log has %d bytes, the limit is %d", len(got), limit)
	}
	if got == all {
		return
	}
	m := omissionLine.FindStringSubmatchIndex(got)
	if m == nil {
		t.Fatalf("a log of %d bytes for %d does not say how many are missing", len(got), len(all))
	}
	head, tail := got[:m[0]], got[m[1]:]
	missing, err := strconv.Atoi(got[m[2]:m[3]])
	must.OK(t, err)
	if !strings.HasPrefix(all, head) || !strings.HasSuffix(all, tail) {
		t.Fatal("the log is not the beginning and the end")
	}
	if len(head)+missing+len(tail) != len(all) {
		t.Fatalf("%d + %d missing + %d bytes, want %d", len(head), missing, len(tail), len(all))
	}
	if len(head) < limit/8 || len(tail) < limit/4-limit/16 {
		t.Fatalf("only %d and %d bytes are kept", len(head), len(tail))
	}
}

func TestHugeLogStaysSmall(t *testing.T) {
	t.Parallel()
	size := 256 << 20
	if testing.Short() {
		size = 64 << 20
	}
	a := newAttempt(t, fmt.Sprintf("echo first; yes 0123456789abcde | head -c %d; echo last", size))
	a.spec.LogBytes = 1 << 20
	a.start().ends(protocol.CauseDone)
	log := a.read(LogFile)
	if len(log) > 1<<20 || !strings.HasPrefix(log, "first\n0123") || !strings.HasSuffix(log, "cde\nlast\n") || !omissionLine.MatchString(log) {
		t.Errorf("log of %d bytes from %.20q to %.20q", len(log), log, log[len(log)-20:])
	}
}

func TestLostLogBytesAreCounted(t *testing.T) {
	l, err := openLog(t.TempDir(), 1<<20)
	must.OK(t, err)
	writable := l.f
	if l.f, err = os.Open(l.path); err != nil { // like a full disk
		t.Fatal(err)
	}
	l.Write(make([]byte, 1234))
	must.OK(t, l.f.Close())
	l.f = writable
	must.OK(t, l.Close())
	must.Contain(t, "log", must.Read(t, l.path), "1234 bytes could not be written")
}

func TestMarkedLinesAreFilteredFromTheLog(t *testing.T) {
	const printed = "begin\nmolrun:progress 0.5 half\nmiddle molrun:progress 0.6 no\n" +
		"molrun:progress\nmolrun:progress x\nmolrun:progress 2 no\nmolrun:progress NaN\nmolrun:progressive\n" +
		"molrun:progress 0.7\r\nmolrun:prog\nmolrun:warning  Rg is\x07 not converged \r\nmolrun:warning \nmolrun:warnings x\nend\nmolrun:progress 1 \x1b[1mdone\x1b[0m\xff  "
	const logged = "begin\nmiddle molrun:progress 0.6 no\n" +
		"molrun:progress\nmolrun:progress x\nmolrun:progress 2 no\nmolrun:progress NaN\nmolrun:progressive\nmolrun:prog\n" +
		"warning: Rg is not converged\nmolrun:warning \nmolrun:warnings x\nend\n"
	reports := []protocol.Progress{{Fraction: 0.5, Text: "half"}, {Fraction: 0.7}, {Fraction: 1, Text: "[1mdone[0m\uFFFD"}}

	for range 300 { // in random chunks
		var out bytes.Buffer
		var got []protocol.Progress
		var warned []string
		f := &markFilter{out: &out, report: func(p protocol.Progress) { got = append(got, p) }, warn: func(text string) { warned = append(warned, text) }}
		for rest := []byte(printed); len(rest) > 0; {
			n := 1 + rand.IntN(min(len(rest), 40))
			f.Write(rest[:n])
			rest = rest[n:]
		}
		f.Flush()
		if out.String() != logged {
			t.Fatalf("log %q, want %q", out.String(), logged)
		}
		must.Equal(t, "warnings", warned, []string{"Rg is not converged"})
		if fmt.Sprint(got) != fmt.Sprint(reports) {
			t.Fatalf("progress %v, want %v", got, reports)
		}
	}
}

// FuzzMarkFilter checks that the filter removes valid progress lines, rewords warnings
// and changes nothing else, no matter how the output is split into chunks.
func FuzzMarkFilter(f *testing.F) {
	f.Add([]byte("a\nmolrun:progress 0.5 x\nb"), uint8(3))
	f.Add([]byte("molrun:progress molrun:progress 0.1\n"), uint8(1))
	f.Add([]byte("molrun:warning \nmolrun:warning a\nmolrun:warning b"), uint8(5))
	f.Fuzz(func(t *testing.T, printed []byte, piece uint8) {
		var want bytes.Buffer
		for line := range bytes.Lines(printed) {
			if !(&markFilter{out: &want, report: func(protocol.Progress) {}, warn: func(string) {}}).takeMarked(line) {
				want.Write(line)
			}
		}
		if len(printed) >= longestMarkedLine {
			return // where a long line is cut depends on the chunks
		}
		var got bytes.Buffer
		filter := &markFilter{out: &got, report: func(protocol.Progress) {}, warn: func(string) {}}
		for rest := printed; len(rest) > 0; {
			n := min(len(rest), 1+int(piece))
			filter.Write(rest[:n])
			rest = rest[n:]
		}
		filter.Flush()
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("log %q, want %q", got.Bytes(), want.Bytes())
		}
	})
}

func TestEndlessLineIsNotHeldBack(t *testing.T) {
	var out bytes.Buffer
	f := &markFilter{out: &out, report: func(protocol.Progress) { t.Error("reported") }}
	f.Write([]byte(mark + "progress "))
	for range 1000 {
		f.Write([]byte("0123456789"))
	}
	if out.Len() < 10000-longestMarkedLine {
		t.Errorf("only %d bytes passed on", out.Len())
	}
}

func TestWarningsOfAllStepsAreInTheOutcome(t *testing.T) {
	a := newAttempt(t, "echo molrun:warning the run is short", "echo molrun:warning it has not converged; exit 1")
	must.Equal(t, "warnings", a.start().outcome().Warnings, []string{"the run is short", "it has not converged"})
	must.Equal(t, "log", a.read(LogFile), "warning: the run is short\nwarning: it has not converged\n")
}

func TestProgressIsWrittenWhileRunningAndAtTheEnd(t *testing.T) {
	a := newAttempt(t, `echo molrun:progress 0.25 first >&2
		while [ ! -e out/go ]; do sleep 0.02; done
		for i in 3 4 5 6 7 8; do echo molrun:progress 0.$i step $i; done`)
	r := a.start()
	a.untilFile(ProgressFile)
	if p, err := ReadProgress(a.dir); err != nil || *p != (protocol.Progress{Fraction: 0.25, Text: "first"}) {
		t.Errorf("progress %v, %v; want the first", p, err)
	}
	a.release()
	r.outcome()
	if p, err := ReadProgress(a.dir); err != nil || *p != (protocol.Progress{Fraction: 0.8, Text: "step 8"}) {
		t.Errorf("progress %v, %v; want the last", p, err)
	}
	must.Equal(t, "log", a.read(LogFile), "")
}
