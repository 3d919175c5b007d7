package builtin

import (
	"bytes"
	"context"
	_ "embed" // for the skeleton template
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
	"time"

	"molrun/app/algorithm/folder"
	"molrun/app/base/durable"
	"molrun/app/base/fault"
)

//go:embed skeleton.toml
var skeleton string

// Skeleton holds the values that are inserted into the file of a new algorithm.
type Skeleton struct {
	Type, Program, Version string
	VersionFound           bool   // the program reported its version
	Pattern                string // regular expression that finds the version
}

// typeName matches valid type names.
var typeName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// versionPattern matches the first dotted number in a program's output.
const versionPattern = `([0-9]+(?:\.[0-9]+)+)`

// askTime limits how long a program can take to report its version.
const askTime = 10 * time.Second

// NewSkeleton returns a skeleton for a program. It runs the program to query its version.
func NewSkeleton(ctx context.Context, program, typ string) (s Skeleton, err error) {
	if strings.ContainsAny(program, "\"\\{}\n\t ") || program == "" {
		return s, fault.Errorf(fault.Invalid, "%q is not a valid program name", program)
	}
	if typ == "" {
		typ = strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(filepath.Base(program)), "-"), "-")
	}
	if !typeName.MatchString(typ) {
		return s, fault.Errorf(fault.Invalid, "%q is not a valid type: use lower-case letters, digits and hyphens, as in tm-align", typ)
	}
	s = Skeleton{Type: typ, Program: program, Version: "1", Pattern: versionPattern}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	ask := exec.CommandContext(ctx, program, "--version")
	ask.WaitDelay = time.Second
	said, _ := ask.CombinedOutput() // programs without --version print something else or nothing
	if found := regexp.MustCompile(versionPattern).FindSubmatch(said[:min(len(said), 64<<10)]); found != nil {
		s.Version, s.VersionFound = string(found[1]), true
	}
	return s, nil
}

// Write creates the folder of the algorithm in dir, with its file and an example. It
// returns the path of the folder. It never overwrites an existing folder.
func (s Skeleton) Write(dir string) (path string, err error) {
	var text bytes.Buffer
	if err := template.Must(template.New("skeleton").Parse(skeleton)).Execute(&text, s); err != nil {
		return "", err
	}
	if err := durable.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path = filepath.Join(dir, s.Type)
	if _, err := os.Lstat(path); err == nil {
		return "", fault.Errorf(fault.Invalid, "%s already exists; choose another type with --type", path)
	}
	made, err := os.MkdirTemp(dir, ".molrun-new-")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(made))
		}
	}()
	for name, content := range map[string][]byte{folder.Main: text.Bytes(), "example/input.txt": []byte("replace this file with a small input\n")} {
		file := filepath.Join(made, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return "", err
		}
	}
	if err := os.Chmod(made, 0o755); err != nil {
		return "", err
	}
	if err := os.Rename(made, path); err != nil {
		return "", fmt.Errorf("make %s: %w", path, err)
	}
	return path, nil
}
