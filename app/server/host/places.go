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

// runtimes looks up container images and environment modules. A runtime takes a tenth of
// a second to respond, so results are cached. A missing image is cached only briefly,
// because it might be about to be loaded.
type runtimes struct {
	containers  container.Options
	modulesInit string

	mu     sync.Mutex // also held during a query, so that only one runs at a time
	images map[string]answer
}

// answer is the cached result for an image; lacks is "" if it is available.
type answer struct {
	lacks string
	until time.Time
}

const (
	hereFor    = 30 * time.Second
	missingFor = 2 * time.Second
	askTimeout = 5 * time.Second
)

func newPlaces(c config.Config) *runtimes {
	return &runtimes{containers: Containers(c), modulesInit: c.Modules.Init, images: map[string]answer{}}
}

// missing lists what is missing to run programs in the sandbox.
func (p *runtimes) missing(s protocol.Sandbox) []string {
	var missing []string
	if len(s.Modules) > 0 {
		if _, err := modules.Init(p.modulesInit); err != nil {
			missing = append(missing, err.Error())
		}
	}
	if s.Image == "" {
		return missing
	}
	if text := p.image(s.Image); text != "" {
		missing = append(missing, text)
	}
	return missing
}

func (p *runtimes) image(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.images[name]; time.Now().Before(known.until) {
		return known.lacks
	}
	found, keep := answer{}, hereFor
	if err := p.findProgram(name); err != nil {
		found.lacks, keep = err.Error(), missingFor
	}
	found.until = time.Now().Add(keep)
	p.images[name] = found // the catalogue limits their number
	return found.lacks
}

// findProgram looks up the runtime, and the image unless missing images are pulled.
func (p *runtimes) findProgram(name string) error {
	runtime, err := p.containers.FindRuntime(name)
	if err != nil || p.containers.Pull == container.PullMissing && !container.IsFile(name) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	_, err = runtime.Image(ctx, name)
	return err
}
