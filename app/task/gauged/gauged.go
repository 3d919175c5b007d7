// Package gauged is the rest of the command `molrun task`: tasks whose progress is searched
// for with regular expressions. Go initialises it after package regexp, which takes longer
// than starting the others. A program that imports it has the whole command.
package gauged

import (
	"molrun/app/task"
	"molrun/app/task/gauge"
	"molrun/app/task/protocol"
	"molrun/app/task/start"
)

func init() {
	start.Gauged(func(g protocol.Gauge, report func(protocol.Reading)) (task.Gauge, error) {
		return gauge.New(g, report)
	})
}
