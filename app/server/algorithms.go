package server

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/algorithm"
	"molrun/app/algorithm/builtin"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
	"molrun/app/job/audit"
	"molrun/app/server/config"
	"molrun/app/server/host"
	"molrun/web"
)

// offer manages the algorithms that the service offers. It reads the site's algorithm
// files at startup and on reload.
type offer struct {
	config    config.Config
	log       zerolog.Logger
	fixed     bool                 // the service reads no algorithm files
	catalogue *algorithm.Catalogue // algorithms on offer
	keep      func()               // copies the folders of the algorithms on offer

	mu   sync.Mutex // held while reading files
	last web.AlgorithmsRead
}

// readFiles reads the site's files. For a file that now has errors, it keeps the
// previously read version.
func (o *offer) readFiles(before []*algorithm.File) (*algorithm.Catalogue, error) {
	read := web.AlgorithmsRead{ReadAt: unit.At(time.Now()), Mistakes: []web.AlgorithmMistake{}}
	read.Added, read.Changed, read.Removed = []string{}, []string{}, []string{}
	next, err := builtin.Reload(o.config.Algorithms, o.config.Catalogue, before, func(m algorithm.Mistake, kept *algorithm.File) {
		mistake := web.AlgorithmMistake{File: m.File, Line: m.Line, Message: m.Msg}
		what := "skipped algorithm file: "
		if kept != nil {
			mistake.Kept, what = kept.Type+" "+kept.Version, "invalid algorithm file; keeping the previous version: "
		}
		read.Mistakes = append(read.Mistakes, mistake)
		o.log.Error().Str("file", m.File).Int("line", m.Line).Str("kept", mistake.Kept).Msg(what + m.Msg)
	})
	if err != nil {
		return nil, err
	}
	if before != nil {
		read.Added, read.Changed, read.Removed = compareOffers(before, next.ReadNow())
	}
	o.last = read
	return next, nil
}

// compareOffers returns the types that were added, changed and removed.
func compareOffers(before, after []*algorithm.File) (added, changed, removed []string) {
	added, changed, removed = []string{}, []string{}, []string{}
	digests := map[string]string{}
	for _, a := range before {
		digests[a.Type+" "+a.Version] = a.Digest
	}
	for _, a := range after {
		name := a.Type + " " + a.Version
		switch old, known := digests[name]; {
		case !known:
			added = append(added, name)
		case old != a.Digest:
			changed = append(changed, name)
		}
		delete(digests, name)
	}
	for name := range digests {
		removed = append(removed, name)
	}
	slices.Sort(removed)
	return added, changed, removed
}

// reload reads the site's files again and offers the new versions from now on. Submitted
// jobs keep the versions they were submitted with.
func (o *offer) reload() (web.AlgorithmsRead, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fixed {
		return web.AlgorithmsRead{}, fault.Errorf(fault.Unavailable, "this service does not read algorithm files")
	}
	next, err := o.readFiles(o.catalogue.ReadNow())
	if err != nil {
		o.log.Error().Err(err).Msg("could not read the algorithm files; keeping the previous ones")
		return web.AlgorithmsRead{}, fault.Errorf(fault.Invalid, "%v; keeping the previous algorithms", fault.Text(err))
	}
	o.catalogue.Replace(next)
	o.keep()
	read := o.last
	o.log.Info().Strs("added", read.Added).Strs("changed", read.Changed).Strs("removed", read.Removed).Int("mistakes", len(read.Mistakes)).
		Msg("the algorithm files were read again")
	return read, nil
}

// lastRead returns the outcome of the last read of the files.
func (o *offer) lastRead() web.AlgorithmsRead {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// reloadOnHangup reloads the certificate and the algorithm files on each SIGHUP.
func (o *offer) reloadOnHangup(ctx context.Context, hangup <-chan os.Signal, cert *host.Certificate, note func(audit.Entry)) {
	for {
		select {
		case <-hangup:
			if cert != nil {
				cert.Reload()
			}
			entry := audit.Entry{Time: unit.At(time.Now()), Action: "algorithms.reload", Result: "ok", Remote: "SIGHUP"}
			read, err := o.reload()
			if err != nil {
				entry.Result = string(fault.CodeOf(err))
			}
			entry.Object = read.String()
			note(entry)
		case <-ctx.Done():
			return
		}
	}
}

// addRunningService adds the address of the running service to the error for a data directory in
// use.
func addRunningService(ctx context.Context, err error, data string, listener func(context.Context) (string, error)) error {
	if !errors.Is(err, fault.Unavailable) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	address, unknown := listener(ctx)
	if unknown != nil || address == "" {
		return err
	}
	return fault.Errorf(fault.Unavailable, "%s (%s); a service answers at %s", fault.Text(err), data, address)
}
