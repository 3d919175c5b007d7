package slurm

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"molrun/app"
	"molrun/app/base/durable"
)

// listHead is the first line of every list; the number is its version.
const listHead = "molrun submission 1"

// arrayMark follows the prefix in names of arrays.
const arrayMark = "-array-"

// lists manages the files that record which tasks were submitted under which name: a
// header with the label, if any, then a line for each task with its token and the
// attempt's directory. The wrapper reads them on the node. A list is durable before
// sbatch is called; without a list there was never a job.
type lists struct {
	dir, prefix string

	mu     sync.Mutex
	loaded bool
	rows   map[string]TaskID // rows of array tasks, by token
}

func (l *lists) path(name string) string { return filepath.Join(l.dir, name) }

// single returns the row of a task submitted alone.
func (l *lists) single(token string) TaskID { return TaskID{Name: l.prefix + "-" + token} }

// writeList writes the list of a name and returns the rows of the tasks, in order.
func (l *lists) writeList(name, label string, tasks []app.Task) ([]TaskID, error) {
	var text strings.Builder
	fmt.Fprintln(&text, strings.TrimSpace(listHead+" "+label))
	for _, t := range tasks {
		fmt.Fprintf(&text, "%s %s\n", t.Token, t.Dir)
	}
	if err := replaceFile(l.path(name), []byte(text.String())); err != nil {
		return nil, fmt.Errorf("write the list of a submission: %w", err)
	}
	rows := make([]TaskID, len(tasks))
	if !l.isArray(name) {
		rows[0] = TaskID{Name: name}
		return rows, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, t := range tasks {
		rows[i] = TaskID{Name: name, Index: i + 1}
		if l.loaded {
			l.rows[t.Token] = rows[i]
		}
	}
	return rows, nil
}

// newArray returns a new name for an array.
func (l *lists) newArray() string { return l.prefix + arrayMark + rand.Text() }

func (l *lists) isArray(name string) bool { return strings.HasPrefix(name, l.prefix+arrayMark) }

// split replaces the list of a name for which Slurm has no job by lists of at most size
// tasks. If jobs of the name appear after all, they find no list and exit.
func (l *lists) split(name string, tasks []app.Task, size int) error {
	label := l.label(name)
	for part := range slices.Chunk(tasks, size) {
		into := l.single(part[0].Token).Name
		if len(part) > 1 {
			into = l.newArray()
		}
		if _, err := l.writeList(into, label, part); err != nil {
			return err
		}
	}
	return os.Remove(l.path(name))
}

// findToken returns the row of a token. It returns false if the token was never
// submitted.
func (l *lists) findToken(token string) (TaskID, bool, error) {
	alone := l.single(token)
	_, err := os.Lstat(l.path(alone.Name))
	if err == nil {
		return alone, true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return TaskID{}, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.loaded {
		if err := l.loadAll(); err != nil {
			return TaskID{}, false, err
		}
	}
	r, ok := l.rows[token]
	return r, ok, nil
}

// loadAll reads the lists of all arrays.
func (l *lists) loadAll() error {
	names, err := os.ReadDir(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read a submission list: %w", err)
	}
	rows := map[string]TaskID{}
	for _, n := range names {
		if !l.isArray(n.Name()) || filepath.Ext(n.Name()) != "" {
			continue
		}
		tasks, err := l.readList(n.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for i, t := range tasks {
			rows[t.Token] = TaskID{Name: n.Name(), Index: i + 1}
		}
	}
	l.rows, l.loaded = rows, true
	return nil
}

// readList returns the tasks of a name, with token and directory.
func (l *lists) readList(name string) ([]app.Task, error) {
	text, err := os.ReadFile(l.path(name))
	if err != nil {
		return nil, fmt.Errorf("read a submission list: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if lines[0] != listHead && !strings.HasPrefix(lines[0], listHead+" ") {
		return nil, fmt.Errorf("read a submission list: %s is not a list of this molrun version; move it away", l.path(name))
	}
	tasks := make([]app.Task, 0, len(lines)-1)
	for _, line := range lines[1:] {
		token, dir, _ := strings.Cut(line, " ")
		tasks = append(tasks, app.Task{Token: token, Dir: dir})
	}
	return tasks, nil
}

// label returns the label of a name, or "" if it has none.
func (l *lists) label(name string) string {
	f, err := os.Open(l.path(name))
	if err != nil {
		return ""
	}
	defer f.Close()                                // read only
	head, _ := bufio.NewReader(f).ReadString('\n') // an empty file has no label
	return strings.TrimSpace(strings.TrimPrefix(head, listHead))
}

// title returns the Slurm job name for a name: with the label, which is for users.
func (l *lists) title(name string) string { return labelled(name, l.prefix, l.label(name)) }

// accepted records the Slurm job ID of a submission.
func (l *lists) accepted(name, id string) error {
	return replaceFile(l.path(name+".job"), []byte(id+"\n"))
}

// number returns the Slurm job ID of a name, or "" if it is unknown.
func (l *lists) number(name string) string {
	text, err := os.ReadFile(l.path(name + ".job"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// written returns when a name was first submitted.
func (l *lists) written(name string) (time.Time, bool) {
	info, err := os.Stat(l.path(name))
	if err != nil {
		return time.Time{}, false
	}
	return info.ModTime(), true
}

// remove deletes the list of a name.
func (l *lists) remove(name string) error {
	tasks, err := l.readList(name)
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

// idle reports whether none of a list's attempts has a directory.
func (l *lists) idle(name string) bool {
	tasks, err := l.readList(name)
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

// replaceFile writes a file durably and atomically.
func replaceFile(path string, data []byte) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(durable.Replace(root, filepath.Base(path), data), root.Close())
}
