package apikey

import (
	"iter"
	"time"

	"molrun/app/base/unit"
)

// Session is the record of a browser that has signed in. Only the SHA-256 of the secret in
// its cookie is stored.
type Session struct {
	Holder     string    `json:"holder"` // id of an API key, or of a user without one
	Hash       string    `json:"hash"`   // hex
	CreatedAt  unit.Time `json:"createdAt"`
	ExpiresAt  unit.Time `json:"expiresAt"`
	LastUsedAt unit.Time `json:"lastUsedAt"` // stored with a delay of up to a minute
}

// Bounds of sessions: how long one lasts, and how long without being used.
const (
	SessionLife = 30 * 24 * time.Hour
	SessionIdle = 3 * 24 * time.Hour // a weekend
)

// Live reports whether the session is valid at this time, if its holder is.
func (s *Session) Live(now time.Time) bool {
	return now.Before(s.ExpiresAt.Time) && now.Before(s.LastUsedAt.Add(SessionIdle))
}

// Tx reads and changes the records of those who may use the service.
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
	// Sessions walks the sessions of a holder, "" is all of them. They may be deleted
	// during the walk.
	Sessions(holder string) iter.Seq2[*Session, error]
}
