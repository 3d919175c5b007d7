package host

import (
	"context"
	"sync"
	"time"

	"molrun/app/server/config"
	"molrun/app/task/container"
	"molrun/app/task/modules"
	"molrun/app/task/protocol"
)

// places looks for container images and environment modules. A runtime takes a tenth of a
// second to answer, so that answers are kept for a while: one that an image is missing only
// briefly, because somebody may be about to load it.
type places struct {
	containers  container.Options
	modulesInit string

	mu     sync.Mutex // also while a runtime is asked: one at a time
	images map[string]answer
}

// answer is what was last found out about an image; "": it is here.
type answer struct {
	lacks string
	until time.Time
}

const (
	hereFor    = 30 * time.Second
	missingFor = 2 * time.Second
	askTimeout = 5 * time.Second
)

func newPlaces(c config.Config) *places {
	return &places{containers: Containers(c), modulesInit: c.Modules.Init, images: map[string]answer{}}
}

// lacks says what is missing to run programs there.
func (p *places) lacks(s protocol.Sandbox) []string {
	var lacks []string
	if len(s.Modules) > 0 {
		if _, err := modules.Init(p.modulesInit); err != nil {
			lacks = append(lacks, err.Error())
		}
	}
	if s.Image == "" {
		return lacks
	}
	if text := p.image(s.Image); text != "" {
		lacks = append(lacks, text)
	}
	return lacks
}

func (p *places) image(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.images[name]; time.Now().Before(known.until) {
		return known.lacks
	}
	found, keep := answer{}, hereFor
	if err := p.find(name); err != nil {
		found.lacks, keep = err.Error(), missingFor
	}
	found.until = time.Now().Add(keep)
	p.images[name] = found // bounded by the catalogue
	return found.lacks
}

// find looks for the runtime, and for the image unless that is fetched when it is missing.
func (p *places) find(name string) error {
	runtime, err := p.containers.FindRuntime(name)
	if err != nil || p.containers.Pull == container.PullMissing && !container.IsFile(name) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	_, err = runtime.Image(ctx, name)
	return err
}
