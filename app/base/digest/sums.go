package digest

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// SumsWriter writes a file of digests, one per line: digest, two spaces, path. If a path
// contains line breaks or backslashes, they are escaped and the line starts with a
// backslash.
type SumsWriter struct {
	file   *os.File
	buffer *bufio.Writer
	sum    func() string // digest of the whole file
}

// CreateSums creates a file of digests.
func CreateSums(path string) (*SumsWriter, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	return &SumsWriter{
		file: f, buffer: bufio.NewWriterSize(io.MultiWriter(f, h), 64<<10),
		sum: func() string { return hex.EncodeToString(h.Sum(nil)) },
	}, nil
}

var (
	escapeSum   = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)
	unescapeSum = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r")
)

// Add writes a line.
func (s *SumsWriter) Add(path, sha256 string) error {
	escaped := escapeSum.Replace(path)
	if escaped != path {
		sha256 = `\` + sha256
	}
	_, err := fmt.Fprintf(s.buffer, "%s  %s\n", sha256, escaped)
	return err
}

// Finish makes the file durable and returns its own digest.
func (s *SumsWriter) Finish() (string, error) {
	err := s.buffer.Flush()
	return s.sum(), errors.Join(err, s.file.Sync(), s.Close())
}

// Close closes the file. It can be called more than once.
func (s *SumsWriter) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// ReadSums returns the digests by path, and the digest of the file itself.
func ReadSums(path string) (sums map[string]string, digest string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	h := sha256.New()
	sums = map[string]string{}
	lines := bufio.NewReader(io.TeeReader(f, h))
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			return sums, hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, "", err
		}
		name, sum, ok := readSum(line)
		if !ok {
			return nil, "", fmt.Errorf("%s is damaged: %q is not a digest and path", path, line)
		}
		sums[name] = sum
	}
}

func readSum(line string) (path, sum string, ok bool) {
	body, ended := strings.CutSuffix(line, "\n")
	body, escaped := strings.CutPrefix(body, `\`)
	sum, path, found := strings.Cut(body, "  ")
	if escaped {
		path = unescapeSum.Replace(path)
	}
	digest, err := hex.DecodeString(sum)
	return path, sum, ended && found && err == nil && len(digest) == sha256.Size && filepath.IsLocal(filepath.FromSlash(path))
}
