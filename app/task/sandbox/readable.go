package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"molrun/app/task/process"
)

// readable returns what a step's program can read in addition to the system's own
// folders: what the algorithm lists, the files named by its commands, molrun itself (see
// Config), and what belongs to the program, to its interpreters and to the targets of
// symbolic links on the way.
func readable(program, own, work string, env, listed, named []string) ([]string, error) {
	for _, path := range listed {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%s, listed in read under [sandbox] of the algorithm, can't be read: %s", path, process.SystemCause(err))
		}
	}
	read := slices.Clone(listed)
	for _, path := range named {
		if !isReadable(path, work, read) {
			read = append(read, path)
		}
	}
	if program == process.Self {
		return read, nil // the first process inside has it open
	}
	if own == "" {
		own, _ = os.Executable() // "" does not exist
	}
	if exists(own) {
		read = append(read, own)
	}
	for _, path := range chain(program, env, work) {
		if !isReadable(path, work, read) {
			read = append(read, programFolders(path)...)
		}
	}
	return read, nil
}

// namedFiles returns the files that commands name. It excludes folders, which might hold
// more than is meant, hidden entries of /etc, hidden paths, personal secrets, and links
// to these. An algorithm that needs one of them lists it.
func namedFiles(paths, hidden []string) (files []string) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if !slices.ContainsFunc(links(path), func(p string) bool {
			return isPrivate(p) || isBelow(p, etc) || secret(filepath.Base(p)) || isHidden(p, hidden)
		}) {
			files = append(files, path)
		}
	}
	return files
}

// secretNames are patterns of files that hold secrets in any folder.
var secretNames = []string{
	"molrun*", "ssh_host_*", "credentials", "netrc",
	"*.key", "*.keytab", "*.p12", "*.pfx", "*_rsa", "*_ed25519", "*_ecdsa",
}

func secret(name string) bool {
	return slices.ContainsFunc(secretNames, func(pattern string) bool {
		matches, _ := filepath.Match(pattern, name) // a test checks the patterns
		return matches
	})
}

func isReadable(path, work string, read []string) bool {
	covers := func(folder string) bool { return isBelow(path, folder) }
	return covers(work) || slices.ContainsFunc(systemFolders, covers) || slices.ContainsFunc(read, covers)
}

func isBelow(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// programFolders returns what belongs to a program: the whole environment if the program
// is in a conda, Python or pyenv environment or one laid out like /usr, otherwise its
// folder, or only the file if that folder is as broad as a home directory or might hold
// secrets.
func programFolders(program string) []string {
	folder := filepath.Dir(program)
	prefix := filepath.Dir(folder)
	bin := filepath.Base(folder) == "bin"
	switch {
	case isPrivate(program), isWide(folder):
		return []string{program}
	case isWide(prefix):
		return []string{folder}
	case bin && filepath.Base(prefix) == ".local": // its share folder belongs to the user
		return existing(folder, filepath.Join(prefix, "lib"))
	case bin && isEnvironment(prefix), filepath.Base(folder) == "shims" && exists(filepath.Join(prefix, "libexec", "pyenv")):
		return []string{prefix}
	}
	return []string{folder}
}

// privateFolders hold personal settings and secrets, and never whole programs.
var privateFolders = []string{".ssh", ".gnupg", ".aws", ".config", ".kube", ".docker", ".netrc", ".password-store"}

func isPrivate(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return slices.Contains(privateFolders, part) })
}

// isWide reports whether a folder holds more than programs: a top-level folder or a home
// directory.
func isWide(folder string) bool {
	if strings.Count(folder, "/") < 2 || filepath.Dir(folder) == "/home" {
		return true
	}
	return slices.ContainsFunc(append([]string{".bashrc", ".profile", ".bash_history"}, privateFolders...), func(name string) bool {
		return exists(filepath.Join(folder, name))
	})
}

func isEnvironment(prefix string) bool {
	return exists(filepath.Join(prefix, "conda-meta")) || exists(filepath.Join(prefix, "pyvenv.cfg")) ||
		exists(filepath.Join(prefix, "lib")) || exists(filepath.Join(prefix, "lib64"))
}

func existing(paths ...string) []string {
	return slices.DeleteFunc(paths, func(p string) bool { return !exists(p) })
}
