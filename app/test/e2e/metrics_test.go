package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"molrun/app/test/cluster"
	"molrun/app/test/must"
)

// scraped is the response of GET /metrics, with the value of each series, such as up or
// up{a="b"}.
type scraped struct {
	text   []byte
	values map[string]float64
}

func (s *instance) scrape() scraped {
	s.t.Helper()
	text := user{s, ""}.do("GET", "/metrics", nil).want(200).body // without a key
	all := scraped{text, map[string]float64{}}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		must.OK(s.t, err)
		all.values[line[:at]] = value
	}
	return all
}

// shows waits until the given metrics have the given values.
func (s *instance) shows(want map[string]float64) {
	s.t.Helper()
	var wrong []string
	defer func() {
		if s.t.Failed() {
			s.t.Logf("wrong metrics: %s", wrong)
		}
	}()
	s.eventually("the metrics are right", func() bool {
		now := s.scrape()
		wrong = nil
		for series, value := range want {
			if got, known := now.values[series]; got != value || !known {
				wrong = append(wrong, fmt.Sprintf("%s is %v (%v), want %v", series, got, known, value))
			}
		}
		return wrong == nil
	})
}

// names returns the names of metrics, without suffixes for histograms.
func (m scraped) names() (all []string) {
	for _, found := range regexp.MustCompile(`(?m)^# TYPE (\S+) `).FindAllSubmatch(m.text, -1) {
		all = append(all, string(found[1]))
	}
	return all
}

// promtool runs a check of promtool, which is in Debian's package prometheus.
func promtool(t *testing.T, stdin []byte, args ...string) {
	t.Helper()
	path := must.Installed(t, "promtool")
	c := exec.Command(path, args...)
	c.Stdin = bytes.NewReader(stdin)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Metrics that only a service with a cluster has, and metrics that only a service with
// backups has.
var (
	ofCluster = []string{"molrun_slurm_up", "molrun_slurm_command_seconds", "molrun_slurm_command_failures_total"}
	ofBackup  = []string{
		"molrun_backup_directory_present", "molrun_backup_interval_seconds", "molrun_backup_last_success_timestamp_seconds", "molrun_backup_size_bytes", "molrun_backup_duration_seconds",
		"molrun_backup_failures_total", "molrun_backup_trial_timestamp_seconds", "molrun_backup_trial_success",
	}
	onFailure = []string{"molrun_metrics_failures_total", "molrun_gpu_faulty"}
	always    = regexp.MustCompile(`\b(?:molrun|process|go)_[a-z0-9_]+\b`)
)

// metricsAt returns the metrics mentioned in a string, without the suffixes of
// histograms.
func metricsAt(text string) (all []string) {
	for _, name := range always.FindAllString(text, -1) {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, suffix)
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestMetricsAreThoseOfDocumentsAlertsAndDashboard(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{config: noSandbox, algorithms: map[string]string{"shell.toml": shellFile}})
	u := s.user("lab", "ann@lab.example")
	u.submit("j", "shell", script("true"))
	u.completed("j")
	s.shows(map[string]float64{`molrun_job_attempts_total{executor="local",result="completed",type="shell"}`: 1})
	now := s.scrape()
	promtool(t, now.text, "check", "metrics")

	live := slices.Concat(now.names(), ofCluster, ofBackup, onFailure)
	page, err := os.ReadFile("../../../web/docs/monitoring.md")
	must.OK(t, err)
	described := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllSubmatch(page, -1) {
		described[string(row[1])] = true
		if !slices.Contains(live, string(row[1])) {
			t.Errorf("monitoring.md describes %s, which /metrics has not", row[1])
		}
	}
	for _, name := range live {
		if strings.HasPrefix(name, "molrun_") && !described[name] {
			t.Errorf("monitoring.md does not describe %s", name)
		}
	}
	for _, file := range []string{"prometheus-alerts.yml", "grafana-dashboard.json"} {
		for _, name := range metricsIn(t, filepath.Join("../../../web/deploy", file)) {
			if !slices.Contains(live, name) {
				t.Errorf("%s names %s, which /metrics has not", file, name)
			}
		}
	}
}

// metricsIn returns the metrics used in the expressions of a file.
func metricsIn(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	must.OK(t, err)
	var all any
	must.OK(t, yaml.Unmarshal(text, &all)) // JSON is a subset of YAML
	var found []string
	var look func(v any)
	look = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				look(item)
			}
		case map[string]any:
			for key, item := range v {
				if text, ok := item.(string); ok && (key == "expr" || key == "query") {
					found = append(found, metricsAt(text)...)
				}
				look(item)
			}
		}
	}
	look(all)
	if len(found) == 0 {
		t.Errorf("%s names no metric", path)
	}
	return found
}

// metricsOfTheCluster runs a job while the Slurm controller responds, then stops the
// controller and checks the metrics again.
func metricsOfTheCluster(t *testing.T, c *cluster.Cluster) {
	s := clusterServer(t, c, "", serverOptions{config: everywhere})
	u := s.user("lab", "ann@lab.example")
	u.submit("j", "shell", script("true"))
	u.completed("j")
	s.shows(map[string]float64{
		"molrun_slurm_up": 1, `molrun_slurm_command_seconds_count{command="sbatch"}`: 1, `molrun_slurm_command_failures_total{command="sbatch"}`: 0,
		`molrun_job_attempts_total{executor="slurm",result="completed",type="shell"}`: 1,
		`molrun_jobs{executor="slurm",state="completed",type="shell"}`:                1,
		`molrun_executor_jobs{executor="slurm"}`:                                      0,
	})
	now := s.scrape()
	for _, name := range ofCluster {
		if !slices.Contains(now.names(), name) {
			t.Errorf("/metrics has no %s", name)
		}
	}
	if _, known := now.values[`molrun_executor_cpus{executor="slurm",use="free"}`]; known || now.values[`molrun_slurm_command_seconds_sum{command="squeue"}`] <= 0 {
		t.Errorf("metrics: %s", now.text)
	}
	promtool(t, now.text, "check", "metrics")
	t.Cleanup(func() { c.Up(t) })
	c.Kill(t, cluster.Controller)
	u.submit("kept", "shell", script("true"))
	s.eventually("the metrics say that the controller does not answer", func() bool {
		now := s.scrape().values
		failed := 0.0
		for _, command := range []string{"sbatch", "squeue", "sinfo"} {
			failed += now[`molrun_slurm_command_failures_total{command="`+command+`"}`]
		}
		return now["molrun_slurm_up"] == 0 && failed > 0
	})
	c.Up(t)
	u.completed("kept")
	s.shows(map[string]float64{"molrun_slurm_up": 1})
}
