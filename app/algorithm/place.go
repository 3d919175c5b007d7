package algorithm

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/placement"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
	"molrun/app/task/protocol"
)

var (
	// imagePattern matches image names as used by registries, with a tag or digest.
	imagePattern = regexp.MustCompile(`^(docker://)?[a-z0-9][A-Za-z0-9._/:-]*(@sha256:[0-9a-f]{64})?$`)
	// modulePattern matches module names, but not options.
	modulePattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+/-]*$`)
)

// readProgramSource reads where to find programs that are not on PATH: in a container
// image, environment modules or a conda environment.
func readProgramSource(r *tomltree.Reader, s *protocol.Sandbox) {
	if t := r.Table(r.Root, "container"); t != nil {
		s.Image = readImage(r, t)
	}
	if n := r.Root.Member("modules"); n != nil {
		s.Modules = r.Texts(r.Root, "modules")
		for i, name := range s.Modules {
			if !modulePattern.MatchString(name) {
				r.Errorf(n.Items[i].Line, "%q in modules must be the name of a module, such as \"gromacs/2024\"", name)
			}
		}
		noteBeside(r, n.Line, s.Image, "modules")
	}
	if n := r.Root.Member("conda"); n != nil {
		s.Conda = r.Line(r.Root, "conda")
		noteBeside(r, n.Line, s.Image, "conda")
	}
}

// readConda reads the prefix of the conda environment that contains the programs, or
// returns nil if there is none. If the key is missing, the prefix is derived from
// commands that begin with the environment's bin folder.
func readConda(c commandReader, steps []step) command.Template {
	n := c.Root.Member("conda")
	if n == nil {
		return prefixOf(steps)
	}
	if n.Kind != strictjson.String || n.Text == "" {
		return nil
	}
	c.allowed = []string{"site"}
	t := c.template(n)
	if t == nil {
		return nil
	}
	text, plain := t.Literal()
	if plain && !filepath.IsAbs(text) || !plain && t[0].Kind != "site" || plain && filepath.Clean(text) != text || strings.Contains(n.Text, ":") {
		c.Errorf(n.Line, `conda must be the absolute path of an environment, such as "/opt/conda/envs/boltz", or begin with a site path: "{site.NAME}"; got %q`, n.Text)
	}
	return t
}

// prefixOf returns {site.NAME} if commands begin with {site.NAME}/bin/ and none with that
// of another environment. Otherwise it returns nil.
func prefixOf(steps []step) (prefix command.Template) {
	for _, s := range steps {
		if len(s.command) == 0 {
			continue
		}
		t := s.command[0].Text
		if len(t) != 2 || t[0].Kind != "site" || t[1].Kind != "" || !strings.HasPrefix(t[1].Text, "/bin/") {
			continue
		}
		if prefix != nil && prefix[0] != t[0] {
			return nil
		}
		prefix = t[:1]
	}
	return prefix
}

// condaAt returns the prefix of the conda environment, or "" if there is none or the site
// does not define its path.
func (a *File) condaAt(site map[string]string) string {
	path, err := a.conda.Expand(&command.Values{Site: site})
	if err != nil {
		return ""
	}
	return path
}

func readImage(r *tomltree.Reader, t *tomltree.Node) string {
	n := t.Member("image")
	if n == nil || n.Kind != strictjson.String {
		return ""
	}
	image := r.Line(t, "image")
	switch isFile := strings.HasSuffix(image, ".sif"); {
	case isFile && filepath.IsAbs(image) && !strings.ContainsAny(image, ",\""), !isFile && imagePattern.MatchString(image):
		return image
	case isFile:
		r.Errorf(n.Line, "image %q must be an absolute path without commas and quotes", image)
	default:
		r.Errorf(n.Line, `image must be "docker://NAME@sha256:DIGEST", "docker://NAME:TAG", the name of a local image, or the absolute path of a .sif file; got %q`, image)
	}
	return ""
}

func noteBeside(r *tomltree.Reader, line int, image, key string) {
	if image != "" {
		r.Errorf(line, "%s applies to programs on the machine, but with [container] they are in the image", key)
	}
}

// missingSandboxParts describes what a machine lacks to find the steps' programs, and which
// readable paths of the sandbox are missing.
func (a *File) missingSandboxParts(m placement.Machine) []string {
	var missing []string
	for _, path := range a.Sandbox.Read {
		if _, err := os.Stat(path); err != nil {
			missing = append(missing, fmt.Sprintf("%s, listed in the algorithm's [sandbox], does not exist", path))
		}
	}
	if conda := a.condaAt(m.Site); conda != "" {
		if _, err := os.Stat(filepath.Join(conda, "bin")); err != nil {
			missing = append(missing, fmt.Sprintf("the conda environment %s does not exist", conda))
		}
	}
	if m.MissingEnvironment != nil && (a.Sandbox.Image != "" || len(a.Sandbox.Modules) > 0) {
		missing = append(missing, m.MissingEnvironment(a.Sandbox)...)
	}
	return missing
}

// isElsewhere reports whether a program is, or can be, in a location other than PATH: a
// container image, an environment module or the conda environment.
func (a *File) isElsewhere(program string, site map[string]string) bool {
	if a.Sandbox.Image != "" || len(a.Sandbox.Modules) > 0 && !filepath.IsAbs(program) {
		return true
	}
	conda := a.condaAt(site)
	return conda != "" && !filepath.IsAbs(program) && isProgram(filepath.Join(conda, "bin", program))
}

// noteMissing adds a message if a program cannot run on this machine.
func noteMissing(missing []string, program string) []string {
	if msg := missingProgram(program); msg != "" && !slices.Contains(missing, msg) {
		return append(missing, msg)
	}
	return missing
}
