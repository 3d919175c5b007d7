package task

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"molrun/app/task/modules"
	"molrun/app/task/process"
)

// findPrograms finds the algorithm's programs that are not on PATH: a container image,
// environment modules or a conda environment.
func (s *shim) findPrograms(ctx context.Context) error {
	if s.isolation.Runtime != nil {
		return s.findImage(ctx)
	}
	if err := s.loadModules(ctx); err != nil {
		return err
	}
	return s.enterConda()
}

// loadModules loads the modules, and makes the folders that they point to readable.
func (s *shim) loadModules(ctx context.Context) error {
	names := s.isolation.Sandbox.Modules
	if len(names) == 0 {
		return nil
	}
	init, err := modules.Init(s.isolation.ModulesInit)
	if err != nil {
		return err
	}
	before := append(InheritedEnv(), "HOME="+s.work, process.TokenVariable+"="+s.spec.Token)
	changed, err := modules.Load(ctx, init, names, before)
	if err != nil {
		return err
	}
	s.site = changed
	s.isolation.Sandbox.Read = slices.Concat(s.isolation.Sandbox.Read, modules.Folders(changed, before))
	return nil
}

// enterConda does what activating the environment does, except for running its scripts.
func (s *shim) enterConda() error {
	prefix := s.isolation.Sandbox.Conda
	if prefix == "" {
		return nil
	}
	bin := filepath.Join(prefix, "bin")
	if info, err := os.Stat(bin); err != nil || !info.IsDir() {
		return fmt.Errorf("the conda environment %s does not exist on this machine; install it", prefix)
	}
	site := map[string]string{"CONDA_PREFIX": prefix, "CONDA_DEFAULT_ENV": filepath.Base(prefix)}
	maps.Copy(site, s.site)
	path := s.site["PATH"]
	if path == "" {
		path = defaultPath
		for _, entry := range InheritedEnv() {
			if value, found := strings.CutPrefix(entry, "PATH="); found {
				path = value
			}
		}
	}
	site["PATH"] = bin + ":" + path
	s.site = site
	s.isolation.Sandbox.Read = append(slices.Clone(s.isolation.Sandbox.Read), prefix)
	return nil
}
