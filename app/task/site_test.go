package task

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

// prefix makes an installation with a program that reads a file next to it.
func prefix(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "apps", "fold-1.0")
	for path, text := range map[string]string{
		"bin/fold":      "#!/bin/sh\ncat \"${0%/bin/fold}/lib/data\"; echo \"$FOLD_HOME $CONDA_PREFIX $MODULEPATH\"\n",
		"lib/data":      "data of fold\n",
		"bin/only-here": "#!/bin/sh\n",
	} {
		put(t, filepath.Join(dir, path), text)
	}
	return dir
}

// moduleFor makes a module for an installation, and returns the script that defines the
// real module command.
func moduleFor(t *testing.T, dir string) (init string) {
	t.Helper()
	const real = "/usr/share/modules/init/bash"
	must.InstalledFile(t, real, "environment-modules")
	files := t.TempDir()
	init = filepath.Join(files, "init.sh")
	module := fmt.Sprintf("#%%Module\nprepend-path PATH %s/bin\nprepend-path LD_LIBRARY_PATH %[1]s/lib\nsetenv FOLD_HOME %[1]s\n", dir)
	must.Write(t, init, ". "+real+"\nmodule use "+files+"\n")
	must.Write(t, filepath.Join(files, "fold", "1.0"), module)
	return init
}

func TestProgramsOfModulesAndEnvironments(t *testing.T) {
	t.Parallel()
	dir := prefix(t)
	for name, make := range map[string]makeAttempt{"plain": newAttempt, "sandbox": sandboxed} {
		for kind, site := range map[string]protocol.Sandbox{"modules": {Modules: []string{"fold"}}, "conda": {Conda: dir}} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				a := make(t)
				a.spec.Steps = []protocol.Step{{Argv: []string{"fold"}}, {Argv: []string{"sh", "-c", "fold; only-here"}}}
				a.isolation.Sandbox = site
				want := "data of fold\n " + dir + " \n"
				if kind == "modules" {
					a.isolation.ModulesInit = moduleFor(t, dir)
					want = "data of fold\n" + dir + "  \n"
				}
				if o := a.start().outcome(); o.Cause != protocol.CauseDone || a.read(LogFile) != want+want {
					t.Errorf("outcome %+v, log %q, want %q twice", o, a.read(LogFile), want)
				}
			})
		}
	}
}

func TestMissingProgramFoldersAreReported(t *testing.T) {
	t.Parallel()
	hangs := filepath.Join(t.TempDir(), "hangs.sh")
	must.Write(t, hangs, "sleep 1000\n")
	for _, tt := range []struct {
		name, init string
		site       protocol.Sandbox
		cause      protocol.Cause
		says       string
	}{
		{"module", moduleFor(t, prefix(t)), protocol.Sandbox{Modules: []string{"fold", "nosuch/1"}}, protocol.CauseCannotStart, `The modules "fold", "nosuch/1" can't be loaded: Unable to locate a modulefile for 'nosuch/1'.`},
		{"init", "/nosuch/init.sh", protocol.Sandbox{Modules: []string{"fold"}}, protocol.CauseCannotStart, "Its programs come from environment modules, but /nosuch/init.sh (modules.init) does not exist."},
		{"conda", "", protocol.Sandbox{Conda: "/nosuch/env"}, protocol.CauseCannotStart, "The conda environment /nosuch/env does not exist on this machine; install it."},
		{"stopped meanwhile", hangs, protocol.Sandbox{Modules: []string{"fold"}}, protocol.CauseTimeout, "The job exceeded its time limit of 1s."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAttempt(t, "touch out/ran")
			a.isolation.Sandbox, a.isolation.ModulesInit, a.spec.MaxRuntimeSeconds = tt.site, tt.init, 0
			if tt.cause == protocol.CauseTimeout {
				a.spec.MaxRuntimeSeconds = 1
			}
			if o := a.start().outcome(); o.Cause != tt.cause || !strings.HasPrefix(o.Message, tt.says) || a.has(WorkDir, OutDir, "ran") {
				t.Errorf("outcome %+v, want %q", o, tt.says)
			}
		})
	}
}
