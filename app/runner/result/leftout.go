package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"molrun/app"
	"molrun/app/base/durable"
)

// leftOutFile, in the attempt's directory, records what is left out of the result. It is
// written before anything is removed.
const leftOutFile = "left-out.json"

const (
	shownPaths = 20  // maximum number of listed paths
	shownBytes = 300 // maximum length of each
)

const unreadable = "not readable by the service: it belongs to another user"

// shownPath returns a program's path in a form that is safe to display.
func shownPath(path string) string {
	names := strings.Split(path, "/")
	for i := range names {
		names[i] = safeName(names[i])
	}
	path = strings.Join(names, "/")
	if len(path) > shownBytes {
		path = strings.ToValidUTF8(path[:shownBytes], "") + "…"
	}
	return path
}

// kindOf names an entry that is not a folder.
func kindOf(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "a file"
	case fs.ModeSymlink:
		return "a link"
	case fs.ModeNamedPipe:
		return "a pipe"
	case fs.ModeSocket:
		return "a socket"
	}
	return "a device"
}

// keepLeftOut records what is left out, unless an interrupted collection already has,
// which may also have removed the entries that it found.
func (c *Collection) keepLeftOut(found map[string]string) error {
	if err := c.readLeftOut(); err != nil || c.left.Count > 0 || len(found) == 0 {
		return err
	}
	c.left.Count = len(found)
	paths := slices.Sorted(maps.Keys(found))
	for _, path := range paths[:min(len(paths), shownPaths)] {
		c.left.Paths = append(c.left.Paths, app.LeftOutPath{Path: shownPath(path), Reason: found[path]})
	}
	c.Log.Warn().Int("count", c.left.Count).Interface("paths", c.left.Paths).Msg("left out of the result")
	data, err := json.Marshal(c.left)
	if err != nil {
		return err
	}
	attempt, err := os.OpenRoot(c.attemptDir())
	if err != nil {
		return err
	}
	return errors.Join(durable.Replace(attempt, leftOutFile, data), attempt.Close())
}

// readLeftOut reads the list of an earlier collection.
func (c *Collection) readLeftOut() error {
	f, err := os.OpenFile(filepath.Join(c.attemptDir(), leftOutFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var left app.LeftOut
	if json.NewDecoder(io.LimitReader(f, 1<<20)).Decode(&left) == nil { // otherwise the service did not write it
		c.left = left
	}
	return nil
}

// leftOut returns the list for the record, or nil if nothing is left out.
func (c *Collection) leftOut() *app.LeftOut {
	if c.left.Count == 0 {
		return nil
	}
	return &c.left
}

// logLeftOut appends what is left out to the log, unless the log already ends with it.
func logLeftOut(log *os.File, left app.LeftOut) error {
	if left.Count == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("molrun: left out of the result:\n")
	for _, p := range left.Paths {
		fmt.Fprintf(&b, "  %s: %s\n", p.Path, p.Reason)
	}
	if more := left.Count - len(left.Paths); more > 0 {
		fmt.Fprintf(&b, "  and %d more\n", more)
	}
	text := b.String()
	end, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	last := make([]byte, min(end, int64(len(text))))
	if _, err := log.ReadAt(last, end-int64(len(last))); err != nil || string(last) == text {
		return err
	}
	if len(last) > 0 && last[len(last)-1] != '\n' {
		text = "\n" + text
	}
	_, err = log.WriteString(text)
	return err
}
