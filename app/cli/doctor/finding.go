package doctor

import "fmt"

// Finding is the outcome of a check, or part of it.
type Finding struct {
	Check  string `json:"check"`
	Result Result `json:"result"`
	Text   string `json:"text"` // what was found and, unless it is OK, what to do
}

// Result is the severity of a finding.
type Result string

// Severities of findings.
const (
	OK      Result = "ok"
	Warning Result = "warning" // works, but not as well or as long as it could
	Problem Result = "problem" // something does not work
)

// finding returns a single finding.
func finding(r Result, format string, args ...any) []Finding {
	return []Finding{{Result: r, Text: fmt.Sprintf(format, args...)}}
}
