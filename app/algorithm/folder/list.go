package folder

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// heading starts the list of a folder's files, which is appended to the algorithm file as
// comments. The digest of both together is the digest of the algorithm.
const heading = "# molrun: files of this algorithm's folder"

// HasList reports whether an algorithm file contains a list of files. Only molrun writes
// such lists.
func HasList(text []byte) bool { return bytes.Contains(text, []byte("\n"+heading+"\n")) }

// Append appends the list to the text of the algorithm file, and sets Digest to the
// digest of both.
func (f *Folder) Append(text []byte) []byte {
	b := append(bytes.Clone(text), "\n"+heading+"\n"...)
	for _, file := range f.Files {
		mode := "-"
		if file.Executable {
			mode = "x"
		}
		b = fmt.Appendf(b, "# %s %s %d %s\n", file.SHA256, mode, file.Size, file.Path)
	}
	sum := sha256.Sum256(b)
	f.Digest = hex.EncodeToString(sum[:])
	return b
}

// Split undoes Append. The folder is nil if the text has no list.
func Split(listed []byte) (text []byte, f *Folder, err error) {
	text, list, found := bytes.Cut(listed, []byte("\n"+heading+"\n"))
	if !found {
		return listed, nil, nil
	}
	sum := sha256.Sum256(listed)
	f = &Folder{Digest: hex.EncodeToString(sum[:])}
	for line := range strings.Lines(string(list)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 5)
		if len(parts) != 5 || parts[0] != "#" {
			return nil, nil, fmt.Errorf("the list of the folder's files is damaged: %.200q", line)
		}
		size, err := strconv.ParseInt(parts[3], 10, 64)
		if err != nil {
			return nil, nil, fmt.Errorf("the list of the folder's files is damaged: %.200q", line)
		}
		f.Files = append(f.Files, File{Path: parts[4], Executable: parts[2] == "x", Size: size, SHA256: parts[1]})
	}
	return text, f, nil
}
