package algorithm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/validator"
	"molrun/app/base/digest"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
	"molrun/app/task/protocol"
)

// Missing returns a message for each requirement of the algorithm that the machine does
// not meet. The list is empty if the algorithm is ready. Validators always run on this
// machine.
func (a *File) Missing(m placement.Machine) []string {
	missing := []string{}
	if a.Hidden != "" {
		return append(missing, a.Hidden)
	}
	if m.Local {
		for _, s := range a.steps {
			name := a.programOf(s.command, m.Site)
			if name != "" && !a.isElsewhere(name, m.Site) {
				missing = noteMissing(missing, name)
			}
			if script := scriptOf(name, s.command, m.Site); script != "" && a.Sandbox.Image == "" {
				missing = noteScript(missing, script)
			}
		}
		for _, name := range a.programs {
			if !a.isElsewhere(name, m.Site) {
				missing = noteMissing(missing, name)
			}
		}
		missing = append(missing, a.missingSandboxParts(m)...)
	}
	missing = append(missing, a.whereabouts.missingHere(m)...)
	if msg := m.SandboxMissing(); a.Sandbox.Required && msg != "" {
		switch {
		case a.Sandbox.Image == "":
			missing = append(missing, "its programs require a sandbox, which is not available: "+msg)
		case a.checker != nil && a.programOf(a.checker.command, m.Site) != "":
			missing = append(missing, "its validator, which is not part of the image, requires a sandbox, which is not available: "+msg)
		}
	}
	if a.checker != nil {
		if name := a.programOf(a.checker.command, m.Site); name != "" {
			missing = noteMissing(missing, name)
		}
	}
	return append(missing, a.tooSmall(m)...)
}

func (a *File) tooSmall(m placement.Machine) []string {
	var missing []string
	if !m.Local && m.CPUs == 0 && m.MemoryBytes == 0 && m.GPUCount() == 0 {
		return nil
	}
	if n := a.resources.cpus.minAmount(a.Parameters); m.CPUs > 0 && n > int64(m.CPUs) {
		missing = append(missing, fmt.Sprintf("it needs at least %s, but there are only %d", unit.Count(int(n), "CPU"), m.CPUs))
	}
	if n := a.resources.memory.minAmount(a.Parameters); m.MemoryBytes > 0 && n > m.MemoryBytes {
		missing = append(missing, fmt.Sprintf("it needs at least %s of memory, but there are only %s", unit.Bytes(n), unit.Bytes(m.MemoryBytes)))
	}
	if n := a.resources.gpus.minAmount(a.Parameters); n > int64(m.GPUCount()) {
		missing = append(missing, fmt.Sprintf("it needs at least %s, but there are only %d", unit.Count(int(n), "GPU"), m.GPUCount()))
	}
	if have := a.gpuMemoryOf(m); have > 0 && have < a.resources.gpuMemory/10*9 {
		missing = append(missing, fmt.Sprintf("it needs GPUs with %s of memory, but one has only %s", unit.Bytes(a.resources.gpuMemory), unit.Bytes(have)))
	}
	return missing
}

// gpuMemoryOf returns the memory of the machine's smallest GPU, because a job can be
// assigned any of them. It is 0 if irrelevant or unknown.
func (a *File) gpuMemoryOf(m placement.Machine) int64 {
	if a.resources.gpuMemory == 0 || m.GPUMemory == nil || m.GPUCount() == 0 {
		return 0
	}
	return m.GPUMemory()
}

// missingProgram explains why a program cannot run, or returns "" if it can.
func missingProgram(name string) string {
	if filepath.IsAbs(name) {
		if !isProgram(name) {
			return fmt.Sprintf("the program %s does not exist or is not executable", name)
		}
		return ""
	}
	for _, folder := range filepath.SplitList(validator.SearchPath()) {
		if isProgram(filepath.Join(folder, name)) {
			return ""
		}
	}
	return fmt.Sprintf("the program %s is not installed: not found on PATH", name)
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// AccessibleSandbox returns the sandbox of the algorithm's programs, including the site paths that
// they use and the assets.
func (a *File) AccessibleSandbox() protocol.Sandbox {
	may := a.Sandbox
	may.Read, may.Conda = slices.Clone(may.Read), a.condaAt(a.site)
	for _, name := range a.whereabouts.names {
		if path := a.site[name]; path != "" { // otherwise the job can't start
			may.Read = append(may.Read, path)
		}
	}
	for _, asset := range a.whereabouts.assets {
		if path := asset.pathAt(a.site); path != "" {
			may.Read = append(may.Read, path)
		}
	}
	may.Named = a.named()
	return may
}

// named returns the absolute paths that are literal arguments of commands, such as a
// script after its interpreter. Paths from settings are excluded, because users choose
// them.
func (a *File) named() (paths []string) {
	add := func(t command.Template) {
		if text, plain := t.Literal(); plain && filepath.IsAbs(text) && filepath.Clean(text) == text && !slices.Contains(paths, text) {
			paths = append(paths, text)
		}
	}
	commands := [][]command.Argument{a.probe}
	for _, s := range a.steps {
		commands = append(commands, s.command)
	}
	if a.checker != nil {
		commands = append(commands, a.checker.command)
	}
	if a.versionOf != nil {
		commands = append(commands, a.versionOf.command)
	}
	for _, argument := range slices.Concat(commands...) {
		for _, t := range slices.Concat([]command.Template{argument.Text}, argument.Then, argument.Else, argument.Args) {
			add(t)
		}
	}
	return paths
}

// AssetPlace is the location of an asset and how to obtain it.
type AssetPlace struct {
	Name, Path string
	Size       int64    // bytes; 0 if unknown
	From       string   // where to obtain it, for people
	Address    string   // URL of the file; "" if none
	Command    []string // command that creates it; nil if none
	Wrong      string   // why the file is missing or wrong; "" if it is fine
}

// AssetPlaces returns the locations of the assets. site holds the site's paths, keyed by
// their names in [site.paths].
func (a *File) AssetPlaces(site map[string]string) (places []AssetPlace, err error) {
	for _, asset := range a.whereabouts.assets {
		path := asset.pathAt(site)
		if path == "" {
			return nil, fmt.Errorf("%s needs [site.paths] to locate the asset %s", a.Type, asset.Name)
		}
		p := AssetPlace{Name: asset.Name, Path: path, Size: asset.Size, From: asset.From, Address: asset.address, Wrong: asset.problem(path)}
		if p.Command, err = command.Argv(asset.fetch, &command.Values{Site: site}); err != nil {
			return nil, err
		}
		places = append(places, p)
	}
	return places, nil
}

// SiteNames returns the names of [site.paths] that the algorithm uses.
func (a *File) SiteNames() []string { return a.whereabouts.names }

// DamagedAssets reads the assets that have a SHA-256, and returns a message for each one
// that does not match. It skips missing assets.
func (a *File) DamagedAssets(ctx context.Context, site map[string]string) (damaged []string) {
	for _, asset := range a.whereabouts.assets {
		path := asset.pathAt(site)
		if asset.SHA256 == "" || path == "" || asset.problem(path) != "" {
			continue
		}
		switch sum, _, err := digest.New().File(ctx, path); {
		case err != nil:
			damaged = append(damaged, fmt.Sprintf("%s at %s can't be read: %v", asset.Name, path, err))
		case sum != asset.SHA256:
			damaged = append(damaged, fmt.Sprintf("%s at %s has the wrong SHA-256: get it again from %s", asset.Name, path, asset.From))
		}
	}
	return damaged
}

// programOf returns the program of a command, or "" if it is known only when a job runs.
func (a *File) programOf(argv []command.Argument, site map[string]string) string {
	t := argv[0].Text
	if name, plain := t.Literal(); plain {
		return name
	}
	if t[0].Kind != "site" || site[t[0].Name] == "" {
		return ""
	}
	path, err := t.Expand(&command.Values{Site: site})
	if err != nil || !strings.HasPrefix(path, "/") {
		return ""
	}
	return path
}

// interpreters matches programs whose first argument is a script to run.
var interpreters = regexp.MustCompile(`^(sh|bash|dash|python[0-9.]*|perl|Rscript|julia|ruby|node)$`)

// scriptOf returns the path of the script that an interpreter runs. It returns "" if
// there is no script, or if its path depends on the job or is not absolute.
func scriptOf(program string, argv []command.Argument, site map[string]string) string {
	if !interpreters.MatchString(filepath.Base(program)) || len(argv) < 2 {
		return ""
	}
	path, err := argv[1].Text.Expand(&command.Values{Site: site})
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// noteScript adds a message if a script is missing from this machine.
func noteScript(missing []string, path string) []string {
	if _, err := os.Stat(path); err != nil {
		return append(missing, fmt.Sprintf("the script %s, which a command runs, does not exist", path))
	}
	return missing
}

var (
	shells = regexp.MustCompile(`^(sh|bash|dash|ksh|zsh)$`)
	noPipe = regexp.MustCompile(`'[^']*'|"(?:[^"\\]|\\.)*"|\\.|\|\|`)
)

// CommandWarnings returns a warning for each step whose command hides failures.
func (a *File) CommandWarnings() (texts []string) {
	for _, s := range a.steps {
		if pipes(s.command) {
			texts = append(texts, strings.TrimSuffix("the command of step "+s.name, " of step ")+" pipes programs in a shell, which hides failures of all but the last: "+
				`make each a step, with stdout and stdin, or begin with "bash", "-o", "pipefail", "-c"`)
		}
	}
	return texts
}

// pipes reports whether a shell command has a pipe and ignores failures within it.
func pipes(argv []command.Argument) bool {
	shell, _ := argv[0].Text.Literal()
	if !shells.MatchString(filepath.Base(shell)) {
		return false
	}
	said := ""
	for _, argument := range argv[1:] {
		for _, part := range argument.Text {
			said += " " + part.Text
		}
	}
	return strings.Contains(noPipe.ReplaceAllString(said, ""), "|") && !strings.Contains(said, "pipefail")
}

// VersionProbe returns the command that queries the program's version. ok is false if the
// version can't be queried. program is the path of molrun itself.
func (a *File) VersionProbe(program string) (probe validator.Probe, ok bool) {
	if a.versionOf == nil || a.Sandbox.Image != "" { // the digest of an image is more precise
		return probe, false
	}
	probe, ok = a.commandProbe(a.versionOf.command, program)
	probe.Pattern = a.versionOf.pattern
	return probe, ok
}

// SelfTestProbe returns the command that tests whether the program works where jobs run.
// This is probe or, if there is none, version_command, whose output must then match
// version_pattern. ok is false if both are missing, or if the programs are in an image or
// in environment modules, which only jobs can use.
func (a *File) SelfTestProbe(program string, site map[string]string) (probe validator.Probe, ok bool) {
	if a.Sandbox.Image != "" || len(a.Sandbox.Modules) > 0 {
		return probe, false
	}
	here := *a
	here.site = site
	if a.probe != nil {
		return here.commandProbe(a.probe, program)
	}
	return here.VersionProbe(program)
}

// commandProbe returns a Probe that runs a command with the environment variables that
// are the same for every job.
func (a *File) commandProbe(argv []command.Argument, program string) (probe validator.Probe, ok bool) {
	home, _ := a.Folder.Path() // without a copy, no command can refer to it
	values := &command.Values{Settings: &strictjson.Value{}, Site: a.site, Named: map[string]string{"folder": home, "molrun": program}}
	var err error
	if probe.Argv, err = command.Argv(argv, values); err != nil {
		return probe, false
	}
	for _, v := range a.env {
		ofJob := slices.ContainsFunc(v.text, func(p command.Part) bool {
			return !slices.Contains([]string{"", "folder", "site", "molrun"}, p.Kind)
		})
		if text, err := v.text.Expand(values); err == nil && !ofJob {
			probe.Env = append(probe.Env, v.name+"="+text)
		}
	}
	probe.Sandbox = a.AccessibleSandbox()
	if home != "" {
		probe.Sandbox.Read = append(probe.Sandbox.Read, home)
	}
	return probe, true
}
