package e2e

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"molrun/app/cli/doctor"
	"molrun/app/test/cluster"
	"molrun/app/test/must"
)

// slurmDaemons is the Slurm cluster of these tests, with two nodes of four CPUs and two
// GPUs each.
var slurmDaemons cluster.Shared

// TestJobsOnTheCluster runs its subtests one after another, since each needs the whole
// cluster.
func TestJobsOnTheCluster(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *cluster.Cluster){
		"one setting sends jobs to Slurm":              oneSettingSendsJobsToSlurm,
		"folders of algorithms reach the nodes":        foldersReachTheNodes,
		"containers of images run on nodes":            containersOnTheCluster,
		"a batch needs few calls of sbatch":            batchNeedsFewSubmissions,
		"the documented setup of a cluster works":      readmeForClusters,
		"doctor and readyz report the cluster's state": doctorAndReadyz,
		"metrics tell of the cluster":                  metricsOfTheCluster,
	} {
		t.Run(name, func(t *testing.T) { test(t, slurmDaemons.Start(t)) })
	}
}

// site is a server that uses the cluster.
type site struct {
	*instance
	cluster *cluster.Cluster
	shared  string
	prefix  string
}

// clusterServer starts a server that uses the cluster, with additional settings in its
// [slurm] section. It polls frequently, to keep the tests short.
func clusterServer(t *testing.T, c *cluster.Cluster, settings string, more serverOptions) *site {
	t.Helper()
	s := &site{cluster: c, shared: t.TempDir(), prefix: "t" + strings.ToLower(rand.Text()[:12])}
	must.OK(t, os.Chmod(s.shared, 0o700))
	config := fmt.Sprintf("[slurm]\nshared_dir = %q\nconf = %q\nprefix = %q\npoll = \"300ms\"\n%s\n", s.shared, c.Conf, s.prefix, settings)
	more.config = config + more.config
	if more.algorithms == nil {
		more.algorithms = map[string]string{"shell.toml": shellFile}
	}
	t.Cleanup(func() { s.cancelAll(t) }) // after the server has stopped
	s.instance = startServer(t, more)
	return s
}

// everywhere is the configuration of a site that runs all its jobs on the cluster.
const everywhere = "[runner]\nexecutor = \"slurm\"\n"

// inSlurm returns the IDs of the site's jobs in Slurm that have not ended.
func (s *site) inSlurm(t *testing.T) (ids []string) {
	t.Helper()
	for line := range strings.Lines(s.cluster.Run(t, "squeue", "--noheader", "--array", "--format=%i %j")) {
		if id, name, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(name, s.prefix) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (s *site) cancelAll(t *testing.T) {
	if ids := s.inSlurm(t); len(ids) > 0 {
		s.cluster.Run(t, "scancel", ids...)
	}
	s.waitUntilEmpty(t)
}

// waitUntilEmpty waits until Slurm has no jobs of the site, including completing ones.
func (s *site) waitUntilEmpty(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(patience); len(s.inSlurm(t)) > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("jobs remain in Slurm: %v", s.inSlurm(t))
		}
	}
}

func oneSettingSendsJobsToSlurm(t *testing.T, c *cluster.Cluster) {
	const simulation = `{"sequences":["DSHAKRHHGYKRKFHEKHHSHRGY"],"names":["Hst5"],"steps":20000,"seed":7}`
	here := startServer(t, serverOptions{}).user("lab", "ann@lab.example")
	there := clusterServer(t, c, "", serverOptions{config: everywhere}).user("lab", "ann@lab.example")
	results := map[string]map[string]string{}
	for name, u := range map[string]user{"here": here, "there": there} {
		u.submit("sim", "cg-idp", simulation)
		j := u.completed("sim")
		if want := map[string]string{"here": "local", "there": "slurm"}[name]; j.Executor != want || j.Attempts != 1 {
			t.Errorf("%s: executor %s, attempts %d", name, j.Executor, j.Attempts)
		}
		if j.Metrics.Results["rg_nm"] == nil || j.Metrics.RunSeconds <= 0 || j.Metrics.CPUSeconds <= 0 || j.Metrics.MaxRSSBytes <= 0 {
			t.Errorf("%s: metrics %+v", name, j.Metrics)
		}
		files := unzip(t, u.result("sim", ""))
		for _, timed := range []string{"job.json", "log.txt", "metrics.json", "Hst5/summary.json"} {
			delete(files, timed)
		}
		results[name] = files
	}
	must.Equal(t, "results of the cluster next to those of this machine", results["there"], results["here"])
	if len(results["there"]) < 5 {
		t.Errorf("the result has only the files %v", sortedNames(results["there"]))
	}
}

// batchNeedsFewSubmissions runs a batch of 50 jobs, or of MOLRUN_CLUSTER_ROWS; `make
// cluster` sets that to 1,000.
func batchNeedsFewSubmissions(t *testing.T, c *cluster.Cluster) {
	count := 50
	if text := os.Getenv("MOLRUN_CLUSTER_ROWS"); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		must.OK(t, err)
	}
	s := clusterServer(t, c, "", serverOptions{config: everywhere})
	u := s.user("lab", "ann@lab.example")
	rows := make([]string, count)
	for i := range rows {
		rows[i] = script(fmt.Sprintf("echo %d >out/row", i))
	}
	begin := time.Now()
	u.batch("many", "shell", rows...)
	b := u.untilWithin(patience+time.Duration(count)*time.Second, "many", "finished", func(r record) bool { return r.Status == "COMPLETED" || r.Status == "FAILED" })
	if b.Status != "COMPLETED" || b.SubjobCounts["COMPLETED"] != len(rows) {
		t.Fatalf("the batch is %s, %v", b.Status, b.SubjobCounts)
	}
	calls := strings.Count(s.log.String(), `"message":"submitted"`)
	t.Logf("%d rows took %v and %d calls of sbatch", len(rows), time.Since(begin).Round(time.Second), calls)
	if calls < 1 || calls > 10 {
		t.Errorf("%d calls of sbatch", calls)
	}
	for _, i := range []int{0, count / 2, count - 1} {
		u.wantResult(fmt.Sprintf("many-%d", i+1), "row", fmt.Sprintf("%d\n", i))
	}
	var listed page
	u.do("GET", "/jobs?"+url.Values{"batch": {"many"}, "limit": {"100"}}.Encode(), nil).want(200).into(&listed)
	for _, j := range listed.Jobs {
		if j.Attempts != 1 || j.Executor != "slurm" {
			t.Errorf("%s: %d attempts on %s", j.JobName, j.Attempts, j.Executor)
		}
	}
}

func doctorAndReadyz(t *testing.T, c *cluster.Cluster) {
	s := clusterServer(t, c, "", serverOptions{config: everywhere})
	findings, _ := s.diagnosis("--listen", strings.TrimPrefix(s.base, "http://"))
	if strings.Contains(findings["slurm"], string(doctor.Problem)+": ") || !strings.Contains(findings["slurm"], "exchanged files with this machine") {
		t.Errorf("doctor says %q", findings["slurm"])
	}
	answers := func() string {
		var ready struct{ Checks map[string]any }
		user{instance: s.instance}.do("GET", "/readyz", nil).want(200).into(&ready)
		text, _ := ready.Checks["slurm"].(string)
		return text
	}
	s.eventually("/readyz reports that the cluster answers", func() bool { return answers() == "ok" })
	t.Cleanup(func() { c.Up(t) })
	c.Kill(t, cluster.Controller)
	u := s.user("lab", "ann@lab.example")
	u.submit("kept", "shell", script("true"))
	s.eventually("/readyz reports that the cluster does not answer", func() bool { return strings.HasPrefix(answers(), "no response since ") })
	findings, _ = s.diagnosis("--listen", strings.TrimPrefix(s.base, "http://"))
	if !strings.Contains(findings["slurm"], string(doctor.Problem)+": ") || !strings.Contains(findings["slurm"], "slurmctld") {
		t.Errorf("doctor says %q while the controller is down", findings["slurm"])
	}
	s.eventually("the job shows why it waits", func() bool { return strings.Contains(u.job("kept").StatusReason, "does not respond") })
	if j := u.job("kept"); j.Status != "QUEUED" || j.Attempts > 1 {
		t.Errorf("a job is %s in attempt %d while the controller is down", j.Status, j.Attempts)
	}
	c.Up(t)
	back := time.Now()
	u.completed("kept")
	t.Logf("the job was done %v after the controller was back", time.Since(back).Round(time.Second))
	s.eventually("/readyz reports that the cluster answers again", func() bool { return answers() == "ok" })
}

// readmeForClusters follows the administrators' documentation, with a different shared
// directory and account.
func readmeForClusters(t *testing.T, c *cluster.Cluster) {
	dir := t.TempDir()
	shared := filepath.Join(dir, "shared")
	here := strings.NewReplacer("/shared/molrun", shared, "-o molrun", fmt.Sprintf("-o %d", os.Geteuid()), "127.0.0.1:8080", "127.0.0.1:0").Replace
	must.OK(t, os.Symlink(molrun, filepath.Join(dir, "molrun")))
	config := here(readme(t, "file: cluster.toml"))
	must.OK(t, os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600))
	shell := exec.Command("sh", "-ec", here(readme(t, "run: cluster")+readme(t, "run: cluster-doctor")))
	shell.Dir = dir
	shell.Env = []string{"PATH=" + os.Getenv("PATH"), "SLURM_CONF=" + c.Conf, "MOLRUN_LISTEN=127.0.0.1:0"}
	if out, err := shell.CombinedOutput(); err != nil || !strings.Contains(string(out), "exchanged files with this machine") {
		t.Fatalf("%v\n%s", err, out)
	}
	s := startServer(t, serverOptions{
		config: config, env: []string{"SLURM_CONF=" + c.Conf}, algorithms: map[string]string{"shell.toml": shellFile},
	})
	ann, bob := s.user("lab", "ann@lab.example"), s.user("lab", "bob@lab.example")
	for _, tt := range []struct {
		u              user
		name, executor string
	}{{ann, "of-ann", "local"}, {bob, "of-bob", "slurm"}} {
		tt.u.submit(tt.name, "shell", script("true"))
		if j := tt.u.completed(tt.name); j.Executor != tt.executor {
			t.Errorf("%s ran on %s, want %s", tt.name, j.Executor, tt.executor)
		}
	}
}
