package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"molrun/app/test/must"
	"molrun/app/test/whole"
)

// prometheus runs a real Prometheus, from Debian's package prometheus, which scrapes the
// server with the configuration files in web/deploy. It returns Prometheus's address.
func (s *instance) prometheus() (base string) {
	s.t.Helper()
	program := must.Installed(s.t, "prometheus")
	dir := s.t.TempDir()
	for _, file := range []string{"prometheus.yml", "prometheus-alerts.yml"} {
		text := must.Read(s.t, filepath.Join("../../../web/deploy", file))
		changed := strings.NewReplacer(`127.0.0.1:8080`, strings.TrimPrefix(s.base, "http://"), "interval: 15s", "interval: 1s").Replace(text)
		must.OK(s.t, os.WriteFile(filepath.Join(dir, file), []byte(changed), 0o600))
	}
	address, err := whole.FreeAddress()
	must.OK(s.t, err)
	log, err := os.Create(filepath.Join(dir, "log"))
	must.OK(s.t, err)
	c := exec.Command(program, "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address="+address)
	c.Dir, c.Stdout, c.Stderr = dir, log, log
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must.OK(s.t, c.Start())
	s.t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if said, _ := os.ReadFile(log.Name()); s.t.Failed() {
			s.t.Logf("Prometheus:\n%s", said)
		}
	})
	return "http://" + address
}

// ask returns the number of series for a query, and the first value.
func (s *instance) ask(base, query string) (series int, first string) {
	s.t.Helper()
	response, err := http.Get(base + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return 0, err.Error() // Prometheus is not listening yet
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []struct{ Value []any } }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Status != "success" {
		return 0, fmt.Sprint(answer.Error, err)
	}
	if len(answer.Data.Result) == 0 {
		return 0, ""
	}
	return len(answer.Data.Result), fmt.Sprint(answer.Data.Result[0].Value[1])
}

// mayBeEmpty has the metrics of panels that can be empty, because the service has no
// cluster and no backup, and no failure to collect metrics.
var mayBeEmpty = []string{"molrun_slurm", "molrun_backup", "molrun_metrics_failures"}

func TestPrometheusAnswersEveryPanel(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{config: noSandbox + "cpus = 2\n", algorithms: map[string]string{"shell.toml": shellFile}})
	base := s.prometheus()
	u := s.user("lab", "ann@lab.example")
	text, err := os.ReadFile("../../../web/deploy/grafana-dashboard.json")
	must.OK(t, err)
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	must.OK(t, json.Unmarshal(text, &d))
	s.eventually("Prometheus scrapes molrun", func() bool {
		_, up := s.ask(base, `up{job="molrun"}`)
		return up == "1"
	})
	fill := strings.NewReplacer("$job", "molrun", "$instance", ".+", "$__rate_interval", "1m")
	n := 0
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			query := fill.Replace(target.Expr)
			s.eventually(p.Title+" shows something: "+query, func() bool {
				if n++; n%20 == 1 {
					name := fmt.Sprint("j", n)
					u.submit(name, "shell", script("true"))
				}
				series, said := s.ask(base, query)
				empty := slices.ContainsFunc(mayBeEmpty, func(name string) bool { return strings.Contains(query, name) })
				return series > 0 || empty && said == ""
			})
		}
	}
	series, _ := s.ask(base, `ALERTS{alertstate="firing"}`)
	if series > 0 {
		t.Errorf("%d alerts fire for a service that is well", series)
	}
	s.stop()
	s.eventually("the alert that it is down is pending", func() bool {
		pending, _ := s.ask(base, `ALERTS{alertname="MolrunDown"}`)
		return pending == 1
	})
	s.start()
}
