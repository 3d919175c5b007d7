package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const mebibyte = 1 << 20

// openFiles makes what is moved, and starts the peer.
func (b *testbed) openFiles(ctx context.Context) (err error) {
	if err := b.makePayload(); err != nil {
		return err
	}
	if b.peer, err = startNginx(ctx, filepath.Join(b.dir, "nginx")); err != nil {
		return err
	}
	if b.peer != nil {
		if err := copyFile(filepath.Join(b.peer.dir, "files", "payload"), b.payload); err != nil {
			return err
		}
	}
	if b.bare, err = startBare(ctx, filepath.Dir(b.payload)); err != nil {
		return err
	}
	grant, err := b.put("payload.bin")
	if err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	b.upload = grant.download
	return b.jobs.ask(b.jobs.post("/upload/"+grant.id+"/complete", fmt.Appendf(nil, `{"size":%d}`, int64(b.Size))), nil)
}

// makePayload makes a file of random bytes, in memory where there is room, so
// that clients cost little.
func (b *testbed) makePayload() error {
	dir, err := os.MkdirTemp("/dev/shm", "molrun-bench-")
	if err != nil {
		if dir, err = os.MkdirTemp(b.dir, "payload-"); err != nil {
			return err
		}
	}
	b.payload = filepath.Join(dir, "payload")
	f, err := os.Create(b.payload)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{}), int64(b.Size))
	return errors.Join(err, f.Close())
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// grant is an upload with its links.
type grant struct {
	id, upload, download string
	took                 time.Duration // by the PUT
}

// put uploads the payload under a name.
func (b *testbed) put(name string) (g grant, err error) {
	var made struct{ FileID, UploadURL, DownloadURL string }
	if err := b.jobs.ask(head("PUT", "/upload/"+name, b.jobs.header(), 0), &made); err != nil {
		return g, err
	}
	g = grant{id: made.FileID, upload: pathOf(made.UploadURL), download: pathOf(made.DownloadURL)}
	g.took, err = b.sendPayload(b.jobs.address, g.upload)
	return g, err
}

// pathOf gives a link without the host, which clients were told to be another.
func pathOf(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	return u.RequestURI()
}

// sendPayload makes one PUT.
func (b *testbed) sendPayload(address, path string) (time.Duration, error) {
	f, err := os.Open(b.payload)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	c, err := dial(address)
	if err != nil {
		return 0, err
	}
	defer c.close()
	began := time.Now()
	err = c.send(head("PUT", path, "Content-Type: application/octet-stream\r\n", int64(b.Size)), f)
	return time.Since(began), err
}

// moved is what a side of a comparison has carried.
type moved struct {
	bytes   int64
	elapsed time.Duration
	cpu     time.Duration
}

// rate in MiB a second, and CPU seconds a GiB.
func (m moved) rate() float64 { return float64(m.bytes) / mebibyte / m.elapsed.Seconds() }
func (m moved) cost() float64 { return m.cpu.Seconds() / (float64(m.bytes) / (1 << 30)) }

// fetch lets clients download for some time.
func fetch(ctx context.Context, clients int, d time.Duration, address string, pids []int, requests [][]byte) (m moved, err error) {
	before, err := cpuOf(pids...)
	if err != nil {
		return m, err
	}
	lengths := make([]int64, clients)
	s, err := closed(ctx, clients, d, func(n int) (func() error, func(), error) {
		c, err := dial(address)
		if err != nil {
			return nil, nil, err
		}
		next := n
		return func() error {
			next++
			length, _, err := c.drop(requests[next%len(requests)])
			lengths[n] += int64(length)
			return err
		}, c.close, nil
	})
	if err != nil {
		return m, err
	}
	after, err := cpuOf(pids...)
	for _, l := range lengths {
		m.bytes += l
	}
	m.elapsed, m.cpu = s.elapsed, after-before
	return m, err
}

// side is one of the two that are compared.
type side struct {
	name, address, path string
	pids                []int
}

// sides gives those that serve the payload, the peer first where there is one.
func (b *testbed) sides() []side {
	all := []side{
		{"bare", b.bare.address, "/payload", []int{b.bare.pid()}},
		{"molrun", b.jobs.address, b.upload, []int{b.jobs.pid()}},
	}
	if b.peer == nil {
		return all
	}
	return append([]side{{"nginx", b.peer.address, "/payload", b.peer.pids()}}, all...)
}

// measureDownload compares downloads of a whole file.
func (b *testbed) measureDownload(ctx context.Context, f figures) error {
	for _, clients := range []int{1, 4} {
		for _, s := range b.sides() {
			m, err := fetch(ctx, clients, b.For/2, s.address, s.pids, [][]byte{head("GET", s.path, "", 0)})
			if err != nil {
				return err
			}
			f[fmt.Sprintf("download%d.%s", clients, s.name)] = m.rate()
			f[fmt.Sprintf("download%d.%s.cpu", clients, s.name)] = m.cost()
		}
	}
	return nil
}

// measureRanges compares downloads of 1 MiB at random places.
func (b *testbed) measureRanges(ctx context.Context, f figures) error {
	r, length := rand.New(rand.NewPCG(5, 6)), min(mebibyte, int64(b.Size))
	for _, s := range b.sides() {
		var requests [][]byte
		for range 256 {
			from := r.Int64N(int64(b.Size) - length + 1)
			requests = append(requests, head("GET", s.path, fmt.Sprintf("Range: bytes=%d-%d\r\n", from, from+length-1), 0))
		}
		m, err := fetch(ctx, 8, b.For/2, s.address, s.pids, requests)
		if err != nil {
			return err
		}
		f["ranges."+s.name], f["ranges."+s.name+".cpu"] = m.rate(), m.cost()
	}
	return nil
}

// measureUpload compares durable uploads with a digest with those of the peer,
// which has neither.
func (b *testbed) measureUpload(ctx context.Context, f figures) error {
	if b.peer != nil {
		path := "/dav/upload"
		m, err := b.uploading(b.peer.pids(), func() (time.Duration, error) { return b.sendPayload(b.peer.address, path) })
		if err != nil {
			return err
		}
		f["upload.nginx"], f["upload.nginx.cpu"] = m.rate(), m.cost()
		if err := os.Remove(filepath.Join(b.peer.dir, "files", path)); err != nil {
			return err
		}
	}
	var g grant
	m, err := b.uploading([]int{b.jobs.pid()}, func() (_ time.Duration, err error) {
		g, err = b.put(fmt.Sprintf("upload-%d.bin", time.Now().UnixNano()))
		return g.took, err
	})
	if err != nil {
		return err
	}
	f["upload.molrun"], f["upload.molrun.cpu"] = m.rate(), m.cost()
	if f["digest.cpu"], err = digestCost(b.payload, int64(b.Size)); err != nil {
		return err
	}
	if cost, ok := opensslCost(ctx, b.payload, int64(b.Size)); ok {
		f["digest.openssl"] = cost
	}
	return b.jobs.ask(head("DELETE", "/files/"+g.id, b.jobs.header(), 0), nil)
}

func (b *testbed) uploading(pids []int, put func() (time.Duration, error)) (m moved, err error) {
	before, err := cpuOf(pids...)
	if err != nil {
		return m, err
	}
	m.bytes = int64(b.Size)
	if m.elapsed, err = put(); err != nil {
		return m, err
	}
	after, err := cpuOf(pids...)
	m.cpu = after - before
	return m, err
}

// resultLink gives the path of a result, or of one of its files.
func (b *testbed) resultLink(job, file string) (string, error) {
	var link struct{ DownloadURL string }
	body := fmt.Sprintf(`{"jobName":%q}`, job)
	if file != "" {
		body = fmt.Sprintf(`{"jobName":%q,"fileName":%q}`, job, file)
	}
	err := b.jobs.ask(b.jobs.post("/result", []byte(body)), &link)
	return pathOf(link.DownloadURL), err
}

// trimmed gives the text without the space around it.
func trimmed(b []byte) string { return strings.TrimSpace(string(b)) }
