package app

import "sync"

// maxKnownKeys bounds the memory of the records kept.
const maxKnownKeys = 10_000

// knownKeys keeps the records of keys that were used, so that a request costs
// neither a transaction nor decoding. Whatever changes a key calls forget before
// it says that it has done so.
type knownKeys struct {
	mu      sync.RWMutex
	changes int // how often keys may have changed
	byID    map[string]*APIKey
}

// find gives a record, nil where it is not known, and the changes so far.
func (k *knownKeys) find(id string) (*APIKey, int) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.byID[id], k.changes
}

// keep remembers a record that was read after so many changes; one more since
// then, and it may be old.
func (k *knownKeys) keep(key *APIKey, changes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case changes != k.changes:
		return
	case k.byID == nil || len(k.byID) >= maxKnownKeys:
		k.byID = map[string]*APIKey{}
	}
	k.byID[key.ID] = key
}

func (k *knownKeys) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changes++
	k.byID = nil
}
