package doctor

import "fmt"

// Finding is what one check has found.
type Finding struct {
	Check  string `json:"check"`
	Result Result `json:"result"`
	Text   string `json:"text"` // what it is and, if it is not ok, what to do
}

// Result grades a finding.
type Result string

// The results of a check.
const (
	OK      Result = "ok"
	Warning Result = "warning" // it works, but not as well or as long as it could
	Problem Result = "problem" // something does not work
)

// finding makes the only finding of a check.
func finding(r Result, format string, args ...any) []Finding {
	return []Finding{{Result: r, Text: fmt.Sprintf(format, args...)}}
}
