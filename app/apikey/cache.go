package apikey

import (
	"sync"
	"time"
)

// maxCachedKeys bounds the memory of the records kept.
const maxCachedKeys = 10_000

// keyCache keeps the records of keys that were used, so that a request costs
// neither a transaction nor decoding. Whatever changes a key calls forget before
// it says that it has done so.
type Cache struct {
	mu      sync.RWMutex
	changes int // how often keys may have changed
	byID    map[string]*Key
}

// find gives a record, nil where it is not known, and the changes so far.
func (k *Cache) Find(id string) (*Key, int) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.byID[id], k.changes
}

// keep remembers a record that was read after so many changes; one more since
// then, and it may be old.
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

func (k *Cache) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changes++
	k.byID = nil
}

// keyUses remembers when keys were used last until that is written.
type Uses struct {
	mu   sync.Mutex
	last map[string]time.Time // by id; keys that exist, so there are not many
}

func (u *Uses) Note(id string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = map[string]time.Time{}
	}
	u.last[id] = at
}

// take gives what was noted and forgets it.
func (u *Uses) Take() map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	last := u.last
	u.last = nil
	return last
}

// giveBack notes again what could not be written, unless there is newer.
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
