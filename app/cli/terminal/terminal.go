// Package terminal writes the output of commands: tables that fit the terminal, states
// with a sign and a word, colours where they are wanted, bars of progress. Text that
// comes from others cannot control the terminal.
package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"molrun/app/base/plaintext"
)

// plainWidth is how many columns tables have where the terminal does not say.
const plainWidth = 80

// Terminal is where a command writes.
type Terminal struct {
	Out, Err    io.Writer
	Interactive bool // Out is a terminal
	Colour      bool
	Width       int // columns
	JSON        bool
	Quiet       bool
}

// New returns what a command writes to. Files that are terminals are drawn on, with
// colours unless $NO_COLOR is set or $TERM is dumb.
func New(out, err io.Writer, getenv func(string) string) *Terminal {
	t := &Terminal{Out: out, Err: err, Width: plainWidth}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return t
	}
	t.Interactive = true
	t.Colour = getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width >= 20 {
		t.Width = width
	}
	return t
}

// Attended reports whether a person sees the progress of what runs.
func (t *Terminal) Attended() bool {
	f, ok := t.Err.(*os.File)
	return ok && !t.Quiet && term.IsTerminal(int(f.Fd()))
}

// Print writes a line of the answer.
func (t *Terminal) Print(format string, args ...any) error {
	_, err := fmt.Fprintf(t.Out, format+"\n", args...)
	return err
}

// Notef prints a note for people beside the answer, on standard error.
func (t *Terminal) Notef(format string, args ...any) {
	if !t.Quiet {
		fmt.Fprintf(t.Err, format+"\n", args...)
	}
}

// PrintJSON writes v for programs, indented on a terminal.
func (t *Terminal) PrintJSON(v any) error {
	e := json.NewEncoder(t.Out)
	e.SetEscapeHTML(false)
	if t.Interactive {
		e.SetIndent("", "  ")
	}
	return e.Encode(v)
}

// Clean returns text of others as one line that controls nothing.
func Clean(text string) string { return plaintext.Printable([]byte(text)) }

// CleanLines is Clean for text of several lines.
func CleanLines(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\t", "        "), "\n")
	for i, line := range lines {
		lines[i] = Clean(line)
	}
	return strings.Join(lines, "\n")
}

// Codes of colours.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	grey   = "90"
)

func (t *Terminal) paint(colour, text string) string {
	if !t.Colour || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// states have a sign, so that they differ also without colours.
var states = map[string]struct{ sign, word, colour string }{
	"QUEUED":    {"◌", "queued", yellow},
	"RUNNING":   {"▶", "running", blue},
	"COMPLETED": {"✔", "completed", green},
	"FAILED":    {"✘", "failed", red},
}

// State returns the status of a job for people.
func State(status string) string {
	if s, ok := states[status]; ok {
		return s.sign + " " + s.word
	}
	return "? " + Clean(status)
}

// Paint is State in its colour.
func (t *Terminal) Paint(status string) string { return t.paint(states[status].colour, State(status)) }

// colourOf returns the colour of a cell that State has made.
func colourOf(cell string) string {
	for _, s := range states {
		if cell == s.sign+" "+s.word {
			return s.colour
		}
	}
	return ""
}
