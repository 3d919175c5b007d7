// Package gauged completes the command `molrun task` with tasks whose progress is parsed
// with regular expressions. Go initializes it after package regexp, which takes longer
// than starting other tasks. A program that imports it has the whole command.
package gauged

import (
	"molrun/app/task"
	"molrun/app/task/gauge"
	"molrun/app/task/protocol"
	"molrun/app/task/start"
)

func init() {
	start.RunWithParsers(func(g protocol.ProgressParser, report func(protocol.Reading)) (task.ProgressParser, error) {
		return gauge.New(g, report)
	})
}
