// Package smi provides a stand-in for nvidia-smi.
package smi

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// StandIn is a script that prints the content of files, which the test can change.
type StandIn struct {
	t       testing.TB
	dir     string
	Program string
}

// script prints the file that answers the query in its arguments. It records if two
// instances run at the same time.
const script = `#!/bin/sh
cd "$(dirname "$0")" || exit 99
[ -e pid ] && kill -0 "$(cat pid)" 2>/dev/null && echo again >>twice
echo $$ >pid
[ -e hang ] && sleep 1000
case $1 in
--query-gpu=*mig*) [ -e old ] && { echo 'Field "mig.mode.current" is not a valid field to query.'; rm pid; exit 2; }
	cat cards; rm pid; exit "$(cat status)" ;;
--query-gpu=*) cat cards; rm pid; exit "$(cat status)" ;;
--id=*) cat "card-${1#--id=}" ;;
-L) cat list ;;
--query-compute-apps=*) cat apps ;;
esac
rm pid
`

// New returns a stand-in for a machine without GPUs.
func New(t testing.TB) *StandIn {
	t.Helper()
	dir := t.TempDir()
	s := &StandIn{t: t, dir: dir, Program: filepath.Join(dir, "nvidia-smi")}
	s.Set("cards", "").Set("list", "").Set("apps", "").Set("status", "0")
	must.Program(t, s.Program, script)
	return s
}

// Set writes a file that determines the script's output or behavior. name is cards, list
// (for -L), apps (processes), card-BUS (one card, when the query for all cards names only
// a lost one), status (exit status), hang (sleep), or old (reject the query for MIG).
func (s *StandIn) Set(name, text string) *StandIn {
	s.t.Helper()
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	path := filepath.Join(s.dir, name)
	must.OK(s.t, os.WriteFile(path+".new", []byte(text), 0o600))
	must.OK(s.t, os.Rename(path+".new", path))
	return s
}

// Cards sets the lines for the query of all cards, and the exit status. Card returns such
// a line.
func (s *StandIn) Cards(status int, lines ...string) *StandIn {
	s.t.Helper()
	return s.Set("cards", strings.Join(lines, "\n")).Set("status", fmt.Sprint(status))
}

// Unset reverts Set for one name, such as hang.
func (s *StandIn) Unset(name string) {
	s.t.Helper()
	must.OK(s.t, os.Remove(filepath.Join(s.dir, name)))
}

// Card returns the output line of a healthy card with 80 GiB of memory.
func Card(number int, uuid string) string {
	return fmt.Sprintf("%d, %s, 00000000:%02X:00.0, 81559, 4, 0, 0, Disabled", number, uuid, number+16)
}

// Twice reports whether two instances of the script ran at the same time.
func (s *StandIn) Twice() bool {
	_, err := os.Stat(filepath.Join(s.dir, "twice"))
	return err == nil
}
