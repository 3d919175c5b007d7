package slurm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"molrun/app"
)

// listHead begins every list; the number is that of its form.
const listHead = "molrun submission 1"

// arrayMark, after the prefix, begins the names of arrays.
const arrayMark = "-array-"

// lists are the files that say what was submitted under which name: a head, then
// a line for each task with its token and the attempt's directory. The wrapper
// reads them on the node. A list is durable before sbatch is called, so that
// without one there was never a job.
type lists struct {
	dir, prefix string

	mu     sync.Mutex
	loaded bool
	rows   map[string]row // of arrays, by token
}

func (l *lists) path(name string) string { return filepath.Join(l.dir, name) }

// single gives the name under which a task is submitted alone.
func (l *lists) single(token string) row { return row{Name: l.prefix + "-" + token} }

// write puts down the list of a name. It gives the rows of the tasks, in order.
func (l *lists) write(name string, tasks []app.Task) ([]row, error) {
	var text strings.Builder
	fmt.Fprintln(&text, listHead)
	for _, t := range tasks {
		fmt.Fprintf(&text, "%s %s\n", t.Token, t.Dir)
	}
	if err := writeFile(l.path(name), []byte(text.String())); err != nil {
		return nil, fmt.Errorf("write the list of a submission: %w", err)
	}
	rows := make([]row, len(tasks))
	if !l.isArray(name) {
		rows[0] = row{Name: name}
		return rows, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, t := range tasks {
		rows[i] = row{name, i + 1}
		if l.loaded {
			l.rows[t.Token] = rows[i]
		}
	}
	return rows, nil
}

func (l *lists) isArray(name string) bool { return strings.HasPrefix(name, l.prefix+arrayMark) }

// find gives the row of a token; false where it was never submitted.
func (l *lists) find(token string) (row, bool, error) {
	alone := l.single(token)
	_, err := os.Lstat(l.path(alone.Name))
	if err == nil {
		return alone, true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return row{}, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.loaded {
		if err := l.load(); err != nil {
			return row{}, false, err
		}
	}
	r, ok := l.rows[token]
	return r, ok, nil
}

// load reads the lists of all arrays.
func (l *lists) load() error {
	names, err := os.ReadDir(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read what was submitted: %w", err)
	}
	rows := map[string]row{}
	for _, n := range names {
		if !l.isArray(n.Name()) || filepath.Ext(n.Name()) != "" {
			continue
		}
		tasks, err := l.read(n.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for i, t := range tasks {
			rows[t.Token] = row{n.Name(), i + 1}
		}
	}
	l.rows, l.loaded = rows, true
	return nil
}

// read gives token and directory of the tasks of a name.
func (l *lists) read(name string) ([]app.Task, error) {
	text, err := os.ReadFile(l.path(name))
	if err != nil {
		return nil, fmt.Errorf("read what was submitted: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if lines[0] != listHead {
		return nil, fmt.Errorf("read what was submitted: %s is no list of this molrun; move it away", l.path(name))
	}
	tasks := make([]app.Task, 0, len(lines)-1)
	for _, line := range lines[1:] {
		token, dir, _ := strings.Cut(line, " ")
		tasks = append(tasks, app.Task{Token: token, Dir: dir})
	}
	return tasks, nil
}

// accepted notes that Slurm took a submission, and the number that it gave.
func (l *lists) accepted(name, id string) error {
	return writeFile(l.path(name+".job"), []byte(id+"\n"))
}

// number gives the number of a name that Slurm took, "" where it never said so.
func (l *lists) number(name string) string {
	text, err := os.ReadFile(l.path(name + ".job"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// written gives when a name was submitted first.
func (l *lists) written(name string) (time.Time, bool) {
	info, err := os.Stat(l.path(name))
	if err != nil {
		return time.Time{}, false
	}
	return info.ModTime(), true
}

// remove forgets a name.
func (l *lists) remove(name string) error {
	tasks, err := l.read(name)
	if err != nil {
		return err
	}
	l.mu.Lock()
	for _, t := range tasks {
		delete(l.rows, t.Token)
	}
	l.mu.Unlock()
	err = os.Remove(l.path(name))
	if late := os.Remove(l.path(name + ".job")); !errors.Is(late, fs.ErrNotExist) {
		err = errors.Join(err, late)
	}
	return err
}

// writeFile makes a file appear whole and stay, its owner's alone.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
