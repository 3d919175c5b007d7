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

// Metric is a figure of a result beside what the algorithm file states.
type Metric struct {
	Name   string  `json:"name"`
	Value  any     `json:"value"` // nil: there is none
	Lowest float64 `json:"lowest"`
	Most   float64 `json:"highest"`
}

// within reports whether the figure is as stated.
func (m Metric) within() bool {
	v, ok := m.Value.(float64)
	return ok && v >= m.Lowest && v <= m.Most
}

func (m Metric) String() string {
	value := "absent"
	if m.Value != nil {
		text, _ := json.Marshal(m.Value) // it was JSON
		value = string(text)
	}
	return m.Name + " " + value + " [" + number(m.Lowest) + ", " + number(m.Most) + "]"
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// checkJob compares a job that has ended with what its algorithm file promises.
func (t *Tester) checkJob(ctx context.Context, a *algorithm.File, job *client.Job, o *Outcome) {
	if job.Metrics != nil {
		o.Seconds = job.Metrics.RunSeconds
	}
	if job.Status != "COMPLETED" {
		o.faultf("%s", job.Failure.Message)
		o.LogTail = job.Failure.LogTail
		if hint := hidden(job); hint != "" {
			o.faultf("%s", hint)
		}
		return
	}
	t.checkFiles(ctx, a, job, o)
	checkMetrics(a, job, o)
	t.checkViews(ctx, job, o)
}

// hidden returns a hint if a program in a sandbox says that a file is missing which this
// machine has. Only the administrator sees this: it is the example's own job.
func hidden(job *client.Job) string {
	path := results.MissingPath(results.LastErrorLine(job.Failure.LogTail))
	if path == "" || protocol.Box(job.Isolation) == "" {
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
		o.faultf("list the result: %s", sentence(err))
		return
	}
	sizes := map[string]int64{}
	for _, f := range listed {
		sizes[f.Path] = f.Size
	}
	for _, file := range a.Example.Files {
		if _, there := sizes[file]; !there {
			o.faultf("the result has no %s", file)
		}
	}
	if missing := a.Outputs.Missing(maps.All(sizes)); missing != "" {
		o.faultf("%s", missing)
	}
}

func checkMetrics(a *algorithm.File, job *client.Job, o *Outcome) {
	var results map[string]any
	if job.Metrics != nil && len(job.Metrics.Results) > 0 {
		if err := json.Unmarshal(job.Metrics.Results, &results); err != nil {
			o.faultf("read the metrics: %v", err)
		}
	}
	for _, m := range a.Metrics {
		_, stated := a.Example.Metrics[m.Name]
		if _, found := results[m.Name]; !found && !stated {
			o.Unfound = append(o.Unfound, m.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Example.Metrics)) {
		stated := a.Example.Metrics[name]
		m := Metric{name, results[name], stated[0], stated[1]}
		o.Metrics = append(o.Metrics, m)
		if !m.within() {
			o.faultf("the metric %s is outside its stated range", m)
		}
	}
}
