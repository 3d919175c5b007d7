package gpu

import (
	"slices"
	"strings"

	"molrun/app"
)

// device is what a job can be given: a card, or an instance of one. It stays known while it
// is lost, until the service ends.
type device struct {
	name   string // UUID; of a lost card that was never seen, its place
	card   string // UUID of the card; "": unknown
	bus    string
	index  string // of the card when it was first seen
	memory int64  // bytes; 0: unknown
	used   int64
	load   int
	fault  app.GPUFault
	text   string
}

// isCalled reports whether the configuration means a device by a name: its own, or that of its
// card.
func (d *device) isCalled(name string) bool {
	return name == d.name || name == d.card || name == d.index || name == d.bus
}

// devices returns what jobs can be given of a listing.
func (l *listing) devices() (all []*device) {
	for _, c := range l.cards {
		d := device{name: c.uuid, card: c.uuid, bus: c.bus, index: c.index, memory: c.memory, used: c.used, load: c.load, fault: c.fault, text: c.text}
		switch {
		case c.uuid == "":
			continue
		case !c.divided:
			all = append(all, &d)
			continue
		case len(l.instances[c.uuid]) == 0 && c.fault == "":
			d.fault, d.text = app.GPUUndivided, "is in MIG mode, but has no instances"
			all = append(all, &d)
		}
		for _, i := range l.instances[c.uuid] {
			in := d
			in.name, in.memory, in.used, in.load = i.uuid, i.memory, 0, 0 // those of the card are of all instances
			all = append(all, &in)
		}
	}
	return all
}

// update replaces the devices by those of a listing. What it does not list any more is kept
// with a fault.
func (w *Watcher) update(l *listing) {
	listed := l.devices()
	matched := map[*device]bool{}
	var devices []*device
	for _, d := range w.devices {
		if now := find(listed, d); now != nil {
			if !matched[now] {
				now.index = d.index // numbers change when a card is gone
				devices = append(devices, now)
			}
			matched[now] = true
			continue
		}
		if w.keep(d, l) {
			devices = append(devices, d)
		}
	}
	for _, d := range listed {
		ofInstances := func(known *device) bool { return known.card == d.name && known.name != d.name }
		if !matched[d] && (d.fault == "" || !slices.ContainsFunc(devices, ofInstances)) { // a lost card does not say that it is divided
			devices = append(devices, d)
		}
	}
	for _, c := range l.cards {
		if c.uuid == "" && !slices.ContainsFunc(devices, c.is) {
			devices = append(devices, c.place())
		}
	}
	slices.SortStableFunc(devices, func(a, b *device) int { return strings.Compare(a.bus, b.bus) })
	w.devices = devices
}

// find returns the listed device that a known one is.
func find(listed []*device, d *device) *device {
	i := slices.IndexFunc(listed, func(now *device) bool {
		return now.name == d.name || d.card == "" && (now.bus == d.bus || d.bus == "" && now.index == d.index)
	})
	if i < 0 {
		return nil
	}
	return listed[i]
}

// is reports whether a lost card is that of a device.
func (c card) is(d *device) bool {
	if c.bus != "" && d.bus != "" {
		return c.bus == d.bus
	}
	return c.index != "" && c.index == d.index
}

// place stands for a lost card that was never seen.
func (c card) place() *device {
	d := &device{name: c.bus, bus: c.bus, index: c.index, fault: c.fault, text: c.text}
	if d.name == "" {
		d.name = "GPU " + c.index
	}
	return d
}

// keep sets the fault of a device that is no longer listed, and reports whether it is still
// expected.
func (w *Watcher) keep(d *device, l *listing) bool {
	if i := slices.IndexFunc(l.cards, func(c card) bool { return c.uuid == "" && c.is(d) }); i >= 0 {
		d.fault, d.text = l.cards[i].fault, l.cards[i].text
		return true
	}
	i := slices.IndexFunc(l.cards, func(c card) bool { return c.uuid != "" && c.uuid == d.card })
	switch {
	case i >= 0 && l.cards[i].fault != "": // of its instances, nothing is known
		d.fault, d.text = l.cards[i].fault, l.cards[i].text
	case i >= 0:
		d.fault, d.text = app.GPULost, "does not exist any more: its card was divided anew"
		return w.held[d.name]
	case d.fault == app.GPULost:
	case !l.complete || len(l.devices()) == 0: // what it does not list may be there
		d.fault, d.text = app.GPUUnknown, "is not listed by nvidia-smi, which failed"
	default:
		d.fault, d.text = app.GPULost, "is no longer listed by nvidia-smi"
	}
	return true
}

// unanswered notes that nvidia-smi does not answer. The GPUs are most likely unusable, but
// what runs on them may go on.
func (w *Watcher) unanswered(err error) {
	w.notes, w.processes = []string{err.Error()}, nil
	for _, d := range w.devices {
		if d.fault == "" || d.fault == app.GPUUnknown {
			d.fault, d.text = app.GPUUnknown, "is unknown: "+err.Error()
		}
	}
}

// faultOf returns what is wrong with a device, nothing if jobs can be given it.
func (w *Watcher) faultOf(d *device) (app.GPUFault, string) {
	if d.fault != "" {
		return d.fault, d.text
	}
	if pids := w.strangers(d); len(pids) > 0 {
		return app.GPUOccupied, "is in use by other programs (PID " + strings.Join(pids, ", ") + ")"
	}
	return "", ""
}

// busyPercent is the share of a GPU's memory, or of its time, up to which the programs of
// others are tolerated.
const busyPercent = 10

// strangers returns the processes that occupy a device, none if a job has it or has had it
// since the look began.
func (w *Watcher) strangers(d *device) (pids []string) {
	if !w.holds || w.held[d.name] || !w.freedAt[d.name].Before(w.lookedAt) {
		return nil
	}
	var memory int64
	unknown := false
	for _, p := range w.processes {
		if p.gpu == d.name {
			pids = append(pids, p.pid)
			memory += p.memory
			unknown = unknown || p.memory == 0
		}
	}
	if unknown {
		memory = max(memory, d.used)
	}
	if d.load > busyPercent || d.memory > 0 && memory > d.memory/100*busyPercent {
		return pids
	}
	return nil
}
