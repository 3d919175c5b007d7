package cli

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"molrun/app/doctor"
	"molrun/app/executor/slurm/cluster"
)

// slurmDaemons is the Slurm cluster of these tests: two nodes of four CPUs and two
// GPUs each.
var slurmDaemons cluster.Shared

// TestJobsOnTheCluster runs one test after the other, since each has the cluster
// for itself; other tests run meanwhile.
func TestJobsOnTheCluster(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *cluster.Cluster){
		"one line of configuration sends jobs there":    oneLineSendsJobsThere,
		"devices are those that Slurm grants":           devicesAreSlurms,
		"nothing of the service reaches a job":          nothingReachesJobs,
		"a job tells why it waits in Slurm":             waitingJobTellsWhy,
		"rules send jobs here and there":                rulesSendJobs,
		"jobs go on while the service is down":          jobsGoOnWithoutService,
		"jobs are cancelled, waiting and running":       jobsAreCancelled,
		"the rows of a batch take few calls of sbatch":  batchIsFewSubmissions,
		"a shared folder is mounted later":              sharedFolderComesLater,
		"a job that no node holds is refused":           tooLargeJobIsRefused,
		"the README's part for administrators is right": readmeOfTheCluster,
		"doctor and readyz tell how the cluster is":     doctorAndReadyz,
	} {
		t.Run(name, func(t *testing.T) { test(t, slurmDaemons.Start(t)) })
	}
}

// site is a server with a cluster.
type site struct {
	*instance
	cluster *cluster.Cluster
	shared  string
	prefix  string
}

// clusterServer starts a server whose configuration begins with the section
// [slurm], settings go on there. Polling is quick, since tests wait for it.
func clusterServer(t *testing.T, c *cluster.Cluster, settings string, more serverOptions) *site {
	t.Helper()
	s := &site{cluster: c, shared: t.TempDir(), prefix: "t" + strings.ToLower(rand.Text()[:12])}
	must(t, os.Chmod(s.shared, 0o700))
	config := fmt.Sprintf("[slurm]\nshared_dir = %q\nconf = %q\nprefix = %q\npoll = \"300ms\"\n%s\n", s.shared, c.Conf, s.prefix, settings)
	more.config = config + more.config
	if more.algorithms == nil {
		more.algorithms = map[string]string{"shell.toml": shellFile}
	}
	t.Cleanup(func() { s.cancelAll(t) }) // after the server's end
	s.instance = startServer(t, more)
	return s
}

// everywhere is the configuration of a site whose jobs all run on the cluster.
const everywhere = "[runner]\nexecutor = \"slurm\"\n"

// inSlurm gives the numbers of the site's jobs there that have not ended.
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
	s.emptied(t)
}

// emptied waits until none of the site's jobs is left in Slurm, not even
// ending.
func (s *site) emptied(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(patience); len(s.inSlurm(t)) > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("jobs stay in Slurm: %v", s.inSlurm(t))
		}
	}
}

func oneLineSendsJobsThere(t *testing.T, c *cluster.Cluster) {
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
	if diff := cmp.Diff(results["here"], results["there"]); diff != "" {
		t.Errorf("the results differ, -here +there:\n%s", diff)
	}
	if len(results["there"]) < 5 {
		t.Errorf("the result has only %v", sortedNames(results["there"]))
	}
}

func devicesAreSlurms(t *testing.T, c *cluster.Cluster) {
	u := clusterServer(t, c, "", serverOptions{
		config: "[runner]\nexecutor = \"slurm\"\ngpus = [\"GPU-ours\", \"GPU-too\"]\n",
		env:    []string{"CUDA_VISIBLE_DEVICES=GPU-ours"},
	}).user("lab", "ann@lab.example")
	const tell = `echo "${CUDA_VISIBLE_DEVICES-none}" >out/devices`
	for gpus, want := range map[int][]string{0: {""}, 1: {"0", "1"}, 2: {"0,1"}} {
		name := fmt.Sprintf("with-%d", gpus)
		u.submit(name, "shell", script(tell, fmt.Sprintf(`,"gpus":%d`, gpus)))
		u.completed(name)
		if got := strings.TrimSpace(string(u.result(name, "devices"))); !slices.Contains(want, got) {
			t.Errorf("a job of %d GPUs sees %q, want one of %q", gpus, got, want)
		}
	}
}

// nothingReachesJobs has a job look at its own environment and at those of all
// processes above it. What asks Slurm's commands to pass the environment on is
// in the service's, too.
func nothingReachesJobs(t *testing.T, c *cluster.Cluster) {
	const canary = "CANARY-of-the-service"
	s := clusterServer(t, c, "", serverOptions{
		config: "[runner]\nexecutor = \"slurm\"\nsandbox = \"off\"\n",
		env: []string{
			"LAB_SECRET=" + canary, "SBATCH_EXPORT=ALL", "SLURM_EXPORT_ENV=ALL", "SBATCH_COMMENT=" + canary,
			"SBATCH_PARTITION=nowhere", "SLURM_TIME_FORMAT=standard", "SQUEUE_FORMAT=%i", "SACCT_FORMAT=user",
		},
	})
	u := s.user("lab", "ann@lab.example")
	u.submit("look", "shell", script(`env >out/seen
p=$$
while [ "$p" -gt 1 ]; do
	tr '\0' '\n' <"/proc/$p/environ" >>out/seen
	echo "process $p" >>out/seen
	p=$(sed 's/.*) //' "/proc/$p/stat" | cut -d' ' -f2)
done`))
	u.completed("look")
	seen := string(u.result("look", "seen"))
	if strings.Count(seen, "process ") < 3 || !strings.Contains(seen, "SLURM_CONF=") {
		t.Errorf("the job did not look up to Slurm's own process: %s", seen)
	}
	u.submit("stay", "shell", script("sleep 600"))
	u.running("stay")
	texts := map[string]string{
		"a job's processes": seen,
		"Slurm":             c.Run(t, "scontrol", "--details", "show", "job") + c.Run(t, "scontrol", "write", "batch_script", s.inSlurm(t)[0], "-"),
		"the shared folder": everyFile(t, s.shared),
	}
	secret, err := os.ReadFile(filepath.Join(s.data(), "secret"))
	must(t, err)
	for where, text := range texts {
		for _, private := range []string{canary, u.key, s.data(), string(secret)} {
			if strings.Contains(text, private) {
				t.Errorf("%s has %q of the service", where, private)
			}
		}
	}
}

// everyFile joins the texts of all files below a folder but the program's copy.
func everyFile(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), "molrun-") {
			return err
		}
		text, err := os.ReadFile(path)
		all.WriteString(path + "\n")
		all.Write(text)
		return err
	}))
	return all.String()
}

func waitingJobTellsWhy(t *testing.T, c *cluster.Cluster) {
	s := clusterServer(t, c, "", serverOptions{config: "[runner]\nexecutor = \"slurm\"\nsandbox = \"off\"\n"})
	u, gate := s.user("lab", "ann@lab.example"), s.gate("open")
	for _, name := range []string{"first", "second"} {
		u.submit(name, "shell", script(gate.wait(), `,"cpus":4`))
		u.running(name)
	}
	u.submit("third", "shell", script("true", `,"cpus":4`))
	waits := u.until("third", "waiting for resources", func(r record) bool { return strings.Contains(r.StatusReason, "Resources") })
	if waits.Status != "QUEUED" {
		t.Errorf("a job that waits in Slurm is %s", waits.Status)
	}
	gate.open(t)
	for _, name := range []string{"first", "second", "third"} {
		if j := u.completed(name); j.StatusReason != "" {
			t.Errorf("%s still tells %q", name, j.StatusReason)
		}
	}
}

func rulesSendJobs(t *testing.T, c *cluster.Cluster) {
	s := clusterServer(t, c, "options = \"--nice=3\"\n", serverOptions{config: openSandbox + `
[[runner.rules]]
user = "bob@lab.example"
executor = "local"
[[runner.rules]]
min_cpus = 2
executor = "slurm"
partition = "main"
options = ["--nice=7", "--exclude=c1"]
`})
	ann, bob := s.user("lab", "ann@lab.example"), s.user("lab", "bob@lab.example")
	const tell = `scontrol show job "$SLURM_JOB_ID" >out/job 2>&1; echo "node ${SLURMD_NODENAME-none}" >>out/job`
	for _, tt := range []struct {
		u              user
		name, more     string
		executor, says string
	}{
		{ann, "small", "", "local", "node none"},
		{ann, "large", `,"cpus":2`, "slurm", "node none"}, // its own environment has nothing of Slurm's
		{bob, "here", `,"cpus":2`, "local", "node none"},
	} {
		tt.u.submit(tt.name, "shell", script(tell, tt.more))
		if j := tt.u.completed(tt.name); j.Executor != tt.executor {
			t.Errorf("%s ran on %s, want %s", tt.name, j.Executor, tt.executor)
		}
		if got := string(tt.u.result(tt.name, "job")); !strings.Contains(got, tt.says) {
			t.Errorf("%s sees %s", tt.name, got)
		}
	}
	for line := range strings.Lines(c.Run(t, "squeue", "--noheader", "--states=all", "--format=%j|%P|%N|%C|%y")) {
		if strings.HasPrefix(line, s.prefix) && !strings.HasSuffix(strings.TrimSpace(line), "|main|c2|2|7") {
			t.Errorf("the job in Slurm is %s, want partition main, node c2, 2 CPUs, nice 7", line)
		}
	}
}

// jobsGoOnWithoutService kills the service while one job runs and another waits
// in Slurm; the first ends before the service is back.
func jobsGoOnWithoutService(t *testing.T, c *cluster.Cluster) {
	s := clusterServer(t, c, "", serverOptions{config: "[runner]\nexecutor = \"slurm\"\nsandbox = \"off\"\n"})
	u, gate := s.user("lab", "ann@lab.example"), s.gate("open")
	ran := filepath.Join(s.dir, "ran")
	work := fmt.Sprintf("echo once >>%s.$0; %s; echo done >out/done", ran, gate.wait())
	for _, name := range []string{"a", "b"} {
		u.submit(name, "shell", script(strings.ReplaceAll(work, "$0", name), `,"cpus":4`))
		u.running(name)
	}
	u.submit("waits", "shell", script(strings.ReplaceAll(work, "$0", "waits"), `,"cpus":4`))
	u.until("waits", "in Slurm", func(r record) bool { return strings.Contains(r.StatusReason, "Resources") })
	s.kill()
	gate.open(t)
	s.emptied(t)
	s.start()
	for _, name := range []string{"a", "b", "waits"} {
		j := u.completed(name)
		times, err := os.ReadFile(ran + "." + name)
		if err != nil || string(times) != "once\n" || j.Attempts != 1 {
			t.Errorf("%s took %d attempts and ran: %s, %v", name, j.Attempts, times, err)
		}
		if got := string(u.result(name, "done")); got != "done\n" {
			t.Errorf("result of %s: %q", name, got)
		}
	}
}

func jobsAreCancelled(t *testing.T, c *cluster.Cluster) {
	s := clusterServer(t, c, "", serverOptions{config: everywhere})
	u := s.user("lab", "ann@lab.example")
	for _, name := range []string{"runs", "too"} {
		u.submit(name, "shell", script("echo begun; sleep 600", `,"cpus":4`))
		u.running(name)
	}
	u.submit("waits", "shell", script("true", `,"cpus":4`))
	u.until("waits", "in Slurm", func(r record) bool { return strings.Contains(r.StatusReason, "Resources") })
	for _, name := range []string{"waits", "runs", "too"} {
		u.do("POST", "/jobs/"+name+"/cancel", nil).want(200)
	}
	for _, name := range []string{"waits", "runs", "too"} {
		if j := u.finished(name); j.Status != "FAILED" || j.Failure.Code != "STOPPED" || !strings.Contains(j.Failure.Message, "ann@lab.example") {
			t.Errorf("%s: %s %+v", name, j.Status, j.Failure)
		}
	}
	s.emptied(t)
}

// batchIsFewSubmissions runs as many rows as MOLRUN_CLUSTER_ROWS says; `make
// cluster` takes a thousand.
func batchIsFewSubmissions(t *testing.T, c *cluster.Cluster) {
	count := 50
	if text := os.Getenv("MOLRUN_CLUSTER_ROWS"); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		must(t, err)
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
		if got := string(u.result(fmt.Sprintf("many-%d", i+1), "row")); got != fmt.Sprintf("%d\n", i) {
			t.Errorf("row %d gave %q", i, got)
		}
	}
	var listed page
	u.do("GET", "/jobs?"+url.Values{"batch": {"many"}, "limit": {"100"}}.Encode(), nil).want(200).into(&listed)
	for _, j := range listed.Jobs {
		if j.Attempts != 1 || j.Executor != "slurm" {
			t.Errorf("%s took %d attempts on %s", j.JobName, j.Attempts, j.Executor)
		}
	}
}

// sharedFolderComesLater starts without the folder, as a machine does whose
// network is slow.
func sharedFolderComesLater(t *testing.T, c *cluster.Cluster) {
	s := clusterServer(t, c, "", serverOptions{config: everywhere})
	s.stop()
	must(t, os.RemoveAll(s.shared))
	s.start()
	u := s.user("lab", "ann@lab.example")
	u.submit("early", "shell", script("true"))
	s.eventually("the service tells that it waits for the folder", func() bool {
		return strings.Contains(s.log.String(), "the folder shared with the cluster can't be used") && strings.Contains(s.log.String(), "will try again")
	})
	if j := u.job("early"); j.Status != "QUEUED" {
		t.Errorf("a job without a folder is %s: %+v", j.Status, j.Failure)
	}
	must(t, os.Mkdir(s.shared, 0o700))
	u.completed("early")
}

func tooLargeJobIsRefused(t *testing.T, c *cluster.Cluster) {
	s := clusterServer(t, c, "partition = \"main\"\n", serverOptions{config: everywhere})
	u := s.user("lab", "ann@lab.example")
	big := jobBody("big", script("true", `,"cpus":5,"gpus":3`))
	s.eventually("the nodes of the cluster are known", func() bool {
		var found struct{ Valid bool }
		u.do("POST", "/validate-job", big).want(200).into(&found)
		return !found.Valid
	})
	faults := u.do("POST", "/submit-job", big).messages()
	want := map[string]string{
		"body.settings.cpus": "the job would need more than any node of the partition main has: 5 CPUs of 4; ask for less",
		"body.settings.gpus": "the job would need more than any node of the partition main has: 3 GPUs of 2; ask for less",
	}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	u.do("POST", "/submit-job", jobBody("fits", script("true", `,"cpus":4,"gpus":2`))).want(200)
	u.completed("fits")
}

func doctorAndReadyz(t *testing.T, c *cluster.Cluster) {
	s := clusterServer(t, c, "", serverOptions{config: everywhere})
	said, _ := s.diagnosis("--listen", strings.TrimPrefix(s.base, "http://"))
	if strings.Contains(said["slurm"], string(doctor.Problem)+": ") || !strings.Contains(said["slurm"], "read what was written here") {
		t.Errorf("doctor says %q", said["slurm"])
	}
	answers := func() string {
		var ready struct{ Checks map[string]any }
		user{instance: s.instance}.do("GET", "/readyz", nil).want(200).into(&ready)
		text, _ := ready.Checks["slurm"].(string)
		return text
	}
	s.eventually("/readyz tells that the cluster answers", func() bool { return answers() == "ok" })
	t.Cleanup(func() { c.Up(t) })
	c.Kill(t, cluster.Controller)
	u := s.user("lab", "ann@lab.example")
	u.submit("kept", "shell", script("true"))
	s.eventually("/readyz tells that the cluster does not answer", func() bool { return strings.HasPrefix(answers(), "no answer since ") })
	said, _ = s.diagnosis("--listen", strings.TrimPrefix(s.base, "http://"))
	if !strings.Contains(said["slurm"], string(doctor.Problem)+": ") || !strings.Contains(said["slurm"], "slurmctld") {
		t.Errorf("doctor says %q of a controller that is down", said["slurm"])
	}
	if j := u.job("kept"); j.Status != "QUEUED" || j.Attempts > 1 {
		t.Errorf("a job is %s, in attempt %d, while the controller is down", j.Status, j.Attempts)
	}
	c.Up(t)
	s.eventually("/readyz tells that the cluster answers again", func() bool { return answers() == "ok" })
}

// readmeOfTheCluster does what the README tells an administrator to. Only the
// shared folder and the account are others.
func readmeOfTheCluster(t *testing.T, c *cluster.Cluster) {
	dir := t.TempDir()
	shared := filepath.Join(dir, "shared")
	here := strings.NewReplacer("/shared/molrun", shared, "-o molrun", fmt.Sprintf("-o %d", os.Geteuid()), "127.0.0.1:8080", "127.0.0.1:0").Replace
	must(t, os.Symlink(os.Args[0], filepath.Join(dir, "molrun")))
	config := here(readme(t, "file: cluster.toml"))
	must(t, os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600))
	shell := exec.Command("sh", "-ec", here(readme(t, "run: cluster")+readme(t, "run: cluster-doctor")))
	shell.Dir = dir
	shell.Env = []string{"PATH=" + os.Getenv("PATH"), "SLURM_CONF=" + c.Conf, "MOLRUN_LISTEN=127.0.0.1:0"}
	if out, err := shell.CombinedOutput(); err != nil || !strings.Contains(string(out), "read what was written here") {
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
