package trial

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/algorithm/results"
	"molrun/app/client"
	"molrun/app/task/protocol"
)

// Metric is a metric of a result, with the range that the algorithm file specifies.
type Metric struct {
	Name    string  `json:"name"`
	Value   any     `json:"value"` // nil means that the result does not have it
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
}

// within reports whether the metric is in the range.
func (m Metric) within() bool {
	v, ok := m.Value.(float64)
	return ok && v >= m.Lowest && v <= m.Highest
}

func (m Metric) String() string {
	value := "absent"
	if m.Value != nil {
		text, _ := json.Marshal(m.Value) // can't fail: the value was decoded from JSON
		value = string(text)
	}
	return m.Name + " " + value + " [" + number(m.Lowest) + ", " + number(m.Highest) + "]"
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// checkJob compares a finished job with what its algorithm file specifies.
func (t *Tester) checkJob(ctx context.Context, a *algorithm.File, job *client.Job, o *Outcome) {
	if job.Metrics != nil {
		o.Seconds = job.Metrics.RunSeconds
	}
	if job.Status != "COMPLETED" {
		o.failf("%s", job.Failure.Message)
		o.LogTail = job.Failure.LogTail
		if hint := sandboxHint(job); hint != "" {
			o.failf("%s", hint)
		}
		return
	}
	t.checkFiles(ctx, a, job, o)
	checkMetrics(a, job, o)
	t.checkViews(ctx, job, o)
}

// sandboxHint returns a hint if a sandboxed program reports a missing file that exists on
// this machine. Checking for the file reveals nothing to users, because the job is an
// example that the operator runs.
func sandboxHint(job *client.Job) string {
	path := results.MissingPath(results.LastErrorLine(job.Failure.LogTail))
	if path == "" || protocol.SandboxOf(job.Isolation) == "" {
		return ""
	}
	if _, err := os.Lstat(path); err != nil || strings.Contains(path, job.ID) {
		return ""
	}
	return path + " is on this machine, but not visible inside the sandbox: list it in [sandbox] read, or name it with [site.paths] or [[assets]]"
}

func (t *Tester) checkFiles(ctx context.Context, a *algorithm.File, job *client.Job, o *Outcome) {
	listed, err := t.API.ResultFiles(ctx, job.Name)
	if err != nil {
		o.failf("list the result: %s", sentence(err))
		return
	}
	sizes := map[string]int64{}
	for _, f := range listed {
		sizes[f.Path] = f.Size
	}
	for _, file := range a.Example.Files {
		if _, there := sizes[file]; !there {
			o.failf("the result has no %s", file)
		}
	}
	if missing := a.Outputs.Missing(maps.All(sizes)); missing != "" {
		o.failf("%s", missing)
	}
}

func checkMetrics(a *algorithm.File, job *client.Job, o *Outcome) {
	var results map[string]any
	if job.Metrics != nil && len(job.Metrics.Results) > 0 {
		if err := json.Unmarshal(job.Metrics.Results, &results); err != nil {
			o.failf("read the metrics: %v", err)
		}
	}
	for _, m := range a.Metrics {
		_, stated := a.Example.Metrics[m.Name]
		if _, found := results[m.Name]; !found && !stated {
			o.MissingMetrics = append(o.MissingMetrics, m.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Example.Metrics)) {
		stated := a.Example.Metrics[name]
		m := Metric{name, results[name], stated[0], stated[1]}
		o.Metrics = append(o.Metrics, m)
		if !m.within() {
			o.failf("the metric %s is outside its stated range", m)
		}
	}
}
