package e2e

import (
	"encoding/csv"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"molrun/app/base/unit"
	"molrun/app/test/must"
	"molrun/app/test/whole"
)

// proxied is a proxy that can break its connections and counts the bytes it forwards.
type proxied struct {
	address      string
	sent, broken atomic.Int64 // bytes from clients; broken connections

	mu   sync.Mutex
	open map[net.Conn]bool
}

// breakingProxy forwards connections to address until they are cut.
func breakingProxy(t *testing.T, address string) *proxied {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	t.Cleanup(func() { l.Close() })
	p := &proxied{address: l.Addr().String(), open: map[net.Conn]bool{}}
	go func() { // ends when the listener is closed
		for {
			ours, err := l.Accept()
			if err != nil {
				return
			}
			theirs, err := net.Dial("tcp", address)
			if err != nil {
				ours.Close()
				continue
			}
			p.mu.Lock()
			p.open[ours] = true
			p.mu.Unlock()
			go p.forward(ours, theirs)
			go func() {
				_, _ = io.Copy(ours, theirs) // ends when either side closes
				ours.Close()
				theirs.Close()
			}()
		}
	}()
	return p
}

func (p *proxied) forward(ours, theirs net.Conn) {
	_, _ = io.Copy(counted{theirs, &p.sent}, ours) // ends when either side closes
	p.mu.Lock()
	delete(p.open, ours)
	p.mu.Unlock()
	ours.Close()
	theirs.Close()
}

// cut breaks all current connections.
func (p *proxied) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken.Add(int64(len(p.open)))
	for c := range p.open {
		c.Close()
	}
}

// counted is a writer that counts the bytes written.
type counted struct {
	io.Writer
	n *atomic.Int64
}

// Write implements io.Writer.
func (c counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// measureFile is an algorithm whose metrics show which file it has read.
const measureFile = `
format = 1
type = "measure"
version = "1"
title = "Say which file it is"
max_runtime = "10m"
command = ["sh", "-c", 'printf "{{\"bytes\": %s, \"number\": %s}}" "$(wc -c <"$0")" "$(head -c 8 "$0")" >out/metrics.json', "{files.data}"]

[[parameters]]
name = "data"
type = "string"
file = [".txt"]
required = true

[resources]
memory = "16MiB"
`

// A batch of local files sends no file twice, even if connections break and the command
// is killed, and its table matches the content of each file. With MOLRUN_BATCH=2GiB the
// batch has 1,000 files.
func TestBatchOfLocalFilesSendsNoneTwice(t *testing.T) {
	t.Parallel()
	count, size := 24, int64(1<<20)
	if text := os.Getenv("MOLRUN_BATCH"); text != "" {
		var all unit.Bytes
		must.OK(t, all.UnmarshalText([]byte(text)))
		count, size = 1000, int64(all)/1000
	}
	s := startServer(t, serverOptions{algorithms: map[string]string{"measure.toml": measureFile}})
	p := s.user("lab", "ann@lab.example").person()
	must.OK(t, os.Mkdir(filepath.Join(p.dir, "many"), 0o700))
	for i := range count {
		text := strings.Repeat(fmt.Sprintf("%08d", 10_000_000+i), int(size+int64(i))/8)
		must.OK(t, os.WriteFile(filepath.Join(p.dir, "many", fmt.Sprintf("f%04d.txt", i)), []byte(text), 0o600))
	}
	proxy := breakingProxy(t, strings.TrimPrefix(s.base, "http://"))
	p.env = []string{"MOLRUN_SERVER=" + "http://" + proxy.address, "MOLRUN_KEY=" + strings.TrimSpace(must.Read(t, filepath.Join(p.dir, "key.txt")))}
	all := int64(count) * size
	sends := func(share float64) func() bool {
		return func() bool { return float64(proxy.sent.Load()) > share*float64(all) }
	}

	batch := []string{"batch", "measure", "-i", "many", "-n", "big", "--wait"}
	killed := p.command(batch...)
	var said whole.Log
	killed.Stdout, killed.Stderr = &said, &said
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the command that was killed: %s", said.String())
		}
	})
	must.OK(t, killed.Start())
	s.eventually("a quarter is sent", sends(.25))
	proxy.cut()
	s.eventually("half is sent", sends(.5))
	must.OK(t, killed.Process.Kill())
	_ = killed.Wait() // returns an error because the command was killed
	if shown, code := p.onTerminal(batch...); code != 0 || !strings.Contains(shown, "the service had") || !strings.Contains(shown, "%") {
		t.Fatalf("exit code %d: %s", code, shown)
	}
	// Only files in transfer when the command was killed can be sent again: at most four.
	if more := proxy.sent.Load() - all; more > 5*size+int64(count)*4096 {
		t.Errorf("%d bytes were sent beyond those of the files, which have %d each", more, size)
	}
	if proxy.broken.Load() == 0 {
		t.Error("no connection broke: the test shows nothing")
	}
	p.ok("files", "put", "many", "--if-changed")
	before := proxy.sent.Load()
	p.ok("files", "put", "many", "--if-changed")
	if again := proxy.sent.Load() - before; again > size/2 {
		t.Errorf("%d bytes were sent for files that the service has", again)
	}
	rows, err := csv.NewReader(strings.NewReader(p.ok("table", "big", "--csv", "--limit", "0"))).ReadAll()
	must.OK(t, err)
	if len(rows) != count+1 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, row := range rows[1:] {
		var n int
		_, err := fmt.Sscanf(row[column["metric:number"]], "1%d", &n)
		must.OK(t, err)
		if want := fmt.Sprint((size + int64(n)) / 8 * 8); row[column["metric:bytes"]] != want || !strings.Contains(row[column["jobName"]], fmt.Sprintf("f%04d", n)) {
			t.Errorf("row %q: want %s bytes of f%04d", row, want, n)
		}
	}
}
