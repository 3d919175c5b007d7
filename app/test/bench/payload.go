package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// payload is a file of random bytes that is uploaded and downloaded.
type payload struct {
	path string
	size int64
}

// makePayload creates the file in memory if possible, so that reading it costs the
// clients little, and otherwise below dir.
func makePayload(dir string, size int64) (*payload, error) {
	parent, err := os.MkdirTemp("/dev/shm", "molrun-bench-")
	if err != nil {
		if parent, err = os.MkdirTemp(dir, "payload-"); err != nil {
			return nil, err
		}
	}
	p := &payload{filepath.Join(parent, "payload"), size}
	f, err := os.Create(p.path)
	if err != nil {
		return p, err
	}
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{}), size)
	return p, errors.Join(err, f.Close())
}

func (p *payload) copyTo(path string) error {
	in, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// put sends the file in a PUT request and returns how long that took.
func (p *payload) put(address, path string) (time.Duration, error) {
	f, err := os.Open(p.path)
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
	err = c.send(requestHead("PUT", path, "Content-Type: application/octet-stream\r\n", p.size), f)
	return time.Since(began), err
}

// upload is a file stored on a server.
type upload struct {
	id, download string        // download is a path
	took         time.Duration // of the PUT
}

// upload uploads the file to a server.
func (p *payload) upload(s *server, name string) (u upload, err error) {
	var made struct{ FileID, UploadURL, DownloadURL string }
	if err := s.call(requestHead("PUT", "/upload/"+name, s.header(), 0), &made); err != nil {
		return u, err
	}
	u = upload{id: made.FileID, download: linkPath(made.DownloadURL)}
	if u.took, err = p.put(s.address, linkPath(made.UploadURL)); err != nil {
		return u, fmt.Errorf("put %s: %w", name, err)
	}
	return u, nil
}

// measure measures one transfer of the whole file by move, which returns how long it
// took.
func (p *payload) measure(move func() (time.Duration, error), pids ...int) (t transfer, err error) {
	t.bytes = p.size
	t.cpu, err = cpuDuring(func() (err error) {
		t.elapsed, err = move()
		return err
	}, pids...)
	return t, err
}

func (p *payload) remove() error {
	if p == nil {
		return nil
	}
	return os.RemoveAll(filepath.Dir(p.path))
}
