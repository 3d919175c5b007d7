package task

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// scratchBytes is what a confined program may write to its folder, and to /tmp.
const scratchBytes = 64 << 20

// Confine makes a command that was not started yet run in a sandbox such as tasks
// have, where there is one: it sees the system's programs, what the algorithm lists
// and these files, reaches no other machine unless the algorithm asks, and writes
// to its folder (Dir), which is empty, and /tmp alone. When bwrap is killed, so is
// all that is inside. done clears up once the command has ended, or was not started.
func (i Isolation) Confine(c *exec.Cmd, files []string) (done func(), err error) {
	if i.Bubblewrap == "" {
		return func() {}, nil
	}
	path, err := lookUp(c.Args, c.Env, c.Dir)
	if err != nil {
		return nil, err
	}
	p := &profile{work: c.Dir, network: i.Sandbox.Network}
	if p.read, err = readable(path, c.Dir, slices.Concat(i.Sandbox.Read, files)); err != nil {
		return nil, err
	}
	d := &descriptors{}
	remove := func() {}
	if i.Sized {
		p.scratchBytes = scratchBytes
	} else {
		p.temp, err = os.MkdirTemp(filepath.Dir(c.Dir), filepath.Base(c.Dir)+"-tmp-")
		d.note(err)
		remove = func() { os.RemoveAll(p.temp) }
	}
	d.accounts()
	done = func() { d.close(); remove() }
	if d.err != nil {
		done()
		return nil, fmt.Errorf("prepare the sandbox: %w", d.err)
	}
	const first = 3 // descriptor of ExtraFiles
	at := first + len(c.ExtraFiles)
	c.ExtraFiles = append(c.ExtraFiles, d.files...)
	c.Args = slices.Concat([]string{"bwrap"}, p.view(at, at+1), []string{"--", path}, c.Args[1:])
	c.Path, c.Err = i.Bubblewrap, nil
	return done, nil
}
