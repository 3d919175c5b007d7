package command

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"molrun/app/base/strictjson"
)

// Condition is an "if": of a setting or file, or of the job's GPUs.
type Condition struct {
	Kind, Name string   // settings or files, and which; or gpus
	Is         [][]byte // values as plain JSON, of which the setting has one; nil: any
	Ext        []string // extensions, of which the one file has one; nil: any
}

// Holds reports whether the condition is met. The path of a file ends with the name of its
// setting and a declared extension. A setting without Is must have a value
// other than null, false and an empty list: 0 and "" are values.
func (c *Condition) Holds(v *Values) bool {
	switch c.Kind {
	case "gpus":
		return v.Named["gpus"] != "0"
	case "files":
		paths := v.Files[c.Name]
		return len(paths) > 0 && (c.Ext == nil || slices.Contains(c.Ext, strings.TrimPrefix(filepath.Base(paths[0]), c.Name)))
	}
	value := v.Settings.Member(c.Name)
	if c.Is != nil {
		return value != nil && slices.ContainsFunc(c.Is, func(is []byte) bool { return bytes.Equal(is, strictjson.AppendPlain(nil, value)) })
	}
	if value != nil && value.Kind == strictjson.Array && len(value.Items) == 0 {
		return false
	}
	return value != nil && value.Kind != strictjson.Null && (value.Kind != strictjson.Bool || value.Text == "true")
}
