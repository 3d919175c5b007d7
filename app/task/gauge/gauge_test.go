package gauge

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

// readings writes output in chunks, one per pause, and returns the readings.
func readings(t *testing.T, of protocol.ProgressParser, pieces ...string) []protocol.Reading {
	t.Helper()
	var got []protocol.Reading
	synctest.Test(t, func(t *testing.T) {
		g, err := New(of, func(r protocol.Reading) { got = append(got, r) })
		must.OK(t, err)
		for _, piece := range pieces {
			time.Sleep(2 * pause)
			if n, err := g.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatalf("wrote %d of %d, %v", n, len(piece), err)
			}
		}
		time.Sleep(2 * pause)
		g.Tick()
	})
	return got
}

func TestReadings(t *testing.T) {
	steps := protocol.ProgressParser{Pattern: `step (\d+)`, Of: 200}
	bar := protocol.ProgressParser{Pattern: `\*`, Count: true, Of: 50}
	pair := protocol.ProgressParser{Pattern: `^frame (\S+)/(\S+)$`}
	cycle := protocol.ProgressParser{Pattern: `CYCLE +(\d+)`}
	for name, c := range map[string]struct {
		of     protocol.ProgressParser
		pieces []string
		want   []protocol.Reading
	}{
		"lines":            {steps, []string{"step 1\nstep 50\n", "other\n", "step 100\n"}, []protocol.Reading{{Fraction: 0.25, Text: "50 of 200"}, {Fraction: 0.5, Text: "100 of 200"}}},
		"carriage returns": {steps, []string{"\rstep 50, left 9 s", "\rstep 100, left 4 s"}, []protocol.Reading{{Fraction: 0.25, Text: "50 of 200"}, {Fraction: 0.5, Text: "100 of 200"}}},
		"cut in two":       {steps, []string{"st", "ep 5", "0\n"}, []protocol.Reading{{Fraction: 0.025, Text: "5 of 200"}, {Fraction: 0.25, Text: "50 of 200"}}},
		"last in a line":   {steps, []string{"step 10 step 20\n"}, []protocol.Reading{{Fraction: 0.1, Text: "20 of 200"}}},
		"beyond":           {steps, []string{"step 500\n"}, []protocol.Reading{{Fraction: 1, Text: "500 of 200"}}},
		"stars":            {bar, []string{"0% 50%\n|--|\n**", "***", "*\n*"}, []protocol.Reading{{Fraction: 0.04, Text: "2 of 50"}, {Fraction: 0.1, Text: "5 of 50"}, {Fraction: 0.14, Text: "7 of 50"}}},
		"pairs":            {pair, []string{"frame 1/4\nframe 2/4\n", "frame 3/", "4\nframe x/4\nframe 1/0\n"}, []protocol.Reading{{Fraction: 0.5, Text: "2 of 4"}, {Fraction: 0.75, Text: "3 of 4"}}},
		"nobody knows":     {cycle, []string{".. CYCLE   1\n", ".. CYCLE   12", "\n"}, []protocol.Reading{{Fraction: -1, Text: "1"}, {Fraction: -1, Text: "12"}}},
		"no numbers":       {protocol.ProgressParser{Pattern: `at (\S+)`, Of: 2}, []string{"at NaN\nat -1\nat x\n"}, nil},
		"silent":           {steps, []string{"", "nothing\n"}, nil},
	} {
		if got := readings(t, c.of, c.pieces...); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if _, err := New(protocol.ProgressParser{Pattern: "("}, nil); err == nil {
		t.Error("an invalid expression was accepted")
	}
}

// TestLongLines writes 10 MB without a line break, of which at most 16 KiB are kept.
func TestLongLines(t *testing.T) {
	var last protocol.Reading
	number, err := New(protocol.ProgressParser{Pattern: `step (\d+)`, Of: 100}, func(r protocol.Reading) { last = r })
	must.OK(t, err)
	text := bytes.Repeat([]byte("x"), 10<<20)
	for from := range 5 {
		number.Write(text[:len(text)/5-from])
	}
	number.Write([]byte("step 40"))
	number.looked = time.Time{}
	if number.Tick(); last.Fraction != 0.4 || cap(number.text) != mostText {
		t.Errorf("%+v after a long line, %d bytes kept; want 0.4 and %d", last, cap(number.text), mostText)
	}
	counter, err := New(protocol.ProgressParser{Pattern: `\*`, Count: true, Of: 512 << 10}, func(r protocol.Reading) { last = r })
	must.OK(t, err)
	counter.begin = counter.begin.Add(-time.Hour) // leaves enough time for counting
	counter.Write([]byte(strings.Repeat("*", 256<<10)))
	counter.looked = time.Time{}
	if counter.Tick(); last.Fraction != 0.5 || cap(counter.text) != mostText {
		t.Errorf("%+v of 256 KB of stars, %d bytes kept; want half of them", last, cap(counter.text))
	}
}

// TestCountingIsGivenUpWhereItCostsTooMuch starts with the time for counting used up.
func TestCountingIsGivenUpWhereItCostsTooMuch(t *testing.T) {
	g, err := New(protocol.ProgressParser{Pattern: `\*`, Count: true, Of: 20 << 20}, func(protocol.Reading) {})
	must.OK(t, err)
	g.spent, g.looked = time.Hour, time.Now().Add(time.Hour)
	g.Write([]byte(strings.Repeat("*", 2<<20)))
	if g.counted != 0 || len(g.text) > mostText {
		t.Errorf("%d counted", g.counted)
	}
}
