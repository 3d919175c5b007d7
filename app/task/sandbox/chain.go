package sandbox

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"

	"molrun/app/task/process"
)

const (
	mostLinks        = 40 // like the kernel
	mostInterpreters = 4
	longestFirstLine = 256
)

// chain returns the files that starting a program takes: itself, what symbolic links lead
// to, and the interpreter that its first line names, with the same of that.
func chain(program string, env []string, work string) (files []string) {
	for range mostInterpreters {
		if isBelow(program, work) { // users write there
			break
		}
		files = append(files, links(program)...)
		if program = interpreter(program, env); program == "" {
			break
		}
	}
	return files
}

// links returns the file and all that symbolic links on the way to it name.
func links(path string) (files []string) {
	for range mostLinks {
		files = append(files, path)
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	if at, err := filepath.EvalSymlinks(files[0]); err == nil && at != files[len(files)-1] {
		files = append(files, at) // a folder is a link
	}
	return files
}

// interpreter returns the program that a script's first line names, "" if there is none.
func interpreter(script string, env []string) string {
	f, err := os.Open(script)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	line, _ := io.ReadAll(io.LimitReader(f, longestFirstLine)) // a short one is no script
	line, _, _ = bytes.Cut(line, []byte("\n"))
	text, found := strings.CutPrefix(string(line), "#!")
	words := strings.Fields(text)
	if !found || len(words) == 0 || !filepath.IsAbs(words[0]) {
		return ""
	}
	if filepath.Base(words[0]) != "env" {
		return words[0]
	}
	for _, word := range words[1:] {
		if strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
			continue
		}
		if path, err := process.LookUp([]string{word}, env, "/"); err == nil {
			return path
		}
		return ""
	}
	return ""
}
