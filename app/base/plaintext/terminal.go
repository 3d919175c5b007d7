package plaintext

import (
	"regexp"
	"strings"
)

// control matches the control sequences of terminals: titles and links including their
// terminators, colors and cursor movements, and single escapes.
var control = regexp.MustCompile(`\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[\[0-9;?<=>!]*[ -/]*[@-~]?|\x9b[0-9;?]*[@-~]?`)

// WithoutControl removes the control sequences of terminals.
func WithoutControl(s string) string { return control.ReplaceAllString(s, "") }

// OnTerminal returns a program's output as a terminal would finally display it: without
// control sequences and without overwritten text.
func OnTerminal(s string) string {
	lines := strings.SplitAfter(WithoutControl(s), "\n")
	for i, line := range lines {
		text, end, _ := strings.Cut(line, "\n")
		text = strings.TrimRight(text, "\r")
		lines[i] = text[strings.LastIndexByte(text, '\r')+1:]
		if len(line) > 0 && line[len(line)-1] == '\n' {
			lines[i] += "\n" + end
		}
	}
	return strings.Join(lines, "")
}
