package algorithm

import (
	"cmp"
	"encoding/json"
	"slices"

	"molrun/app/algorithm/results"
	"molrun/app/task/protocol"
)

// View is an algorithm as clients see it. Listings omit the Detail.
type View struct {
	Type        string   `json:"type"`
	Version     string   `json:"version"`
	Versions    []string `json:"versions"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Categories  []string `json:"categories"`
	Functions   []string `json:"functions"`
	Keywords    []string `json:"keywords,omitempty"`
	Takes       []string `json:"takes"` // extensions of its input files
	Ready       bool     `json:"ready"`
	Missing     []string `json:"missing"`
	Install     string   `json:"install,omitempty"` // only while something is missing
	Status      string   `json:"status,omitempty"`  // Untested or empty

	*Detail
}

// Detail is what a client needs to build a settings form.
type Detail struct {
	Default           bool             `json:"default"`
	Cite              []string         `json:"cite"`
	Executor          string           `json:"executor"`
	MaxRuntimeSeconds int64            `json:"maxRuntimeSeconds"`
	Retries           int              `json:"retries"`
	Resumable         bool             `json:"resumable"`
	Retry             *Retry           `json:"retry,omitempty"`
	Resources         ResourcesView    `json:"resources"`
	Sandbox           protocol.Sandbox `json:"sandbox"`
	Parameters        []ParameterView  `json:"parameters"`
	Metrics           results.Metrics  `json:"metrics"`
	Views             results.Views    `json:"views"`
	Outputs           results.Outputs  `json:"outputs"`
	Schema            json.RawMessage  `json:"schema"` // JSON Schema 2020-12 of the settings
	Example           json.RawMessage  `json:"example,omitempty"`
}

// ResourcesView lists what a job needs, as numbers or "{settings.NAME}".
type ResourcesView struct {
	CPUs   any `json:"cpus"`
	Memory any `json:"memory"` // bytes
	GPUs   any `json:"gpus"`

	GPUMemory int64 `json:"gpuMemory,omitempty"` // bytes per GPU
}

// ParameterView describes a parameter for settings forms. Parameters keep the order of
// the file.
type ParameterView struct {
	Name     string          `json:"name"`
	Title    string          `json:"title"`
	Type     any             `json:"type,omitempty"` // as in JSON Schema, one or a list; if absent, see Schema
	Unit     string          `json:"unit,omitempty"`
	Help     string          `json:"help,omitempty"`
	Required bool            `json:"required"`
	Advanced bool            `json:"advanced"`
	File     []string        `json:"file,omitempty"`    // accepted extensions
	Content  string          `json:"content,omitempty"` // kind of file content
	Default  json.RawMessage `json:"default,omitempty"`
	Schema   json.RawMessage `json:"schema"`
}

// Summary returns the algorithm for a listing. versions are all versions of its type;
// missing is the result of Missing for the target machine.
func (a *File) Summary(missing, versions []string) View {
	v := View{
		Type: a.Type, Version: a.Version, Versions: versions, Title: a.Title, Description: a.Description,
		Categories: a.Categories, Functions: a.Functions, Keywords: a.Keywords, Takes: a.takes(), Ready: len(missing) == 0, Missing: missing, Status: a.Status,
	}
	if !v.Ready {
		v.Install = a.Install
	}
	return v
}

// takes returns the extensions of all input files.
func (a *File) takes() []string {
	all := []string{}
	for _, p := range a.Parameters {
		all = append(all, p.File...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// View returns everything that clients are allowed to see of the algorithm.
func (a *File) View(missing, versions []string) View {
	v := a.Summary(missing, versions)
	v.Detail = &Detail{
		Default: a.Default, Cite: a.Cite, Executor: a.Executor, MaxRuntimeSeconds: int64(a.MaxRuntime.Seconds()),
		Retries: a.Retries, Resumable: a.Resumable, Retry: a.Retry, Sandbox: a.Sandbox, Schema: a.schema,
		Resources:  ResourcesView{a.resources.cpus.view(), a.resources.memory.view(), a.resources.gpus.view(), a.resources.gpuMemory},
		Parameters: []ParameterView{}, Metrics: a.Metrics, Views: a.Views, Outputs: a.Outputs,
	}
	if a.Example != nil {
		v.Example = a.Example.Settings
	}
	for _, p := range a.Parameters {
		v.Parameters = append(v.Parameters, ParameterView{
			Name: p.Name, Title: cmp.Or(p.Title, p.Name), Type: p.compiled.Type(), Unit: p.Unit, Help: p.Help, Required: p.Required,
			Advanced: p.Advanced, File: p.File, Content: p.contentKind(), Default: p.Default, Schema: p.Schema,
		})
	}
	return v
}

func (r resource) view() any {
	if r.formula != nil {
		return r.formula.Text
	}
	if r.setting == "" {
		return r.amount
	}
	return "{settings." + r.setting + "}" + r.suffix
}
