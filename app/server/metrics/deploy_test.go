package metrics_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"molrun/app/test/must"
)

const deploy = "../../../web/deploy"

// promtool runs a check of promtool, which is in Debian's package prometheus.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(must.Installed(t, "promtool"), args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// rules is the content of web/deploy/prometheus-alerts.yml.
type rules struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	} `yaml:"groups"`
}

type rule struct {
	Alert       string            `yaml:"alert,omitempty"`
	Record      string            `yaml:"record,omitempty"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

func alerts(t *testing.T) (all rules) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, "prometheus-alerts.yml"))
	must.OK(t, err)
	must.OK(t, yaml.UnmarshalWithOptions(text, &all, yaml.Strict()))
	return all
}

func writeYAML(t *testing.T, path string, v any) {
	t.Helper()
	text, err := yaml.Marshal(v)
	must.OK(t, err)
	must.OK(t, os.WriteFile(path, text, 0o600))
}

func TestFilesForPrometheusAreValid(t *testing.T) {
	promtool(t, "check", "rules", filepath.Join(deploy, "prometheus-alerts.yml"))
	promtool(t, "check", "config", filepath.Join(deploy, "prometheus.yml"))
}

func TestAlertsSayWhatToDo(t *testing.T) {
	for _, group := range alerts(t).Groups {
		for _, r := range group.Rules {
			if !slices.Contains([]string{"warning", "critical"}, r.Labels["severity"]) {
				t.Errorf("%s has the severity %q", r.Alert, r.Labels["severity"])
			}
			for _, kind := range []string{"summary", "runbook"} {
				if text := r.Annotations[kind]; !strings.Contains(text, " ") || !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, ").") {
					t.Errorf("%s: the %s %q is no sentence", r.Alert, kind, text)
				}
			}
			if !strings.Contains(r.Annotations["summary"], "{{ $labels.instance }}") {
				t.Errorf("%s does not say which service it is about", r.Alert)
			}
		}
	}
}

// TestAlertsFireWhenTheyShould tests each alert with promtool. The annotations of alerts
// are omitted, because promtool would compare them word for word.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	all := alerts(t)
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, group := range all.Groups {
		for i := range group.Rules {
			group.Rules[i].Annotations = nil
			fires[group.Rules[i].Alert], silent[group.Rules[i].Alert] = false, false
		}
	}
	dir := t.TempDir()
	writeYAML(t, filepath.Join(dir, "alerts.yml"), all)
	files, err := filepath.Glob("testdata/*_test.yml")
	must.OK(t, err)
	var copies []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.OK(t, err)
		noteCases(t, text, fires, silent)
		copies = append(copies, filepath.Join(dir, filepath.Base(file)))
		must.OK(t, os.WriteFile(copies[len(copies)-1], text, 0o600))
	}
	for alert := range fires {
		if !fires[alert] || !silent[alert] {
			t.Errorf("%s: it is tested that it fires: %v, that it does not: %v", alert, fires[alert], silent[alert])
		}
	}
	promtool(t, append([]string{"test", "rules"}, copies...)...)
}

// noteCases records which alerts a test file expects to fire, and which it expects not to
// fire.
func noteCases(t *testing.T, text []byte, fires, silent map[string]bool) {
	t.Helper()
	var cases struct {
		Tests []struct {
			Rule []struct {
				Alert  string `yaml:"alertname"`
				Expect []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		} `yaml:"tests"`
	}
	must.OK(t, yaml.Unmarshal(text, &cases))
	for _, c := range cases.Tests {
		for _, r := range c.Rule {
			if len(r.Expect) > 0 {
				fires[r.Alert] = true
			} else {
				silent[r.Alert] = true
			}
		}
	}
}

// dashboard is the part of Grafana's dashboard JSON that contains the queries.
type dashboard struct {
	Panels []panel `json:"panels"`
}

type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type panel struct {
	ID         int    `json:"id"`
	Type       string `json:"type"`
	Title      string `json:"title"`
	Datasource source `json:"datasource"`
	Targets    []struct {
		RefID      string `json:"refId"`
		Datasource source `json:"datasource"`
		Expr       string `json:"expr"`
	} `json:"targets"`
}

func loadDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, "grafana-dashboard.json"))
	must.OK(t, err)
	must.OK(t, json.Unmarshal(text, &d))
	return d
}

var variable = regexp.MustCompile(`\$\w+`)

// TestDashboardAsksInPromQL checks the expressions of all panels with promtool, in the
// form of rules.
func TestDashboardAsksInPromQL(t *testing.T) {
	values := map[string]string{"$job": "molrun", "$instance": ".+", "$__rate_interval": "1m"}
	var all rules
	all.Groups = append(all.Groups, alerts(t).Groups[0])
	all.Groups[0].Rules = nil
	for _, p := range loadDashboard(t).Panels {
		if p.Type != "row" && (!slices.Contains([]string{"timeseries", "stat"}, p.Type) || len(p.Targets) == 0) {
			t.Errorf("panel %q: type %s, %d targets", p.Title, p.Type, len(p.Targets))
		}
		letters := map[string]bool{}
		for i, target := range p.Targets {
			if target.RefID == "" || letters[target.RefID] {
				t.Errorf("panel %q: refId %q is not its own", p.Title, target.RefID)
			}
			letters[target.RefID] = true
			if variable := (source{"prometheus", "${datasource}"}); p.Datasource != variable || target.Datasource != variable {
				t.Errorf("panel %q: the data source is %+v, %+v, not that of the variable", p.Title, p.Datasource, target.Datasource)
			}
			expr := variable.ReplaceAllStringFunc(target.Expr, func(name string) string {
				if values[name] == "" {
					t.Errorf("panel %q uses the variable %s, which there is not", p.Title, name)
				}
				return values[name]
			})
			must.Contain(t, fmt.Sprintf("panel %q asks for more than the chosen service", p.Title), target.Expr, `job="$job", instance=~"$instance"`)
			all.Groups[0].Rules = append(all.Groups[0].Rules, rule{Record: fmt.Sprintf("panel:%d:%d", p.ID, i), Expr: expr})
		}
	}
	path := filepath.Join(t.TempDir(), "panels.yml")
	writeYAML(t, path, all)
	promtool(t, "check", "rules", path)
}
