// Package terminal writes the output of commands: tables that fit the terminal, states
// with a symbol and a word, optional color, and progress bars. Untrusted text cannot
// control the terminal.
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

// plainWidth is the table width, in columns, if the terminal does not report one.
const plainWidth = 80

// Terminal is the output of a command.
type Terminal struct {
	Out, Err    io.Writer
	Interactive bool // Out is a terminal
	Colour      bool
	Width       int // columns
	JSON        bool
	Quiet       bool
}

// New returns a Terminal for the two outputs. If out is a terminal, it uses color unless
// $NO_COLOR is set or $TERM is dumb.
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

// ShowsProgress reports whether a person can see progress.
func (t *Terminal) ShowsProgress() bool {
	f, ok := t.Err.(*os.File)
	return ok && !t.Quiet && term.IsTerminal(int(f.Fd()))
}

// Print writes a line of output.
func (t *Terminal) Print(format string, args ...any) error {
	_, err := fmt.Fprintf(t.Out, format+"\n", args...)
	return err
}

// Notef prints a note to standard error, separate from the output.
func (t *Terminal) Notef(format string, args ...any) {
	if !t.Quiet {
		fmt.Fprintf(t.Err, format+"\n", args...)
	}
}

// PrintJSON writes v as JSON, indented on a terminal.
func (t *Terminal) PrintJSON(v any) error {
	e := json.NewEncoder(t.Out)
	e.SetEscapeHTML(false)
	if t.Interactive {
		e.SetIndent("", "  ")
	}
	return e.Encode(v)
}

// Clean returns untrusted text as one line without control characters.
func Clean(text string) string { return plaintext.Printable([]byte(text)) }

// CleanLines is Clean for text with multiple lines.
func CleanLines(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\t", "        "), "\n")
	for i, line := range lines {
		lines[i] = Clean(line)
	}
	return strings.Join(lines, "\n")
}

// Color codes.
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

// states maps each job status to its symbol, word and color. The symbols distinguish the
// states without color.
var states = map[string]struct{ sign, word, colour string }{
	"QUEUED":    {"◌", "queued", yellow},
	"RUNNING":   {"▶", "running", blue},
	"COMPLETED": {"✔", "completed", green},
	"FAILED":    {"✘", "failed", red},
}

// State formats a job status for display.
func State(status string) string {
	if s, ok := states[status]; ok {
		return s.sign + " " + s.word
	}
	return "? " + Clean(status)
}

// Paint is State in color.
func (t *Terminal) Paint(status string) string { return t.paint(states[status].colour, State(status)) }

// colourOf returns the color of a cell that State produced.
func colourOf(cell string) string {
	for _, s := range states {
		if cell == s.sign+" "+s.word {
			return s.colour
		}
	}
	return ""
}
