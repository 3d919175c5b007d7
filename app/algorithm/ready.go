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

// Missing returns a sentence for each thing that is missing on the machine to run the
// algorithm, none if it is ready. A validator always runs on this machine.
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
		missing = append(missing, a.missingPlace(m)...)
	}
	missing = append(missing, a.whereabouts.missingHere(m)...)
	if msg := m.SandboxMissing(); a.Sandbox.Required && msg != "" {
		switch {
		case a.Sandbox.Image == "":
			missing = append(missing, "its programs may only run in a sandbox, and there is none: "+msg)
		case a.checker != nil && a.programOf(a.checker.command, m.Site) != "":
			missing = append(missing, "the program that checks its settings, which is not of the image, may only run in a sandbox, and there is none: "+msg)
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
	if n := a.resources.cpus.least(a.Parameters); m.CPUs > 0 && n > int64(m.CPUs) {
		missing = append(missing, fmt.Sprintf("it needs at least %s, and there are %d", unit.Count(int(n), "CPU"), m.CPUs))
	}
	if n := a.resources.memory.least(a.Parameters); m.MemoryBytes > 0 && n > m.MemoryBytes {
		missing = append(missing, fmt.Sprintf("it needs at least %s of memory, and there are %s", unit.Bytes(n), unit.Bytes(m.MemoryBytes)))
	}
	if n := a.resources.gpus.least(a.Parameters); n > int64(m.GPUCount()) {
		missing = append(missing, fmt.Sprintf("it needs at least %s, and there are %d", unit.Count(int(n), "GPU"), m.GPUCount()))
	}
	if have := a.gpuMemoryOf(m); have > 0 && have < a.resources.gpuMemory/10*9 {
		missing = append(missing, fmt.Sprintf("it needs GPUs with %s of memory, and there is one with %s", unit.Bytes(a.resources.gpuMemory), unit.Bytes(have)))
	}
	return missing
}

// gpuMemoryOf returns the memory of the machine's smallest GPU, since a job may get any of
// them; 0 if it does not matter or is not known.
func (a *File) gpuMemoryOf(m placement.Machine) int64 {
	if a.resources.gpuMemory == 0 || m.GPUMemory == nil || m.GPUCount() == 0 {
		return 0
	}
	return m.GPUMemory()
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

// Reach returns what the algorithm's programs may reach, the site's paths that they use and
// the assets among it.
func (a *File) Reach() protocol.Sandbox {
	may := a.Sandbox
	may.Read, may.Conda = slices.Clone(may.Read), a.condaAt(a.site)
	for _, name := range a.whereabouts.names {
		if path := a.site[name]; path != "" { // else the job can't start
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

// named returns the absolute paths that commands have as literal arguments, such as a script after its
// interpreter. What a setting says is none: users write that.
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

// AssetPlace is where an asset is, or should be, and how to get it.
type AssetPlace struct {
	Name, Path string
	Size       int64    // bytes; 0: unknown
	From       string   // for people
	Address    string   // of the file, on the web; "": none
	Command    []string // makes it; nil: none
	Wrong      string   // what is wrong with the file that is there, or that none is; "": nothing
}

// AssetPlaces returns where the site has the assets, by the names of [site.paths].
func (a *File) AssetPlaces(site map[string]string) (places []AssetPlace, err error) {
	for _, asset := range a.whereabouts.assets {
		path := asset.pathAt(site)
		if path == "" {
			return nil, fmt.Errorf("%s needs [site.paths] to know where the asset %s is", a.Type, asset.Name)
		}
		p := AssetPlace{Name: asset.Name, Path: path, Size: asset.Size, From: asset.From, Address: asset.address, Wrong: asset.wrong(path)}
		if p.Command, err = command.Argv(asset.fetch, &command.Values{Site: site}); err != nil {
			return nil, err
		}
		places = append(places, p)
	}
	return places, nil
}

// SiteNames returns the names of [site.paths] that the algorithm uses.
func (a *File) SiteNames() []string { return a.whereabouts.names }

// DamagedAssets reads the assets that have a SHA-256 and says which have another, as far as
// they are there.
func (a *File) DamagedAssets(ctx context.Context, site map[string]string) (damaged []string) {
	for _, asset := range a.whereabouts.assets {
		path := asset.pathAt(site)
		if asset.SHA256 == "" || path == "" || asset.wrong(path) != "" {
			continue
		}
		switch sum, _, err := digest.New().File(ctx, path); {
		case err != nil:
			damaged = append(damaged, fmt.Sprintf("%s at %s can't be read: %v", asset.Name, path, err))
		case sum != asset.SHA256:
			damaged = append(damaged, fmt.Sprintf("%s at %s has another SHA-256 than it should: get it again from %s", asset.Name, path, asset.From))
		}
	}
	return damaged
}

// programOf returns the program that a command begins with, "" if only the job says it.
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

// interpreters are programs whose first argument is the script that they run.
var interpreters = regexp.MustCompile(`^(sh|bash|dash|python[0-9.]*|perl|Rscript|julia|ruby|node)$`)

// scriptOf returns the path of the script that an interpreter is to run, as far as the file and
// the site say it; "" if there is none.
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

// noteScript adds a script that is not on this machine.
func noteScript(missing []string, path string) []string {
	if _, err := os.Stat(path); err != nil {
		return append(missing, fmt.Sprintf("the script %s is not there, which a command names", path))
	}
	return missing
}

var (
	shells = regexp.MustCompile(`^(sh|bash|dash|ksh|zsh)$`)
	noPipe = regexp.MustCompile(`'[^']*'|"(?:[^"\\]|\\.)*"|\\.|\|\|`)
)

// Doubts says what commands may do and should not, a sentence for each step.
func (a *File) Doubts() (texts []string) {
	for _, s := range a.steps {
		if pipes(s.command) {
			texts = append(texts, strings.TrimSuffix("the command of step "+s.name, " of step ")+" pipes programs in a shell, which hides that one before the last has failed: "+
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

// VersionProbe returns how the program is asked for its version, false if it can't be. program
// is the path of this one.
func (a *File) VersionProbe(program string) (probe validator.Probe, ok bool) {
	if a.versionOf == nil || a.Sandbox.Image != "" { // the digest of an image says more
		return probe, false
	}
	probe, ok = a.commandProbe(a.versionOf.command, program)
	probe.Pattern = a.versionOf.pattern
	return probe, ok
}

// SelfTestProbe returns how to find out whether the program works where jobs run: by probe, else by
// version_command, whose pattern must then match. It is false where neither is said, and for programs of an
// image or of environment modules, which only a job enters.
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

// commandProbe returns how a command is run, with the variables that are the same for every job.
func (a *File) commandProbe(argv []command.Argument, program string) (probe validator.Probe, ok bool) {
	home, _ := a.Folder.Path() // where it is not kept, no command can name it
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
	probe.Sandbox = a.Reach()
	if home != "" {
		probe.Sandbox.Read = append(probe.Sandbox.Read, home)
	}
	return probe, true
}
