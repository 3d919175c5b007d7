// Package containertest provides tests with Podman and an image made of programs from
// this machine.
package containertest

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"molrun/app/task/container"
	"molrun/app/test/must"
)

// Image is the name of the image. It has a shell, the usual commands, and some other
// programs if they are installed here.
const Image = "localhost/molrun-test:1"

// programs lists the programs that test scripts use.
var programs = []string{
	"sh", "cat", "cp", "ls", "id", "env", "sleep", "setsid", "head", "tail", "truncate", "mount", "chroot", "kill", "grep", "sed",
	"getent", "hostname", "wc", "tr", "mkfifo", "mknod", "ln", "mkdir", "rm", "mv", "chmod", "touch", "echo", "printf", "seq", "yes",
	"true", "false", "test", "nproc", "dd", "sort", "TMalign",
}

// Store is a private store of images and containers.
type Store struct {
	Options container.Options
	Path    string // directory of the podman script, to be put first in PATH

	dir string
}

// find creates the store and its image once. Its error says what is missing.
var find = sync.OnceValues(newStore)

// Podman returns the store of this test binary, whose TestMain must call Remove. It skips
// the test where Podman cannot be used.
func Podman(t testing.TB) *Store {
	t.Helper()
	s, err := find()
	if err != nil {
		must.Skip(t, "Podman can't be used here: %v", err)
	}
	return s
}

func newStore() (*Store, error) {
	if _, err := exec.LookPath("podman"); err != nil {
		return nil, fmt.Errorf("install podman and crun: %w", err)
	}
	dir, err := os.MkdirTemp("", "molrun-podman-")
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, Path: filepath.Join(dir, "bin"), Options: container.Options{Env: []string{
		"CONTAINERS_STORAGE_CONF=" + filepath.Join(dir, "storage.conf"), "CONTAINERS_CONF=" + filepath.Join(dir, "containers.conf"),
	}}}
	if err := s.make(); err != nil {
		s.remove()
		return nil, err
	}
	made.Store(s)
	return s, nil
}

func (s *Store) make() error {
	if err := os.Mkdir(s.Path, 0o755); err != nil {
		return err
	}
	// vfs works on every file system.
	storage := fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n", s.dir+"/images", s.dir+"/run")
	for name, text := range map[string]string{
		"storage.conf":    storage,
		"containers.conf": fmt.Sprintf("[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\nruntime = \"crun\"\ntmp_dir = %q\n", s.dir+"/tmp"),
		"bin/podman":      s.script(),
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o755); err != nil {
			return err
		}
	}
	var files bytes.Buffer
	if err := write(&files); err != nil {
		return err
	}
	if _, err := s.Run(&files, "import", "-", Image); err != nil {
		return err
	}
	_, err := s.Run(nil, "run", "--rm", "--cgroups=disabled", "--network=none", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", Image, "true")
	return err
}

// script returns the script that starts Podman. crun does not work where cgroups v1 and
// v2 are both mounted, so on such machines the script hides v2 from it.
func (s *Store) script() string {
	podman, _ := exec.LookPath("podman")
	hybrid := "/sys/fs/cgroup/unified"
	if _, err := os.Stat(hybrid + "/cgroup.controllers"); err != nil || os.Getuid() != 0 {
		return fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", podman)
	}
	return fmt.Sprintf("#!/bin/sh\nexec unshare -m --propagation private sh -c 'umount %s; exec %s \"$@\"' podman \"$@\"\n", hybrid, podman)
}

// Run runs podman and returns its output.
func (s *Store) Run(stdin io.Reader, args ...string) (string, error) {
	c := exec.Command(filepath.Join(s.Path, "podman"), args...)
	c.Env, c.Stdin = append(os.Environ(), s.Options.Env...), stdin
	var problem bytes.Buffer
	c.Stderr = &problem
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("podman %s: %w: %s", args[0], err, problem.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// Containers returns the containers of the attempt with directory dir, including exited
// ones. An empty dir means all attempts.
func (s *Store) Containers(t testing.TB, dir string) []string {
	t.Helper()
	filter := "--filter=label=molrun.dir"
	if dir != "" {
		filter += "=" + dir
	}
	out, err := s.Run(nil, "ps", "--all", filter, "--format={{.Names}}")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(out)
}

// made is the store of this test binary.
var made atomic.Pointer[Store]

// Remove removes the store, if there is one.
func Remove() {
	if s := made.Load(); s != nil {
		s.remove()
	}
}

func (s *Store) remove() { os.RemoveAll(s.dir) }

// write writes the image: programs of this machine and their libraries.
func write(w io.Writer) error {
	archive := tar.NewWriter(w)
	t := tree{archive: archive, done: map[string]bool{}}
	for _, dir := range []string{"tmp", "var", "var/tmp", "proc", "sys", "dev", "run", "etc", "usr", "usr/bin", "bin", "lib", "lib64", "root", "home"} {
		t.folder(dir)
	}
	t.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
	t.text("etc/group", "root:x:0:\n")
	own, err := os.Executable()
	if err != nil {
		return err
	}
	t.libraries(own)
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			t.program("usr/bin/"+name, path)
		}
	}
	if sh, err := exec.LookPath("sh"); err == nil {
		t.program("bin/sh", sh)
	}
	return cmpErr(t.err, archive.Close())
}

func cmpErr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

type tree struct {
	archive *tar.Writer
	done    map[string]bool
	err     error
}

func (t *tree) add(h *tar.Header, data []byte) {
	if t.err != nil || t.done[h.Name] {
		return
	}
	t.done[h.Name] = true
	h.Size = int64(len(data))
	if t.err = t.archive.WriteHeader(h); t.err == nil {
		_, t.err = t.archive.Write(data)
	}
}

func (t *tree) folder(name string) {
	t.add(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}, nil)
}

func (t *tree) text(name, text string) { t.add(&tar.Header{Name: name, Mode: 0o644}, []byte(text)) }

func (t *tree) program(name, path string) {
	data, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(data, []byte(elf.ELFMAG)) {
		return // not an ELF binary: a script's dependencies are unknown
	}
	t.add(&tar.Header{Name: name, Mode: 0o755}, data)
	t.libraries(path)
}

// libraries adds the libraries that ldd lists, at the paths from which they are loaded.
func (t *tree) libraries(path string) {
	out, err := exec.Command("ldd", path).Output()
	if err != nil {
		return // it needs no libraries
	}
	for _, word := range strings.Fields(string(out)) {
		if !strings.HasPrefix(word, "/") {
			continue
		}
		if data, err := os.ReadFile(word); err == nil {
			t.add(&tar.Header{Name: strings.TrimPrefix(word, "/"), Mode: 0o755}, data)
		}
	}
}
