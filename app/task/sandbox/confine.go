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

// scratchBytes is what a confined program may write to its folder, and to /tmp.
const scratchBytes = 64 << 20

// Confinement says how to confine a command.
type Confinement struct {
	Bubblewrap string // path of bwrap
	Sized      bool   // it can limit the size of memory, see Probe
	Allowed    protocol.Sandbox
	Files      []string // to be read
	Hide       []string // of what programs see otherwise

	MemoryBytes int64 // of each process; 0: no limit
}

// Confine makes a command that has not started yet run in a sandbox like that of
// a task. The command sees the system's programs, what the algorithm lists and
// the given files. It reaches no other machine unless the algorithm asks for
// that, writes only to its folder (Dir), which is empty, and /tmp, and makes no system
// call that tasks may not make. Killing bwrap kills everything inside. Call done when the command has ended, or will
// not start.
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
	fd := 3 + len(c.ExtraFiles) // ExtraFiles begin at descriptor 3
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
