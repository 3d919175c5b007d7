package doctor

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/routing"
	"molrun/app/base/unit"
	"molrun/app/executor/local/gpu"
	"molrun/app/server/config"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
	"molrun/blobs"
	"molrun/storage"
	"molrun/storage/kv/boltfile"
)

// installed returns a healthy data directory without a running service.
func installed(t *testing.T) *installation {
	t.Helper()
	s := fixture.New(t, app.Options{})
	s.Close()
	must.OK(t, os.Chmod(s.Data, 0o700))
	c := config.Default()
	c.Data, c.Listen, c.Database.FileSystem = s.Data, "127.0.0.1:0", "any"
	return inspect(t.Context(), c)
}

// wantFinding verifies that a check returned exactly one finding, with this result and
// text.
func wantFinding(t *testing.T, what string, got []Finding, want Result, says string) {
	t.Helper()
	if len(got) != 1 || got[0].Result != want || !strings.Contains(got[0].Text, says) {
		t.Errorf("%s: %+v, want %s with %q", what, got, want, says)
	}
}

func TestExaminationHasEveryCheckInOrder(t *testing.T) {
	t.Parallel()
	in := installed(t)
	var names []string
	for _, f := range Examine(t.Context(), in.config) {
		if f.Text == "" || f.Result != OK && f.Result != Warning && f.Check != "free space" && f.Check != "algorithms" {
			t.Errorf("%+v", f)
		}
		if !slices.Contains(names, f.Check) {
			names = append(names, f.Check)
		}
	}
	want := []string{"configuration"}
	for _, c := range checks {
		want = append(want, c.name)
	}
	must.Equal(t, "checks", names, want)
}

func TestModesOfTheDataDirectory(t *testing.T) {
	t.Parallel()
	in := installed(t)
	for mode, want := range map[os.FileMode]Finding{
		0o700: {Result: OK, Text: "is private"},
		0o750: {Result: Warning, Text: "(mode 0750); run chmod 700 " + in.data},
		0o701: {Result: Warning, Text: "(mode 0701)"},
		0o720: {Result: Problem, Text: in.data + " is writable by others (mode 0720)"},
		0o702: {Result: Problem, Text: "run chmod 700 " + in.data},
	} {
		must.OK(t, os.Chmod(in.data, mode))
		wantFinding(t, mode.String(), checkData(t.Context(), in), want.Result, want.Text)
	}
	must.OK(t, os.Chmod(in.data, 0o700))
	must.OK(t, os.Chmod(in.database, 0o604))
	must.OK(t, os.Chmod(filepath.Join(in.data, "uploads"), 0o710))
	found := checkData(t.Context(), in)
	if len(found) != 2 || !strings.Contains(found[0].Text, "run chmod go= "+in.database) || !strings.Contains(found[1].Text, "uploads is accessible to others (mode 0710)") {
		t.Errorf("%+v", found)
	}
	if os.Geteuid() == 0 {
		must.OK(t, os.Lchown(in.database, 4711, -1))
		if found := checkData(t.Context(), in); len(found) != 2 || !strings.Contains(found[0].Text, "belongs to user 4711") {
			t.Errorf("%+v", found)
		}
		must.OK(t, os.Lchown(in.data, 4711, -1))
		wantFinding(t, "of another user", checkData(t.Context(), in), Problem, in.data+" belongs to user 4711")
	}
	in.data = filepath.Join(in.data, "nowhere")
	wantFinding(t, "not there, below one", checkData(t.Context(), in), Problem, "if you mean "+filepath.Dir(in.data)+", set it")
	in.data = filepath.Join(t.TempDir(), "nowhere")
	wantFinding(t, "not there", checkData(t.Context(), in), Warning, "molrun serve --init creates it")
	in.data = filepath.Join(in.database, "below")
	wantFinding(t, "below a file", checkData(t.Context(), in), Problem, "give the service's user access")
}

func TestSpaceIsGradedByTheReserve(t *testing.T) {
	t.Parallel()
	in := installed(t)
	disk, err := blobs.Space(in.data, 1)
	must.OK(t, err)
	for _, tt := range []struct {
		reserve int64
		want    Result
		says    string
	}{
		{disk.Free * 2, Problem, "so uploads are rejected"},
		{disk.Free * 3 / 4, Warning, "free some space soon"},
		{disk.Free / 4, OK, "uploads leave at least " + unit.Bytes(disk.Free/4).String()},
	} {
		in.config.Disk.Reserve = unit.Bytes(tt.reserve)
		wantFinding(t, fmt.Sprint(tt.reserve), checkSpace(t.Context(), in), tt.want, tt.says)
	}
	in.data = filepath.Join(in.data, "a", "b")
	must.Equal(t, fmt.Sprintf("the nearest directory above %s", in.data), in.existingDir(), filepath.Dir(filepath.Dir(in.data)))
}

func TestRecordsOfAStoppedService(t *testing.T) {
	t.Parallel()
	in := installed(t)
	wantFinding(t, "a sound database", checkDatabase(t.Context(), in), OK, "it can be opened: schema ")
	wantFinding(t, "no service", checkService(t.Context(), in), Warning, "start it with molrun serve")
	wantFinding(t, "a sound secret", checkSecret(t.Context(), in), OK, "private and valid")
	store, err := storage.Open(in.database, storage.Options{AnyFileSystem: true})
	must.OK(t, err)
	held := inspect(t.Context(), in.config)
	wantFinding(t, "a database that is held", checkDatabase(t.Context(), held), Problem, fmt.Sprintf("(process %d) has it open, but no service responds", os.Getpid()))
	must.OK(t, store.Close())

	must.OK(t, os.Remove(filepath.Join(in.data, "secret")))
	wantFinding(t, "no secret", checkSecret(t.Context(), in), Problem, "it is missing")
	must.OK(t, os.Remove(in.database))
	wantFinding(t, "a database that went missing", checkDatabase(t.Context(), in), Problem, "is missing")
	wantFinding(t, "a secret without records", checkSecret(t.Context(), in), Warning, "molrun serve creates it")
	must.OK(t, os.Remove(in.database+boltfile.MarkerSuffix))
	wantFinding(t, "no database yet", checkDatabase(t.Context(), in), Warning, "there is none yet")

	in.running, in.holder = true, boltfile.Process{PID: 4711, Name: "molrun"}
	wantFinding(t, "a running service", checkDatabase(t.Context(), in), OK, "in use by molrun (process 4711)")
	wantFinding(t, "whose process is unknown", checkService(t.Context(), in), OK, "it is running on the data directory")
	in.held = true
	wantFinding(t, "whose process is known", checkService(t.Context(), in), OK, "molrun (process 4711) is running on")
}

func TestClockIsComparedWithTheRecords(t *testing.T) {
	t.Parallel()
	in := installed(t)
	last, err := boltfile.ReadCommits(in.database)
	must.OK(t, err)
	firstYear := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		now  time.Time
		bad  bool
		says string
	}{
		{time.Date(2024, 12, 31, 23, 0, 0, 0, time.UTC), true, "set it, because links"},
		{time.Date(2101, 1, 1, 1, 0, 0, 0, time.UTC), true, "set it, because links"},
		{time.Date(2100, 12, 31, 1, 0, 0, 0, time.UTC), false, ""},
		{last.At.Add(-clockSlack - time.Second), true, "it was set back"},
		{last.At.Add(-clockSlack), false, ""},
		{last.At.Add(time.Hour), false, ""},
		{firstYear, false, ""},
	} {
		in.now = tt.now
		if tt.now.Equal(firstYear) {
			in.database += ".of-nobody"
		}
		got := checkClock(t.Context(), in)
		if len(got) != 1 || (got[0].Result == Problem) != tt.bad || !strings.Contains(got[0].Text, tt.says) {
			t.Errorf("at %s: %+v, want a problem: %t", tt.now, got, tt.bad)
		}
	}
}

func TestLimitOfOpenFilesIsThatOfTheService(t *testing.T) {
	t.Parallel()
	in := installed(t)
	in.running, in.held, in.holder = true, true, boltfile.Process{PID: os.Getpid()}
	var r syscall.Rlimit
	must.OK(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r))
	limit, whose, err := in.openFiles()
	if err != nil || limit != r.Max || whose != "the service" {
		t.Errorf("%d of %s, %v, want %d", limit, whose, err, r.Max)
	}
	in.holder.PID = 1 << 30
	wantFinding(t, "a process that is gone", checkLimits(t.Context(), in), Warning, "is unknown")
	in.running = false
	if limit, whose, err := in.openFiles(); err != nil || limit != r.Max || whose != "a service started here" {
		t.Errorf("%d of %s, %v", limit, whose, err)
	}
	for text, want := range map[string]uint64{"Max open files  1024  4096  files": 4096, "Max open files 1 2": 2, "Max open files 5": 0, "Max processes 1 2": 0, "": 0} {
		if got, err := hardLimit(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestGPUsOfTheMachine(t *testing.T) {
	t.Parallel()
	in := installed(t)
	in.config.Runner.GPUs = config.GPUList{}
	wantFinding(t, "none wanted", checkGPUs(t.Context(), in), OK, "jobs get none")
	if _, err := exec.LookPath("nvidia-smi"); err != nil { // otherwise the machine might have GPUs
		in.config.Runner.GPUs = config.GPUList{"auto"}
		if got := checkGPUs(t.Context(), in); len(got) != 1 || got[0].Text != "there are none" && got[0].Result != Warning {
			t.Errorf("without a driver: %+v", got)
		}
	}
	auto := config.GPUList{"auto"}
	wantFinding(t, "no driver", gpuFindings(gpu.State{Notes: []string{"NVIDIA-SMI has failed"}}, auto), Problem, "NVIDIA-SMI has failed")
	wantFinding(t, "two", gpuFindings(gpu.State{GPUs: []string{"GPU-a", "GPU-b"}}, auto), OK, "2: GPU-a, GPU-b")
	faulty := func(name string, fault app.GPUFault, text string) gpu.State {
		return gpu.State{GPUs: []string{"GPU-a"}, Faulty: []app.FaultyGPU{{Name: name, Fault: fault, Text: text}}}
	}
	for _, tt := range []struct {
		state  gpu.State
		wanted config.GPUList
		want   string
	}{
		{faulty("GPU-b", app.GPULost, "is lost"), auto, "GPU-b is lost, so jobs can't use it; fix it"},
		{faulty("7", app.GPULost, "is not listed by nvidia-smi"), config.GPUList{"0", "7"}, "7 is not listed by nvidia-smi, so jobs can't use it; name GPUs in runner.gpus"},
		{faulty("GPU-b", app.GPUUndivided, "is in MIG mode"), auto, "create instances"},
		{faulty("GPU-b", app.GPUMemoryError, "has errors"), auto, "reset it"},
	} {
		got := gpuFindings(tt.state, tt.wanted)
		if len(got) != 2 || got[0].Result != OK {
			t.Fatalf("%s: %+v, want the healthy finding and another", tt.want, got)
		}
		wantFinding(t, tt.want, got[1:], Problem, tt.want)
	}
}

func TestLinksHaveToLeadHere(t *testing.T) {
	t.Parallel()
	in := installed(t)
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	defer proxy.Close()
	for _, tt := range []struct {
		listen, public string
		want           Result
		says           string
	}{
		{"127.0.0.1:8080", "", OK, "the address that the client used"},
		{"nonsense", "", Problem, "use host:port"},
		{":8080", "http://localhost:8080", Warning, "this is fine if all users work on this machine"},
		{"127.0.0.1:8080", "https://" + proxy.Addr().String() + "/molrun", OK, "for users on this machine"},
		{"127.0.0.1:8080", "http://localhost:8080", OK, "links begin with"},
		{"127.0.0.1:8080", "http://localhost", OK, "links begin with"},
		{"127.0.0.1:0", "http://127.0.0.1:9999", OK, "links begin with"},
		{"127.0.0.1:8080", "http://[::1]:1", Problem, "make them match"},
		{"127.0.0.1:8080", "http://molrun.lab.example", Warning, "unencrypted"},
		{"127.0.0.1:8080", "https://molrun.lab.example", OK, "links begin with"},
		{"127.0.0.1:8080", "http://[", Problem, ""},
	} {
		in.config.Listen, in.config.PublicURL = tt.listen, tt.public
		wantFinding(t, tt.listen+" "+tt.public, checkPublicURL(t.Context(), in), tt.want, tt.says)
	}
	for host, want := range map[string]bool{"localhost": true, "127.0.0.5": true, "::1": true, "10.0.0.1": false, "example": false, "": false} {
		if isLoopback(host) != want {
			t.Errorf("%q is this machine: %t, want %t", host, !want, want)
		}
	}
}

func TestAddressIsTheServicesOrFree(t *testing.T) {
	t.Parallel()
	in := installed(t)
	wantFinding(t, "free", checkAddress(t.Context(), in), OK, "is free")
	in.running = true
	wantFinding(t, "free, and a service runs", checkAddress(t.Context(), in), Warning, "but not on 127.0.0.1:0")
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	in.config.Listen = s.Listener.Addr().String()
	wantFinding(t, "of another process", checkAddress(t.Context(), in), Problem, fmt.Sprintf("(process %d) already listens on", os.Getpid()))
	in.holder.PID = os.Getpid()
	wantFinding(t, "of the service", checkAddress(t.Context(), in), OK, "the service listens on")
	in.config.Listen = "127.0.0.1:no-such-port"
	wantFinding(t, "an unknown port", checkAddress(t.Context(), in), Problem, "use an address such as")

	in = installed(t)
	wantFinding(t, "of an unknown process", in.checkListener("127.0.0.1:1"), Problem, "another process already listens on")
	in.running = true
	wantFinding(t, "of an unknown process, and a service runs", in.checkListener("127.0.0.1:1"), OK, "most likely the service")
	if p, known := ownerOf("no inode"); known {
		t.Errorf("%+v has a socket that does not exist", p)
	}
	if _, known := listenerOn("nonsense"); known {
		t.Error("found a listener on an invalid address")
	}
}

func TestSocketsThatListenAreReadFromTheKernelsTable(t *testing.T) {
	t.Parallel()
	table := filepath.Join(t.TempDir(), "tcp")
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	must.OK(t, os.WriteFile(table, []byte(head+
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1 x\n"+
		"   1: 0100007F:1F90 0100007F:AAAA 01 00000000:00000000 00:00000000 00000000 0 0 4712 1 x\n"+
		"   2: 00000000:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4713 1 x\n"+
		"   3: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4714\n"+
		"   4: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0\n"), 0o600))
	if got, want := listeningSockets(table, 8080), []string{"4711", "4714"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := listeningSockets(table+"6", 8080); got != nil {
		t.Errorf("without a table: %q", got)
	}
	for _, port := range []int{10, 443} { // the socket table pads ports to four hex digits
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			if p, known := listenerOn(l.Addr().String()); !known || p.PID != os.Getpid() {
				t.Errorf("port %d: %+v, %t", port, p, known)
			}
			must.OK(t, l.Close())
		}
	}
}

func TestCertificateIsGradedByItsTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		from, left time.Duration
		want       Result
		says       string
	}{
		{-time.Hour, -time.Second, Problem, "expired on"},
		{-time.Hour, 0, Problem, "expired on"},
		{time.Second, 100 * 24 * time.Hour, Problem, "not valid before"},
		{0, 100 * 24 * time.Hour, OK, "is valid until"},
		{-time.Hour, expiresSoon - time.Second, Warning, "expires on"},
		{-time.Hour, expiresSoon, OK, "is valid until"},
	} {
		leaf := &x509.Certificate{NotBefore: now.Add(tt.from), NotAfter: now.Add(tt.left)}
		wantFinding(t, fmt.Sprint(tt.left), checkExpiry(now, "cert.pem", leaf), tt.want, tt.says)
	}
	if expiresSoon < 21*24*time.Hour || expiresSoon > 22*24*time.Hour {
		t.Errorf("a warning %s ahead", expiresSoon)
	}
	in := installed(t)
	wantFinding(t, "none", checkCertificate(t.Context(), in), OK, "without encryption")
	in.config.TLS.SelfSigned = true
	wantFinding(t, "not made yet", checkCertificate(t.Context(), in), Warning, "there is none yet")
	in.config.TLS.SelfSigned, in.config.TLS.Cert, in.config.TLS.Key = false, "/nowhere/cert", "/nowhere/key"
	wantFinding(t, "not there", checkCertificate(t.Context(), in), Problem, "/nowhere/key")
}

func TestSandboxIsJudged(t *testing.T) {
	t.Parallel()
	in := installed(t)
	wantFinding(t, "a sandbox", in.gradeSandbox(true, "Sound."), OK, "Sound.")
	wantFinding(t, "none", in.gradeSandbox(false, "None."), Warning, "None. Until then, jobs can read what the service can read")
	in.config.Runner.Sandbox = "off"
	wantFinding(t, "switched off", in.gradeSandbox(false, "Off."), Warning, "Off. Set runner.sandbox to \"auto\"")
	wantFinding(t, "switched off, tried", in.trySandbox(t.Context()), Warning, "Whether it gets a cgroup is known when the service starts.")
	in.running = true
	wantFinding(t, "a service that does not answer", checkSandbox(t.Context(), in), Warning, "the service does not report")
}

func TestAlgorithmsAreReadyOrNot(t *testing.T) {
	t.Parallel()
	in := installed(t)
	before := checkAlgorithms(t.Context(), in)
	dir := t.TempDir()
	in.config.Algorithms = dir
	const file = "format = 1\ntype = %q\nversion = \"1\"\ntitle = \"T\"\nexecutor = %q\ncommand = [%q]\n"
	must.OK(t, os.WriteFile(filepath.Join(dir, "a.toml"), []byte(fmt.Sprintf(file, "here", "local", "true")), 0o600))
	after := checkAlgorithms(t.Context(), in)
	var builtin int
	if _, err := fmt.Sscanf(before[0].Text, "%d are ready", &builtin); err != nil || builtin < 1 || before[0].Result != OK {
		t.Errorf("built in: %+v, %v", before, err)
	}
	wantFinding(t, "one more", after, OK, fmt.Sprintf("%d are ready", builtin+1))
	if wantsSlurm(dir) || wantsSlurm("/nowhere") {
		t.Error("an algorithm wants a cluster")
	}
	must.OK(t, os.WriteFile(filepath.Join(dir, "b.toml"), []byte(fmt.Sprintf(file, "there", "slurm", "true")), 0o600))
	if !wantsSlurm(dir) {
		t.Error("no algorithm wants a cluster")
	}
	wantFinding(t, "no cluster", checkSlurm(t.Context(), in), Problem, "require a cluster, but none is configured")
	must.OK(t, errors.Join(os.Remove(filepath.Join(dir, "b.toml")), os.WriteFile(filepath.Join(dir, "c.toml"), []byte(fmt.Sprintf(file, "lacks", "local", "no-such-program")), 0o600)))
	wantFinding(t, "no cluster wanted", checkSlurm(t.Context(), in), OK, "not configured")
	wantFinding(t, "a missing program", checkAlgorithms(t.Context(), in), Problem, "lacks 1 is not ready: ")
	in.config.Algorithms = "/nowhere/algorithms"
	wantFinding(t, "no folder", checkAlgorithms(t.Context(), in), Problem, "read the algorithms folder")
}

func TestPlacementsOfTheClusterAreThoseOfItsRules(t *testing.T) {
	t.Parallel()
	table := routing.Table{Placement: placement.Placement{Partition: "all"}, Rules: []routing.Rule{
		{Executor: placement.Local, Placement: placement.Placement{Partition: "none"}},
		{Executor: placement.Slurm, Placement: placement.Placement{Partition: "large"}},
	}}
	var names []string
	for _, p := range placements(table) {
		names = append(names, p.Partition)
	}
	must.Equal(t, "partitions", []string{"all", "large"}, names)
}

func TestCPUsOfJobs(t *testing.T) {
	in := &installation{}
	in.config.Runner.CPUs, in.config.Runner.PinCPUs = 1, true
	wantFinding(t, "one CPU", checkCPUs(t.Context(), in), OK, "each is pinned to its own")
	in.config.Runner.CPUs = 100_000
	wantFinding(t, "too many", checkCPUs(t.Context(), in), Warning, "are not pinned: runner.cpus is 100000")
	in.config.Runner.PinCPUs = false
	wantFinding(t, "switched off", checkCPUs(t.Context(), in), OK, "runner.pin_cpus is false")
}
