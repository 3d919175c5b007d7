package algorithm

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/content"
	"molrun/app/algorithm/schema"
	"molrun/app/base/fault"
	"molrun/app/base/plaintext"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// maxArgument limits what one setting can add to a command line. Linux accepts 128 KiB
// for one argument.
const maxArgument = 100 << 10

// Parameters lists the settings that an algorithm declares.
type Parameters []Parameter

// Named returns the parameter with this name, or nil if there is none.
func (all Parameters) Named(name string) *Parameter {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

func (all Parameters) names() []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names
}

// reportUnknown reports the name of a parameter that does not exist.
func (all Parameters) reportUnknown(r *tomltree.Reader, line int, name string) {
	if near := plaintext.Nearest(name, all.names()); near != "" {
		r.Errorf(line, "no parameter is named %q; did you mean %q?", name, near)
		return
	}
	r.Errorf(line, "no parameter is named %q", name)
}

// Files returns the parameters whose value refers to a file.
func (all Parameters) Files() []Parameter {
	var files []Parameter
	for _, p := range all {
		if len(p.File) > 0 {
			files = append(files, p)
		}
	}
	return files
}

// Parameter is one setting that an algorithm declares.
type Parameter struct {
	Name, Title, Unit, Help string
	Required, Advanced      bool
	File                    []string        // accepted extensions; not empty if the setting refers to a file
	Many                    bool            // the setting is a list of files
	least, most             int             // bounds on the number of files in a list
	Default                 json.RawMessage // nil if none
	Schema                  json.RawMessage // JSON Schema of the value
	Maker                   *Maker          // job that creates the file if settings request it; nil if none

	compiled *schema.Schema    // nil if it is invalid
	content  *content.Want     // of a file; nil if unrestricted
	fallback *strictjson.Value // parsed Default
	argument bool              // the value is used in an argument or an environment variable
}

// Accepts reports whether the parameter accepts a file with this name.
func (p *Parameter) Accepts(filename string) bool {
	name := strings.ToLower(path.Base(filename))
	for _, ext := range p.File {
		if len(name) > len(ext) && strings.HasSuffix(name, strings.ToLower(ext)) {
			return true
		}
	}
	return false
}

// CouldAccept reports whether the parameter could accept a file whose name matches pattern,
// where * matches any text.
func (p *Parameter) CouldAccept(pattern string) bool {
	name := strings.ToLower(path.Base(pattern))
	tail := name[strings.LastIndexByte(name, '*')+1:]
	return p.Accepts(name) || tail != name && slices.ContainsFunc(p.File, func(ext string) bool {
		return strings.HasSuffix(strings.ToLower(ext), tail)
	})
}

// Extension returns the declared extension that a file's name ends with.
func (p *Parameter) Extension(filename string) string {
	longest := ""
	for _, ext := range p.File {
		one := Parameter{File: []string{ext}}
		if len(ext) > len(longest) && one.Accepts(filename) {
			longest = ext
		}
	}
	return longest
}

// optional reports whether the parameter can lack a value even after defaults are filled
// in.
func (p *Parameter) optional() bool {
	return !p.Required && p.fallback == nil || p.compiled.AcceptsNull()
}

// faults returns all errors in a value of the parameter. Paths begin with the parameter's
// name.
func (p *Parameter) faults(v *strictjson.Value) []fault.Field {
	faults := p.compiled.Check(p.padded(v), p.Unit)
	if p.argument && len(faults) == 0 && len(command.ArgumentText(v)) > maxArgument {
		faults = []fault.Field{{Loc: []any{}, Msg: fmt.Sprintf("is too long for a program's arguments: at most %d KiB", maxArgument>>10), Type: "value"}}
	}
	for i := range faults {
		faults[i].Loc = slices.Insert(faults[i].Loc, 0, any(p.Name))
	}
	return faults
}
