package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"molrun/app/task/process"
	"molrun/app/task/protocol"
)

// scratchBytes limits what a confined program can write to its folder and to /tmp.
const scratchBytes = 64 << 20

// Confinement says how to confine a command.
type Confinement struct {
	Bubblewrap string // path of bwrap
	Sized      bool   // it can limit the size of memory; see Probe
	Allowed    protocol.Sandbox
	Files      []string // to make readable
	Hide       []string // paths that would otherwise be visible

	MemoryBytes int64 // of each process; 0 means no limit
}

// Confine makes a command that has not yet started run in a sandbox like that of a task.
// The command sees the system's programs, what the algorithm lists and the given files.
// It has no network access unless the algorithm requests it, can write only to its folder
// (Dir), which is empty, and /tmp, and can't make the system calls that are denied to
// tasks. Killing bwrap kills everything inside. The caller must call done when the
// command has exited, or if it will not start.
func Confine(c *exec.Cmd, o Confinement) (done func(), err error) {
	path, err := process.LookUp(c.Args, c.Env, c.Dir)
	if err != nil {
		return nil, err
	}
	v := &view{work: c.Dir, network: o.Allowed.Network, hide: o.Hide, closed: o.Sized}
	if v.read, err = readable(path, "", c.Dir, c.Env, slices.Concat(o.Allowed.Read, o.Files), namedFiles(o.Allowed.Named, o.Hide)); err != nil {
		return nil, err
	}
	d := &descriptors{}
	remove := func() {}
	if o.Sized {
		v.scratchBytes = scratchBytes
	} else {
		v.temp, err = os.MkdirTemp(filepath.Dir(c.Dir), filepath.Base(c.Dir)+"-tmp-")
		d.fail(err)
		remove = func() { os.RemoveAll(v.temp) }
	}
	d.names(v)
	fd := 3 + len(c.ExtraFiles) // ExtraFiles start at descriptor 3
	arguments := v.arguments(fd)
	if process.CanDenyCalls() {
		arguments = append(arguments, "--seccomp", strconv.Itoa(fd+len(d.files)))
		d.addText(string(process.CallFilter()))
	}
	done = func() { d.close(); remove() }
	if d.err != nil {
		done()
		return nil, fmt.Errorf("prepare the sandbox: %w", d.err)
	}
	c.ExtraFiles = append(c.ExtraFiles, d.files...)
	argv := process.WithMemoryLimit(append([]string{path}, c.Args[1:]...), o.MemoryBytes)
	c.Args = slices.Concat([]string{"bwrap"}, arguments, []string{"--"}, argv)
	c.Path, c.Err = o.Bubblewrap, nil
	return done, nil
}
