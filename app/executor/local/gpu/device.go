package gpu

import (
	"slices"
	"strings"

	"molrun/app"
)

// device is a GPU that can be assigned to a job: a card, or an instance of one. A lost
// device stays known until the service ends.
type device struct {
	name   string // UUID; bus address or index of a lost card never seen before
	card   string // UUID of the card; "" if unknown
	bus    string
	index  string // index of the card when it was first seen
	memory int64  // bytes; 0 if unknown
	used   int64
	load   int
	fault  app.GPUFault
	text   string
}

// isCalled reports whether name in the configuration refers to the device or its card.
func (d *device) isCalled(name string) bool {
	return name == d.name || name == d.card || name == d.index || name == d.bus
}

// devices returns the devices of a listing that can be assigned to jobs.
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
			in.name, in.memory, in.used, in.load = i.uuid, i.memory, 0, 0 // the card's values cover all instances
			all = append(all, &in)
		}
	}
	return all
}

// update replaces the devices with those of a listing. Devices no longer listed are kept
// with a fault.
func (w *Watcher) update(l *listing) {
	listed := l.devices()
	matched := map[*device]bool{}
	var devices []*device
	for _, d := range w.devices {
		if now := find(listed, d); now != nil {
			if !matched[now] {
				now.index = d.index // indexes change when a card is lost
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
		if !matched[d] && (d.fault == "" || !slices.ContainsFunc(devices, ofInstances)) { // a lost card does not show that it has MIG instances
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

// find returns the listed device that is the same as d, or nil.
func find(listed []*device, d *device) *device {
	i := slices.IndexFunc(listed, func(now *device) bool {
		return now.name == d.name || d.card == "" && (now.bus == d.bus || d.bus == "" && now.index == d.index)
	})
	if i < 0 {
		return nil
	}
	return listed[i]
}

// is reports whether a lost card is the card of d.
func (c card) is(d *device) bool {
	if c.bus != "" && d.bus != "" {
		return c.bus == d.bus
	}
	return c.index != "" && c.index == d.index
}

// place returns a device for a lost card that was never seen.
func (c card) place() *device {
	d := &device{name: c.bus, bus: c.bus, index: c.index, fault: c.fault, text: c.text}
	if d.name == "" {
		d.name = "GPU " + c.index
	}
	return d
}

// keep sets the fault of a device that is no longer listed, and reports whether it is
// still expected.
func (w *Watcher) keep(d *device, l *listing) bool {
	if i := slices.IndexFunc(l.cards, func(c card) bool { return c.uuid == "" && c.is(d) }); i >= 0 {
		d.fault, d.text = l.cards[i].fault, l.cards[i].text
		return true
	}
	i := slices.IndexFunc(l.cards, func(c card) bool { return c.uuid != "" && c.uuid == d.card })
	switch {
	case i >= 0 && l.cards[i].fault != "": // the state of its instances is unknown
		d.fault, d.text = l.cards[i].fault, l.cards[i].text
	case i >= 0:
		d.fault, d.text = app.GPULost, "no longer exists: its card was repartitioned"
		return w.held[d.name]
	case d.fault == app.GPULost:
	case !l.complete || len(l.devices()) == 0: // unlisted devices may exist
		d.fault, d.text = app.GPUUnknown, "is not listed by nvidia-smi, which failed"
	default:
		d.fault, d.text = app.GPULost, "is no longer listed by nvidia-smi"
	}
	return true
}

// recordNoAnswer records that nvidia-smi does not respond. The GPUs are most likely unusable,
// but programs running on them may continue.
func (w *Watcher) recordNoAnswer(err error) {
	w.notes, w.processes = []string{err.Error()}, nil
	for _, d := range w.devices {
		if d.fault == "" || d.fault == app.GPUUnknown {
			d.fault, d.text = app.GPUUnknown, "is unknown: "+err.Error()
		}
	}
}

// faultOf returns the fault of a device, or nothing if it can be assigned to jobs.
func (w *Watcher) faultOf(d *device) (app.GPUFault, string) {
	if d.fault != "" {
		return d.fault, d.text
	}
	if pids := w.foreignPIDs(d); len(pids) > 0 {
		return app.GPUOccupied, "is in use by other programs (PID " + strings.Join(pids, ", ") + ")"
	}
	return "", ""
}

// busyPercent is the share of a GPU's memory, or of its time, up to which other programs
// are tolerated.
const busyPercent = 10

// foreignPIDs returns the foreign processes that occupy a device, or none if a job holds it
// or has held it since the check began.
func (w *Watcher) foreignPIDs(d *device) (pids []string) {
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
