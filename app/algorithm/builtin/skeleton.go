package builtin

import (
	"bytes"
	"context"
	_ "embed" // the text of a skeleton
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

// Skeleton is what the file of a new algorithm begins with.
type Skeleton struct {
	Type, Program, Version string
	Asked                  bool   // the program has said its version
	Pattern                string // which finds it
}

// typeName is how types are called.
var typeName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// versionPattern finds the first number with points in what a program says.
const versionPattern = `([0-9]+(?:\.[0-9]+)+)`

// askTime bounds how long a program takes to say its version.
const askTime = 10 * time.Second

// NewSkeleton returns a skeleton for a program, which is asked for its version.
func NewSkeleton(ctx context.Context, program, typ string) (s Skeleton, err error) {
	if strings.ContainsAny(program, "\"\\{}\n\t ") || program == "" {
		return s, fault.Errorf(fault.Invalid, "%q is no name of a program", program)
	}
	if typ == "" {
		typ = strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(filepath.Base(program)), "-"), "-")
	}
	if !typeName.MatchString(typ) {
		return s, fault.Errorf(fault.Invalid, "%q is no type: use lower-case letters, digits and hyphens, as in tm-align", typ)
	}
	s = Skeleton{Type: typ, Program: program, Version: "1", Pattern: versionPattern}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	ask := exec.CommandContext(ctx, program, "--version")
	ask.WaitDelay = time.Second
	said, _ := ask.CombinedOutput() // programs without --version say something else, or nothing
	if found := regexp.MustCompile(versionPattern).FindSubmatch(said[:min(len(said), 64<<10)]); found != nil {
		s.Version, s.Asked = string(found[1]), true
	}
	return s, nil
}

// Write makes the folder of the algorithm in dir, with an example beside its file. It
// returns the folder's path. What is there already stays.
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
		return "", fault.Errorf(fault.Invalid, "%s is there already; choose another type with --type", path)
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
	for name, content := range map[string][]byte{folder.Main: text.Bytes(), "example/input.txt": []byte("replace me by a small input\n")} {
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
