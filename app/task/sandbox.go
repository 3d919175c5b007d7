package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"molrun/app/protocol"
)

// boxPatience bounds the start of a sandbox, which takes milliseconds.
const boxPatience = 30 * time.Second

// box is the sandbox of one step, as the process outside has it.
type box struct {
	leader int     // bwrap, which ends after all that is inside
	first  Process // inside; with it the kernel ends everything there
	temp   string  // seen as /tmp
	line   *os.File
	tell   *json.Encoder
	hear   *json.Decoder
	words  *words // of bwrap
	ended  chan syscall.WaitStatus
	silent chan struct{} // closed when the process inside says no more
}

// enter starts a step's program in a sandbox.
func (s *shim) enter(path string, step protocol.Step, out, errs *os.File) (*box, error) {
	p, err := s.profile(path)
	if err != nil {
		return nil, err
	}
	b := &box{temp: p.temp, ended: make(chan syscall.WaitStatus, 1), silent: make(chan struct{})}
	if err := b.fork(s, p, out, errs); err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.temp))
	}
	if err := b.begin(s, path, step.Argv); err != nil {
		return nil, errors.Join(err, b.abandon())
	}
	go b.listen()
	return b, nil
}

// profile makes the view that the program gets, with a new folder for /tmp: in
// one that an earlier step has had, links could lie in wait for bwrap.
func (s *shim) profile(path string) (*profile, error) {
	read, err := readable(path, s.work, s.isolation.Sandbox.Read)
	if err != nil {
		return nil, err
	}
	p := &profile{
		work: s.work, inputs: ownInputs(s.work), read: read,
		devices: gpuDevices("/", s.spec.grantedGPUs()),
		network: s.isolation.Sandbox.Network,
	}
	if s.isolation.Sized {
		p.shmBytes = s.spec.MemoryBytes
	}
	p.temp, err = os.MkdirTemp(s.work, ".tmp-")
	return p, err
}

// fork starts bwrap with what it needs and nothing of the program's: that is
// told to the process inside.
func (b *box) fork(s *shim, p *profile, out, errs *os.File) error {
	d := openDescriptors("/proc/self/exe")
	defer d.close()
	d.add(out, errs)
	d.accounts()
	d.words()
	if d.err != nil {
		return fmt.Errorf("prepare the sandbox: %w", d.err)
	}
	leader, err := s.forkExec(s.isolation.Bubblewrap, append([]string{"bwrap"}, p.arguments()...), &syscall.ProcAttr{
		Dir: "/", Env: []string{TokenVariable + "=" + s.spec.Token}, Files: d.numbers(),
	})
	if err != nil {
		return fmt.Errorf("start bubblewrap: %w", err)
	}
	b.leader = leader
	b.line, b.words = d.keep()
	b.tell, b.hear = json.NewEncoder(b.line), json.NewDecoder(b.line)
	return nil
}

// begin tells the process inside what to run, once it is known by name to
// whoever has to clear up after this process.
func (b *box) begin(s *shim, path string, argv []string) error {
	if err := b.line.SetDeadline(time.Now().Add(boxPatience)); err != nil {
		return err
	}
	var n notice
	if err := b.hear.Decode(&n); err != nil || !n.Ready {
		return fmt.Errorf("the sandbox can't be set up: %s", b.words.last())
	}
	if err := b.find(s.dir); err != nil {
		return err
	}
	expendable(b.first.PID)
	err := b.tell.Encode(order{Run: &program{
		Path: path, Argv: argv, Env: s.env, Work: s.work,
		Processes: s.isolation.Processes, FileBytes: s.isolation.FileBytes,
	}})
	n = notice{}
	if err == nil {
		err = b.hear.Decode(&n)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the sandbox ended before the program began: %w", err)
	case n.Fault != 0:
		return explainInside(path, argv[0], n.Fault)
	}
	return b.line.SetDeadline(time.Time{})
}

// find finds the process inside and writes down which it is.
func (b *box) find(dir string) error {
	all := children(b.leader)
	if len(all) == 0 {
		return errors.New("the sandbox has no process")
	}
	first, err := FindProcess(all[0])
	if err != nil {
		return fmt.Errorf("find the sandbox: %w", err)
	}
	b.first = first
	return writeForNow(dir, SandboxFile, sandboxRecord{Protocol, first})
}

// explainInside makes a sentence of why a program did not start inside.
func explainInside(path, program string, errno syscall.Errno) error {
	if errno == syscall.ENOENT && exists(path) {
		return fmt.Errorf("the program %q, or the interpreter that it names, can't be seen in the sandbox; "+
			"list its folder under [sandbox] read of the algorithm", program)
	}
	return explainStart(program, errno)
}

// listen hears how the program ends. It ends with the process inside, or when
// close no longer waits.
func (b *box) listen() {
	defer close(b.silent)
	for {
		var n notice
		if b.hear.Decode(&n) != nil {
			return
		}
		if n.Ended != nil {
			b.ended <- *n.Ended // it comes once
		}
	}
}

// signal asks the process inside to pass a signal on. One that is gone has
// nobody to pass it to.
func (b *box) signal(sig syscall.Signal, all bool) {
	b.line.SetWriteDeadline(time.Now().Add(outputPatience))
	b.tell.Encode(order{Signal: sig, All: all})
}

// kill ends everything inside at once.
func (b *box) kill() { b.first.Signal(syscall.SIGKILL) }

// verdict gives how the program ended, after bwrap has: as the process inside
// told it, or else, since that was killed, as bwrap did.
func (b *box) verdict(bwrap syscall.WaitStatus) syscall.WaitStatus {
	b.hush()
	select {
	case status := <-b.ended:
		return status
	default:
	}
	if bwrap.Exited() && bwrap.ExitStatus() > 128 {
		return syscall.WaitStatus(bwrap.ExitStatus() - 128)
	}
	return bwrap
}

// hush waits until there is nothing more to hear.
func (b *box) hush() {
	b.line.SetReadDeadline(time.Now().Add(outputPatience))
	<-b.silent
}

// close clears up once all that was inside is gone.
func (b *box) close() error {
	b.hush()
	b.words.end()
	return errors.Join(b.line.Close(), os.RemoveAll(b.temp))
}

// abandon ends a sandbox whose program did not begin.
func (b *box) abandon() error {
	syscall.Kill(b.leader, syscall.SIGKILL) // not reaped yet: the number is its own
	if b.first.PID > 0 {
		b.kill()
	}
	for end := time.Now().Add(outputPatience); time.Now().Before(end); time.Sleep(killPause) {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		for pid > 0 || errors.Is(err, syscall.EINTR) {
			pid, err = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
		if err != nil { // ECHILD: there are none
			break
		}
	}
	b.words.end()
	return errors.Join(b.line.Close(), os.RemoveAll(b.temp))
}

// sandboxRecord is the content of sandbox.json.
type sandboxRecord struct {
	Protocol int `json:"protocol"`
	Process
}

// AwaitSandboxEnd waits until the sandbox of a task whose own process is gone
// is gone as well, or ctx ends.
func AwaitSandboxEnd(ctx context.Context, dir string) error {
	for sandboxAlive(dir) {
		if err := pause(ctx, killPause); err != nil {
			return fmt.Errorf("the task's sandbox is still there: %w", err)
		}
	}
	return nil
}

// sandboxAlive reports whether the sandbox of a step is still there. It goes
// only after all that was inside.
func sandboxAlive(dir string) bool {
	r, err := read[sandboxRecord](dir, SandboxFile)
	if err != nil {
		return false
	}
	now, err := FindProcess(r.PID)
	if err != nil || now != r.Process {
		return false
	}
	s, err := readStat(r.PID)
	return err == nil && !s.zombie
}

// firstLine cuts what bwrap says to fit into a sentence.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimPrefix(line, "bwrap: ")
	if line == "" {
		return "bubblewrap did not say why"
	}
	return cleanText(line)
}
