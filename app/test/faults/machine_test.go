package faults

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/must"
	"molrun/app/test/whole"
)

// guestBoot is the script that the virtual machine runs after it has mounted its disk.
const guestBoot = `
cd /disk
export MOLRUN_CONFIG=/disk/config.toml
if [ -e data/jobs.db ]; then
	./molrun check --deep
	echo "check ends with $?."
else
	./molrun serve --init --listen 127.0.0.1:0 >/dev/null 2>&1 &
	until ./molrun key create --organization lab --email ann@lab.example --role admin 2>/dev/null; do sleep 0.2; done
	kill $!
	wait $!
fi
./molrun serve &
`

const guestConfig = `
data = "/disk/data"
algorithms = "/disk/algorithms"
listen = "0.0.0.0:8080"
[runner]
cpus = 4
memory = "512MiB"
grace = "1s"
[log]
format = "json"
`

// guest is a virtual machine that runs molrun. server has the address and API key for the
// tests' clients.
type guest struct {
	t       *testing.T
	server  *server
	disk    *disk
	port    int
	clock   string // time at the next boot, in UTC; "" means the current time
	process *exec.Cmd
	console io.WriteCloser
	log     *whole.Log
	parts   sync.WaitGroup // goroutines started by boot
}

// newGuest returns a machine that is powered off and has an empty data directory.
func newGuest(t *testing.T) *guest {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"algorithms", "diary"} {
		must.OK(t, os.Mkdir(filepath.Join(root, dir), 0o700))
	}
	for name, text := range map[string]string{
		"boot": guestBoot, "config.toml": guestConfig, "algorithms/diary.toml": string(shortDiary.file("/disk/diary")),
	} {
		must.OK(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	molrun, err := os.ReadFile(*program)
	must.OK(t, err)
	must.OK(t, os.WriteFile(filepath.Join(root, "molrun"), molrun, 0o700))
	image := filepath.Join(t.TempDir(), "disk")
	must.OK(t, os.WriteFile(image, nil, 0o600))
	must.OK(t, os.Truncate(image, 2<<30))
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", "-d", root, image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v\n%s", err, out)
	}
	g := &guest{t: t, disk: openDisk(t, image), port: freePort(t), log: &whole.Log{}}
	g.server = &server{t: t, remote: true, log: g.log, base: fmt.Sprintf("http://127.0.0.1:%d", g.port)}
	t.Cleanup(func() {
		g.off()
		if t.Failed() {
			t.Logf("console of the last boot:\n%s", g.log.Tail())
		}
	})
	return g
}

func freePort(t *testing.T) int {
	t.Helper()
	address, err := whole.FreeAddress()
	must.OK(t, err)
	_, text, err := net.SplitHostPort(address)
	must.OK(t, err)
	port, err := strconv.Atoi(text)
	must.OK(t, err)
	return port
}

// boot powers the machine on and waits until molrun responds.
func (g *guest) boot() {
	g.t.Helper()
	nbd, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(g.t, err)
	defer nbd.Close()
	clock := "utc"
	if g.clock != "" {
		clock = g.clock
	}
	g.process = exec.Command("qemu-system-x86_64",
		"-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "1024", "-display", "none", "-no-reboot",
		"-kernel", filepath.Join(*machine, "kernel"), "-initrd", filepath.Join(*machine, "initrd"),
		"-append", "console=ttyS0 quiet panic=-1 no_timer_check", // the timer check fails on a busy host
		"-drive", fmt.Sprintf("file=nbd:%s,format=raw,if=virtio,cache=none", nbd.Addr()),
		"-netdev", fmt.Sprintf("user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:%d-10.0.2.15:8080", g.port),
		"-device", "virtio-net-pci,netdev=net,romfile=", "-rtc", "base="+clock,
		"-serial", "stdio", "-monitor", "none")
	g.console, err = g.process.StdinPipe()
	must.OK(g.t, err)
	output, err := g.process.StdoutPipe()
	must.OK(g.t, err)
	g.process.Stderr = os.Stderr
	must.OK(g.t, g.process.Start())
	g.log.Clear()
	g.parts.Go(func() {
		conn, err := nbd.Accept()
		if err == nil {
			err = g.disk.serve(conn)
		}
		if err != nil {
			g.log.AddLine("disk: " + err.Error())
		}
	})
	g.read(output)
}

// read starts reading the console and waits until molrun has started.
func (g *guest) read(output io.Reader) {
	g.t.Helper()
	started, ended := make(chan struct{}), make(chan struct{})
	key := ""
	g.parts.Go(func() {
		defer close(ended)
		lines := bufio.NewScanner(output)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			line := strings.TrimRight(lines.Text(), "\r")
			switch {
			case strings.HasPrefix(line, "molrun_"):
				key = line
			case strings.Contains(line, `"message":"started"`):
				close(started)
			case strings.HasSuffix(line, `request"}`):
				continue
			}
			g.log.AddLine(line)
		}
	})
	select {
	case <-started:
	case <-ended:
		g.t.Fatalf("the machine stopped while booting:\n%s", g.log.Tail())
	case <-time.After(5 * patience): // long, because the CPU is emulated and the host might be busy
		g.t.Fatalf("the machine did not start:\n%s", g.log.Tail())
	}
	g.server.exited = ended
	if g.server.key == "" {
		g.server.key = key
		return
	}
	if console := g.log.String(); !strings.Contains(console, "check ends with 0.") {
		g.t.Errorf("molrun check finds problems:\n%s", g.log.Tail())
	}
}

// typeCommand runs a command on the console.
func (g *guest) typeCommand(command string) {
	g.t.Helper()
	_, err := io.WriteString(g.console, command+"\n")
	must.OK(g.t, err)
}

// off powers the machine off.
func (g *guest) off() {
	if g.process == nil {
		return
	}
	_ = g.process.Process.Kill() // the machine might already be off
	g.parts.Wait()
	_ = g.process.Wait() // returns an error because of the kill
	g.process = nil
}

// cut cuts the power at a flush, so that some unflushed sectors are lost. The machine
// runs for a moment longer with a disk that no longer responds, so everything that it
// acknowledges must already be on disk.
func (g *guest) cut(l *ledger, name string, r *rand.Rand) (cached int) {
	g.t.Helper()
	c, moment := g.server.client(), time.Duration(r.IntN(4000))*time.Millisecond
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	late := l.submitLate(ctx, name, c)
	time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond) // until they are about to be committed
	powerCut := g.disk.cutAtFlush(r.IntN(2) == 0)
	select {
	case <-powerCut:
		l.askAll(ctx, moment, c)
	case <-g.server.exited:
	case <-ctx.Done():
		g.t.Errorf("the disk got no flush request:\n%s", g.log.Tail())
	}
	g.off()
	cancel()
	late.Wait()
	cached, err := g.disk.cut(r)
	must.OK(g.t, err)
	return cached
}

// submitLate submits some jobs shortly before the power is cut. Most get no response.
func (l *ledger) submitLate(ctx context.Context, name string, c *client.Client) *sync.WaitGroup {
	w := &loadClient{load: load{client: c, ledger: l}, ctx: ctx}
	var all sync.WaitGroup
	for n := range 8 {
		s := diaryJob(fmt.Sprintf("%s-late-%d", name, n), 0, 0)
		l.note(func() { l.jobs[s.Name] = &jobFact{submission: s} })
		all.Go(func() { _ = w.send(s) })
	}
	return &all
}

// askAll repeats every unacknowledged submission, and requests every job that is not
// known to be finished. It takes no longer than moment.
func (l *ledger) askAll(ctx context.Context, moment time.Duration, c *client.Client) {
	ctx, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	w := &loadClient{load: load{client: c, ledger: l}, ctx: ctx}
	var all sync.WaitGroup
	l.note(func() {
		for _, fact := range l.jobs {
			switch fact := *fact; {
			case fact.deleting, fact.isRow, fact.rows != nil:
			case fact.id == "":
				all.Go(func() { _ = w.send(fact.submission) })
			case fact.final == "":
				all.Go(func() { _ = w.compareJob(fact) })
			}
		}
	})
	<-ctx.Done()
	all.Wait()
}
