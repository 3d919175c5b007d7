package slurm

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// sweepEvery is how often what nobody needs any more is removed.
	sweepEvery = time.Hour
	// sweepAge is how old it has to be.
	sweepAge = time.Hour
)

// sweepNowAndThen sweeps until ctx ends.
func (e *Executor) sweepNowAndThen(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if err := e.Sweep(ctx, sweepAge); err != nil && ctx.Err() == nil {
			e.log("not all of the shared folder could be swept", "err", err)
		}
	}
}

// Sweep removes lists whose attempts' directories are all gone, copies of other
// versions of this program once no list is older than this one's, and what a
// crash left half written. What is younger than age stays.
func (e *Executor) Sweep(ctx context.Context, age time.Duration) error {
	before := e.options.Now().Add(-age)
	oldest, err := e.sweepLists(ctx, before)
	if err != nil {
		return err
	}
	e.forgetNames()
	current, err := e.program.install(ctx)
	if err != nil {
		return err
	}
	info, err := os.Stat(current)
	if err != nil || oldest.Before(info.ModTime()) {
		return err // jobs may wait that were submitted with another version
	}
	return removeFiles(filepath.Dir(current), func(name string, at time.Time) bool {
		return name != filepath.Base(current) && at.Before(before)
	})
}

// sweepLists removes the lists that nobody needs, and gives the age of the
// oldest that stays.
func (e *Executor) sweepLists(ctx context.Context, before time.Time) (oldest time.Time, err error) {
	oldest = e.options.Now()
	entries, err := os.ReadDir(e.lists.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return oldest, nil
	}
	for _, entry := range entries {
		info, statErr := entry.Info()
		if statErr != nil || ctx.Err() != nil {
			continue
		}
		name := entry.Name()
		switch {
		case strings.HasPrefix(name, ".new-") && info.ModTime().Before(before):
			err = errors.Join(err, os.Remove(e.lists.path(name)))
			continue
		case strings.HasPrefix(name, "."), strings.HasSuffix(name, ".job"):
			continue
		}
		if info.ModTime().Before(before) && e.lists.idle(name) {
			err = errors.Join(err, e.lists.remove(name))
			continue
		}
		if info.ModTime().Before(oldest) {
			oldest = info.ModTime()
		}
	}
	return oldest, err
}

// idle reports whether no attempt of a list has a directory any more.
func (l *lists) idle(name string) bool {
	tasks, err := l.read(name)
	if err != nil {
		return false
	}
	for _, t := range tasks {
		if _, err := os.Lstat(t.Dir); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// forgetNames drops what is known of names that are long submitted.
func (e *Executor) forgetNames() {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.fresh, func(name string, at time.Time) bool {
		if time.Since(at) < remembered || e.again[name] {
			return false
		}
		delete(e.refusal, name)
		delete(e.refused, name)
		return true
	})
}

func removeFiles(dir string, which func(name string, at time.Time) bool) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		info, statErr := entry.Info()
		if statErr == nil && info.Mode().IsRegular() && which(entry.Name(), info.ModTime()) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}
