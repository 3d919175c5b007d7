package terminal

import (
	"fmt"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Column is a column of a table.
type Column struct {
	Title    string
	Right    bool // right-align, for numbers
	MinWidth int  // minimum width on narrow terminals; 0 means that it can't shrink
}

// gap is the space between two columns.
const gap = 2

// Table writes rows below a heading. If they are wider than the terminal, it truncates
// the columns that can shrink, starting with the widest.
func (t *Terminal) Table(columns []Column, rows [][]string) error {
	cells, widths := measure(columns, rows)
	shrink(columns, widths, t.Width)
	heading := make([]string, len(columns))
	for i, c := range columns {
		heading[i] = c.Title
	}
	var b strings.Builder
	t.line(&b, columns, widths, heading, grey)
	for _, row := range cells {
		t.line(&b, columns, widths, row, "")
	}
	_, err := fmt.Fprint(t.Out, b.String())
	return err
}

// Fits reports whether a table fits the terminal, if necessary with truncated columns.
func (t *Terminal) Fits(columns []Column, rows [][]string) bool {
	_, widths := measure(columns, rows)
	return shrink(columns, widths, t.Width)
}

// measure returns the cells as printed, and the column widths.
func measure(columns []Column, rows [][]string) (cells [][]string, widths []int) {
	cells, widths = make([][]string, len(rows)), make([]int, len(columns))
	for i, c := range columns {
		widths[i] = runewidth.StringWidth(c.Title)
	}
	for i, row := range rows {
		cells[i] = make([]string, len(columns))
		for j := range columns {
			cells[i][j] = Clean(row[j])
			widths[j] = max(widths[j], runewidth.StringWidth(cells[i][j]))
		}
	}
	return cells, widths
}

// shrink narrows columns to fit a total width, as far as they can shrink, and reports
// whether they fit.
func shrink(columns []Column, widths []int, most int) bool {
	total := gap * (len(columns) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > most; total-- {
		widest := -1
		for i, c := range columns {
			if c.MinWidth > 0 && widths[i] > max(c.MinWidth, runewidth.StringWidth(c.Title)) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
	return true
}

func (t *Terminal) line(b *strings.Builder, columns []Column, widths []int, cells []string, colour string) {
	var line strings.Builder
	for i, c := range columns {
		text := runewidth.Truncate(cells[i], widths[i], "…")
		pad := strings.Repeat(" ", widths[i]-runewidth.StringWidth(text))
		paint := colour
		if paint == "" {
			paint = colourOf(text)
		}
		text = t.paint(paint, text)
		if c.Right {
			text = pad + text
		} else if i < len(columns)-1 {
			text += pad
		}
		line.WriteString(text)
		if i < len(columns)-1 {
			line.WriteString(strings.Repeat(" ", gap))
		}
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}
