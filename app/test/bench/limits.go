package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
)

// The upper limit for submissions: records of 500 bytes are put into bbolt, each with one
// index entry for each listing that contains the job. One goroutine commits for all
// waiting clients.
const (
	limitIndexes = 8
	limitValue   = 500
	limitGather  = 500 * time.Microsecond
)

// limitCommits measures bare commits.
func limitCommits(ctx context.Context, dir string, clients int, d time.Duration) (s sample, err error) {
	path := filepath.Join(dir, "limit.db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{FreelistType: bolt.FreelistMapType, Timeout: time.Second})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, db.Close(), os.Remove(path)) }()
	if err := db.Update(createLimit); err != nil {
		return s, err
	}
	c := &committer{db: db, calls: make(chan commitCall, 4096), ended: make(chan struct{})}
	go c.run()
	defer func() { close(c.calls); <-c.ended }()
	var sequence atomic.Uint64
	return closedLoop(ctx, clients, d, func(int) (func() error, func(), error) {
		value, done := make([]byte, limitValue), make(chan error, 1)
		return func() error {
			c.calls <- commitCall{sequence.Add(1), value, done}
			return <-done
		}, func() {}, nil
	})
}

type commitCall struct {
	sequence uint64
	value    []byte
	done     chan error
}

type committer struct {
	db    *bolt.DB
	calls chan commitCall
	ended chan struct{}
}

// run commits for all waiting callers at once. Before each commit it waits briefly until
// as many callers have arrived as took part in the last one.
func (c *committer) run() {
	defer close(c.ended)
	expected := 1
	for first := range c.calls {
		group := c.gather(first, expected)
		err := c.db.Update(func(tx *bolt.Tx) error {
			for _, call := range group {
				if err := putLimit(tx, call); err != nil {
					return err
				}
			}
			return nil
		})
		expected = len(group) + len(c.calls)
		for _, call := range group {
			call.done <- err
		}
	}
}

func (c *committer) gather(first commitCall, expected int) []commitCall {
	group := []commitCall{first}
	if expected == 1 && len(c.calls) == 0 {
		return group
	}
	timeout := time.NewTimer(limitGather)
	defer timeout.Stop()
	for len(group) < expected || len(c.calls) > 0 {
		select {
		case call, open := <-c.calls:
			if !open {
				return group
			}
			group = append(group, call)
		case <-timeout.C:
			return group
		}
	}
	return group
}

func createLimit(tx *bolt.Tx) error {
	_, err := tx.CreateBucket([]byte("records"))
	for n := range limitIndexes {
		_, e := tx.CreateBucket(limitBucket(n))
		err = errors.Join(err, e)
	}
	return err
}

func limitBucket(n int) []byte { return fmt.Appendf(nil, "index%d", n) }

// putLimit puts a record under an ascending key, and an entry into each index under one
// of 16 prefixes.
func putLimit(tx *bolt.Tx, call commitCall) error {
	key := make([]byte, 16)
	binary.BigEndian.PutUint64(key, call.sequence)
	if err := tx.Bucket([]byte("records")).Put(key, call.value); err != nil {
		return err
	}
	for n := range limitIndexes {
		group := (call.sequence + uint64(n)) * 0x9e3779b97f4a7c15 >> 60
		entry := append(fmt.Appendf(make([]byte, 0, 32), "group%07d", group), key...)
		if err := tx.Bucket(limitBucket(n)).Put(entry, nil); err != nil {
			return err
		}
	}
	return nil
}

// limitSync measures how long it takes to make 4 KiB durable.
func limitSync(ctx context.Context, dir string, d time.Duration) (s sample, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "limit.sync"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	block := make([]byte, 4096)
	return closedLoop(ctx, 1, d, local(func() error {
		_, err := f.WriteAt(block, 0)
		return errors.Join(err, f.Sync())
	}))
}

// concurrentStarts is the number of jobs that run concurrently, and of processes in the
// limit measurement.
const concurrentStarts = 4

// limitStarts measures how fast the machine starts and reaps processes that do nothing,
// each in its own session and in a new directory with two log files.
func limitStarts(ctx context.Context, dir string, d time.Duration) (s sample, err error) {
	dir, err = os.MkdirTemp(dir, "starts-")
	if err != nil {
		return s, err
	}
	var number atomic.Int64
	return closedLoop(ctx, concurrentStarts, d, local(func() error {
		return startOne(filepath.Join(dir, fmt.Sprint(number.Add(1))))
	}))
}

func startOne(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	stdout, err := os.Create(filepath.Join(dir, "stdout"))
	if err != nil {
		return err
	}
	stderr, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		return errors.Join(err, stdout.Close())
	}
	c := exec.Command("/bin/true")
	c.Dir, c.Stdout, c.Stderr = dir, stdout, stderr
	c.Env = []string{"PATH=/usr/bin:/bin"}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return errors.Join(c.Run(), stdout.Close(), stderr.Close())
}
