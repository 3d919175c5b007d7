package slurm_test

import (
	"testing"

	"molrun/app"
	"molrun/app/test/conformance"
)

func TestConformance(t *testing.T) {
	w := newWorld(t)
	conformance.Suite{
		New: func(t *testing.T) app.Executor {
			o := w.options
			o.Log = func(message string, fields ...any) { t.Log(append([]any{message}, fields...)...) }
			inner := &world{T: t, cluster: w.cluster, options: o}
			return inner.executor()
		},
		Dir:     func(*testing.T) string { return w.dir() },
		Timeout: patience,
	}.Run(t)
}
