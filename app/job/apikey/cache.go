package apikey

import (
	"sync"
	"time"
)

// maxCachedKeys limits the memory used by the cache.
const maxCachedKeys = 10_000

// Cache holds the records of recently used keys, so that a request needs neither a
// transaction nor decoding. Any change of a key calls Forget before it returns.
type Cache struct {
	mu      sync.RWMutex
	changes int // counts the calls of Forget
	byID    map[string]*Key
}

// Find returns the record of a key, or nil if it is not cached, and the number of changes
// so far.
func (k *Cache) Find(id string) (*Key, int) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.byID[id], k.changes
}

// Keep caches a record that was read when there had been this number of changes. It does
// nothing if there has been another change since, because the record might be stale.
func (k *Cache) Keep(key *Key, changes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case changes != k.changes:
		return
	case k.byID == nil || len(k.byID) >= maxCachedKeys:
		k.byID = map[string]*Key{}
	}
	k.byID[key.ID] = key
}

// Forget empties the cache after a change of a key.
func (k *Cache) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changes++
	k.byID = nil
}

// Uses holds the times when keys were last used until they are stored.
type Uses struct {
	mu   sync.Mutex
	last map[string]time.Time // by ID; only existing keys, so there are few
}

// Note records that a key was used at a given time.
func (u *Uses) Note(id string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = map[string]time.Time{}
	}
	u.last[id] = at
}

// Take returns and clears all uses.
func (u *Uses) Take() map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	last := u.last
	u.last = nil
	return last
}

// Restore adds back uses that could not be stored, unless there are newer ones.
func (u *Uses) Restore(last map[string]time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = map[string]time.Time{}
	}
	for id, at := range last {
		if at.After(u.last[id]) {
			u.last[id] = at
		}
	}
}
