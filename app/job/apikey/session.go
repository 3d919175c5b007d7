package apikey

import (
	"iter"
	"time"

	"molrun/app/base/unit"
)

// Session is the record of a signed-in browser. Only the SHA-256 hash of the secret in
// its cookie is stored.
type Session struct {
	Holder     string    `json:"holder"` // ID of an API key, or of a user without one
	Hash       string    `json:"hash"`   // hex
	CreatedAt  unit.Time `json:"createdAt"`
	ExpiresAt  unit.Time `json:"expiresAt"`
	LastUsedAt unit.Time `json:"lastUsedAt"` // stored up to a minute late
}

// Limits of sessions: the total lifetime and the time without use.
const (
	SessionLife = 30 * 24 * time.Hour
	SessionIdle = 3 * 24 * time.Hour // survives a weekend
)

// Valid reports whether the session is valid at a given time, not considering its holder.
func (s *Session) Valid(now time.Time) bool {
	return now.Before(s.ExpiresAt.Time) && now.Before(s.LastUsedAt.Add(SessionIdle))
}

// Tx reads and changes the records of keys, users and sessions.
type Tx interface {
	Key(id string) (*Key, error)
	PutKey(k *Key) error
	DeleteKey(id string) error
	Keys() ([]*Key, error)

	User(organization, email string) (*User, error)
	PutUser(u *User) error
	DeleteUser(organization, email string) error
	Users() ([]*User, error)

	Session(holder, hash string) (*Session, error)
	PutSession(s *Session) error
	DeleteSession(holder, hash string) error
	// Sessions walks the sessions of a holder; "" means all holders. They can be deleted
	// during the walk.
	Sessions(holder string) iter.Seq2[*Session, error]
}
