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

// maxArgument bounds what one setting may add to a command line. Linux accepts
// 128 KiB for one argument.
const maxArgument = 100 << 10

// Parameters are the settings that an algorithm declares.
type Parameters []Parameter

// Named returns the parameter of that name, nil if there is none.
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

// noteUnknown notes the name of a parameter that does not exist.
func (all Parameters) noteUnknown(r *tomltree.Reader, line int, name string) {
	if near := plaintext.Nearest(name, all.names()); near != "" {
		r.Mistakef(line, "no parameter is named %q; did you mean %q?", name, near)
		return
	}
	r.Mistakef(line, "no parameter is named %q", name)
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
	File                    []string        // extensions; not empty: the setting refers to a file
	Many                    bool            // the setting is a list of files
	least, most             int             // files of a list
	Default                 json.RawMessage // nil: none
	Schema                  json.RawMessage // JSON Schema of the value
	Maker                   *Maker          // the job that makes the file, if settings ask for it; nil: none

	compiled *schema.Schema    // nil: it is invalid
	content  *content.Want     // of a file; nil: anything
	fallback *strictjson.Value // Default
	argument bool              // the value goes into an argument or a variable
}

// Accepts reports whether the parameter accepts a file of this name.
func (p *Parameter) Accepts(filename string) bool {
	name := strings.ToLower(path.Base(filename))
	for _, ext := range p.File {
		if len(name) > len(ext) && strings.HasSuffix(name, strings.ToLower(ext)) {
			return true
		}
	}
	return false
}

// MayAccept reports whether the parameter may accept a file whose name a pattern matches,
// where each * stands for any text.
func (p *Parameter) MayAccept(pattern string) bool {
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

// optional reports whether the parameter may have no value, even after defaults
// are filled in.
func (p *Parameter) optional() bool {
	return !p.Required && p.fallback == nil || p.compiled.TakesNull()
}

// faults returns all that is wrong with a value of the parameter; paths begin
// with its name.
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
