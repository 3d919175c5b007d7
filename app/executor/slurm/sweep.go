package slurm

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// cleanUpEvery is how often the shared directory is cleaned up.
	cleanUpEvery = time.Hour
	// cleanUpAge is the minimum age of a file to be removed.
	cleanUpAge = time.Hour
)

// cleanUpRegularly cleans up regularly until ctx ends.
func (e *Executor) cleanUpRegularly(ctx context.Context) {
	ticker := time.NewTicker(cleanUpEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if err := e.CleanUp(ctx, cleanUpAge); err != nil && ctx.Err() == nil {
			e.options.Log("could not clean up all of the shared folder", "err", err)
		}
	}
}

// CleanUp removes lists whose attempt directories have all been removed, copies of other
// versions of this program once no list is older than the current copy, and temporary
// files left by a crash. Files younger than age are kept.
func (e *Executor) CleanUp(ctx context.Context, age time.Duration) error {
	before := e.options.Now().Add(-age)
	oldest, err := e.cleanUpLists(ctx, before)
	if err != nil {
		return err
	}
	e.submissions.forget()
	current, err := e.program.install(ctx)
	if err != nil {
		return err
	}
	info, err := os.Stat(current)
	if err != nil || oldest.Before(info.ModTime()) {
		return err // queued jobs may need another version
	}
	return removeFiles(filepath.Dir(current), func(name string, at time.Time) bool {
		return name != filepath.Base(current) && at.Before(before)
	})
}

// cleanUpLists removes unneeded lists and returns the time of the oldest remaining one.
func (e *Executor) cleanUpLists(ctx context.Context, before time.Time) (oldest time.Time, err error) {
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
		case strings.HasPrefix(name, "."+e.lists.prefix+"-") && info.ModTime().Before(before):
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
