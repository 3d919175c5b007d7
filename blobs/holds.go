package blobs

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"molrun/app"
	"molrun/blobs/result"
)

// holds counts the uploaded files in use by archives being sent. A file that is removed
// during that time stays until the last of these archives has been sent.
type holds struct {
	mu      sync.Mutex
	counts  map[string]int
	removed map[string]bool
}

// removeHeld removes a file immediately, or after its last hold is released.
func (d *Dir) removeHeld(name string) error {
	h := &d.holds
	h.mu.Lock()
	defer h.mu.Unlock() // no hold can start before the removal is done
	if h.counts[name] > 0 {
		h.removed[name] = true
		return nil
	}
	return d.root.Remove(name)
}

// holdInputs keeps the uploads among the inputs of an archive readable until release is
// called. It returns NotFound if one has already been removed.
func (d *Dir) holdInputs(inputs []app.InputFile) (release func(), err error) {
	names := map[string]bool{}
	for _, f := range inputs {
		if f.Job == "" {
			names[uploadName(f.Upload, f.Generation)] = true
		}
	}
	d.holdFiles(names)
	for name := range names {
		if _, err := d.root.Lstat(name); err != nil {
			d.releaseFiles(names)
			return nil, result.NotFound(fmt.Errorf("hold input: %w", err))
		}
	}
	return func() { d.releaseFiles(names) }, nil
}

func (d *Dir) holdFiles(names map[string]bool) {
	h := &d.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range names {
		h.counts[name]++
	}
}

func (d *Dir) releaseFiles(names map[string]bool) {
	h := &d.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range names {
		if h.counts[name]--; h.counts[name] > 0 {
			continue
		}
		delete(h.counts, name)
		if !h.removed[name] {
			continue
		}
		delete(h.removed, name)
		if err := d.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.options.Log.Error().Err(err).Msg("deferred removal of an upload failed") // left to CollectGarbage
		}
	}
}
