package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// measureUpload compares molrun's uploads, which are durable and include a digest, with
// those of nginx, which do neither.
func measureUpload(ctx context.Context, b *testbed, f figures) error {
	if b.peer != nil {
		const path = "/dav/upload"
		if err := touchMemory(b.payload); err != nil {
			return err
		}
		t, err := b.payload.measure(func() (time.Duration, error) { return b.payload.put(b.peer.address, path) }, b.peer.pids()...)
		if err != nil {
			return err
		}
		f["upload.nginx"], f["upload.nginx.cpu"] = t.rate(), t.cost()
		if err := os.Remove(filepath.Join(b.peer.files, path)); err != nil {
			return err
		}
	}
	if err := touchMemory(b.payload); err != nil {
		return err
	}
	var u upload
	t, err := b.payload.measure(func() (_ time.Duration, err error) {
		u, err = b.payload.upload(b.jobs, fmt.Sprintf("upload-%d.bin", time.Now().UnixNano()))
		return u.took, err
	}, b.jobs.pid())
	if err != nil {
		return err
	}
	f["upload.molrun"], f["upload.molrun.cpu"] = t.rate(), t.cost()
	if f["digest.cpu"], err = digestCost(b.payload); err != nil {
		return err
	}
	if cost, ok := opensslCost(ctx, b.payload); ok {
		f["digest.openssl"] = cost
	}
	return b.jobs.call(b.jobs.del("/files/"+u.id), nil)
}

// touchMemory writes a file as large as the payload and removes it. A virtual machine
// returns unused memory to its host, and the next process to use that memory has to wait
// for it; neither server should be charged for that.
func touchMemory(p *payload) error {
	f, err := os.CreateTemp(filepath.Dir(p.path), "memory")
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, zeros{}, p.size)
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// digestCost returns the CPU seconds per GiB of SHA-256, without the cost of reading the
// file.
func digestCost(p *payload) (float64, error) {
	hashing, err := readInto(sha256.New(), p)
	if err != nil {
		return 0, err
	}
	reading, err := readInto(io.Discard, p)
	return hashing.cost() - reading.cost(), err
}

func readInto(w io.Writer, p *payload) (transfer, error) {
	return p.measure(func() (time.Duration, error) {
		f, err := os.Open(p.path)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		// The wrappers hide ReadFrom and WriteTo from io.CopyBuffer.
		_, err = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{f}, make([]byte, 256<<10))
		return 0, err
	}, os.Getpid())
}

// opensslCost returns the CPU seconds per GiB of OpenSSL's SHA-256, including the cost of
// reading the file. It reports false if OpenSSL is not installed.
func opensslCost(ctx context.Context, p *payload) (float64, bool) {
	c := exec.CommandContext(ctx, "openssl", "dgst", "-sha256", p.path)
	if c.Run() != nil {
		return 0, false
	}
	return transfer{bytes: p.size, cpu: c.ProcessState.UserTime() + c.ProcessState.SystemTime()}.cost(), true
}
