package apikey

import (
	"sync"
	"time"
)

// maxCachedKeys bounds the memory of the cache.
const maxCachedKeys = 10_000

// Cache holds the records of recently used keys, so that a request needs neither
// a transaction nor decoding. A change of a key calls Forget before it returns.
type Cache struct {
	mu      sync.RWMutex
	changes int // how often keys may have changed
	byID    map[string]*Key
}

// Find returns a record, nil if it is not cached, and the changes so far.
func (k *Cache) Find(id string) (*Key, int) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.byID[id], k.changes
}

// Keep caches a record that was read after this number of changes. After another change
// it may be stale and is not cached.
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

// Uses holds when keys were last used until that is stored.
type Uses struct {
	mu   sync.Mutex
	last map[string]time.Time // by id; keys that exist, so there are not many
}

// Note records that a key was used at this time.
func (u *Uses) Note(id string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = map[string]time.Time{}
	}
	u.last[id] = at
}

// Take returns all uses and forgets them.
func (u *Uses) Take() map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	last := u.last
	u.last = nil
	return last
}

// Restore puts back uses that could not be stored, unless there are newer ones.
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
