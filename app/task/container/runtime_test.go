package container

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// standIns sets PATH to a folder that contains nothing but these fake runtimes.
func standIns(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		must.Program(t, filepath.Join(dir, name), "#!/bin/sh\n"+script+"\n")
	}
	t.Setenv("PATH", dir)
}

func TestRuntimeOfAnImage(t *testing.T) {
	const file, image = "/srv/a.sif", "docker://lab/a:1"
	for _, tt := range []struct {
		installed, runtime, image, want string
	}{
		{"podman docker apptainer", "auto", image, "podman"},
		{"docker apptainer", "", image, "docker"},
		{"podman docker apptainer", "auto", file, "apptainer"},
		{"podman docker", "docker", image, "docker"},
		{"apptainer", "apptainer", image, "apptainer"},
		{"podman", "off", image, `! its program is in a container image, but containers.runtime is "off" here`},
		{"podman", "podman", file, `! the image /srv/a.sif is a file, which only Apptainer can run, but containers.runtime is "podman" here`},
		{"podman", "auto", file, "! its program is in a container image, but apptainer was not found in PATH"},
		{"apptainer", "auto", image, "! its program is in a container image, but podman or docker was not found in PATH"},
	} {
		scripts := map[string]string{}
		for name := range strings.FieldsSeq(tt.installed) {
			scripts[name] = "exit 1"
		}
		standIns(t, scripts)
		r, err := Options{Runtime: tt.runtime}.FindRuntime(tt.image)
		got := string(r.Kind)
		if err != nil {
			got = "! " + err.Error()
		}
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

// TestImagesOfStandIns uses scripts that mimic the output of Docker and Podman.
func TestImagesOfStandIns(t *testing.T) {
	standIns(t, map[string]string{
		"docker": `[ "$*" = "image inspect --format={{.Id}} lab/a:1" ] && echo sha256:12 && exit
echo "Error response from daemon: No such image: $4" >&2; exit 1`,
		"podman": `echo "warning" >&2; echo "Error: cannot connect to $GREETING" >&2; exit 125`,
	})
	docker, err := Options{Runtime: "docker"}.FindRuntime("lab/a:1")
	must.OK(t, err)
	podman, err := Options{Env: []string{"GREETING=hello"}}.FindRuntime("lab/a:1")
	must.OK(t, err)
	for _, tt := range []struct {
		runtime     Runtime
		image, want string
	}{
		{docker, "docker://lab/a:1", "sha256:12"},
		{docker, "docker://lab/b:1", "the image lab/b:1 does not exist on this machine; load it with: docker load -i FILE"},
		{podman, "lab/a:1", "cannot inspect the image lab/a:1: podman image: cannot connect to hello"},
	} {
		got, err := tt.runtime.Image(t.Context(), tt.image)
		if err != nil {
			got = err.Error()
		}
		must.Equal(t, tt.image, got, tt.want)
	}
}

func TestImageFiles(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.sif"), filepath.Join(dir, "bad.sif")
	header := "#!/usr/bin/env run-singularity\n\x00" + "SIF_MAGIC\x00" + "01\x00" + "02\x00" + "0123456789abcdef" + "more"
	for path, text := range map[string]string{good: header, bad: strings.Repeat("no image ", 20)} {
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	}
	apptainer := Runtime{Kind: Apptainer}
	for image, want := range map[string]string{
		good:                "sif:30313233-3435-3637-3839-616263646566",
		bad:                 fmt.Sprintf("the image %s is not a SIF file", bad),
		dir + "/nosuch.sif": fmt.Sprintf("the image %s/nosuch.sif does not exist", dir),
		"docker://lab/a:1":  "the image docker://lab/a:1 is not a file; create one with: apptainer pull NAME.sif docker://lab/a:1",
	} {
		got, err := apptainer.Image(t.Context(), image)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}
