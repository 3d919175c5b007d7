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

// chain returns the files needed to start a program: the program itself, the targets of
// symbolic links, and the interpreter named in its first line, with the same for that.
func chain(program string, env []string, work string) (files []string) {
	for range mostInterpreters {
		if isBelow(program, work) { // users can write there
			break
		}
		files = append(files, links(program)...)
		if program = interpreter(program, env); program == "" {
			break
		}
	}
	return files
}

// links returns the path and the targets of all symbolic links on the way to the file.
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
		files = append(files, at) // a folder on the way is a link
	}
	return files
}

// interpreter returns the program named in a script's first line, or "" if there is none.
func interpreter(script string, env []string) string {
	f, err := os.Open(script)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	line, _ := io.ReadAll(io.LimitReader(f, longestFirstLine)) // a short file is not a script
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
