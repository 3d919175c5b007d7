package algorithm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/validator"
	"molrun/app/placement"
	"molrun/app/unit"
)

// Missing returns a sentence for each thing that the machine lacks to run the
// algorithm, none if it is ready. A validator always runs on this machine.
func (a *File) Missing(m placement.Machine) []string {
	missing := []string{}
	programs := func(argv []command.Argument) {
		name, plain := argv[0].Text.Literal()
		if msg := missingProgram(name); plain && msg != "" && !slices.Contains(missing, msg) {
			missing = append(missing, msg)
		}
	}
	if m.Local {
		for _, s := range a.steps {
			programs(s.command)
		}
		for _, path := range a.Sandbox.Read {
			if _, err := os.Stat(path); err != nil {
				missing = append(missing, fmt.Sprintf("%s is not there: it is listed in the algorithm's [sandbox]", path))
			}
		}
	}
	if a.checker != nil {
		programs(a.checker.command)
	}
	return append(missing, a.tooSmall(m)...)
}

func (a *File) tooSmall(m placement.Machine) []string {
	var missing []string
	if !m.Local && m.CPUs == 0 && m.MemoryBytes == 0 && m.GPUs == 0 {
		return nil
	}
	if n := a.resources.cpus.least(a.Parameters); m.CPUs > 0 && n > int64(m.CPUs) {
		missing = append(missing, fmt.Sprintf("it needs at least %s, and there are %d", unit.Count(int(n), "CPU"), m.CPUs))
	}
	if n := a.resources.memory.least(a.Parameters); m.MemoryBytes > 0 && n > m.MemoryBytes {
		missing = append(missing, fmt.Sprintf("it needs at least %s of memory, and there are %s", unit.Bytes(n), unit.Bytes(m.MemoryBytes)))
	}
	if n := a.resources.gpus.least(a.Parameters); n > int64(m.GPUs) {
		missing = append(missing, fmt.Sprintf("it needs at least %s, and there are %d", unit.Count(int(n), "GPU"), m.GPUs))
	}
	return missing
}

// missingProgram says why a program cannot run, "" if it can.
func missingProgram(name string) string {
	if filepath.IsAbs(name) {
		if !isProgram(name) {
			return fmt.Sprintf("the program %s is not there, or may not be run", name)
		}
		return ""
	}
	for _, folder := range filepath.SplitList(validator.SearchPath()) {
		if isProgram(filepath.Join(folder, name)) {
			return ""
		}
	}
	return fmt.Sprintf("the program %s is not installed: no folder of PATH has it", name)
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
