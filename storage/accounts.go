package storage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/app/base/strictjson"
	"molrun/app/job/apikey"
	"molrun/storage/kv"
)

// Key returns the record of an API key.
func (t tx) Key(id string) (*apikey.Key, error) {
	return readKey(id, t.Bucket(bucketKeys).Get([]byte(id)))
}

func readKey(id string, value []byte) (*apikey.Key, error) {
	if value == nil {
		return nil, fault.Errorf(fault.NotFound, "there is no API key %s", id)
	}
	return decodedRecord[apikey.Key]("API key", id, value)
}

// PutKey inserts or replaces an API key.
func (t tx) PutKey(k *apikey.Key) error {
	value, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("put API key %s: %w", k.ID, err)
	}
	return t.Replace(bucketKeys, []byte(k.ID), withChecksum(value))
}

// keyChecksum is the name of the last member of a stored API key, user or session. Its
// value is the CRC-32C of the rest of the record.
const keyChecksum = "crc32c"

func withChecksum(record []byte) []byte {
	return strictjson.Append(record, keyChecksum, kv.Checksum(record))
}

// keyIsSound reports whether a stored API key, user or session matches its checksum.
func keyIsSound(value []byte) bool {
	end := bytes.LastIndex(value, []byte(`,"`+keyChecksum+`":`))
	if end < 0 {
		return false
	}
	record := append(bytes.Clone(value[:end]), '}')
	return bytes.Equal(value, withChecksum(record))
}

// DeleteKey removes an API key.
func (t tx) DeleteKey(id string) error {
	if _, err := t.Key(id); err != nil {
		return err
	}
	return t.Delete(bucketKeys, []byte(id))
}

// Keys returns all API keys, sorted by ID.
func (t tx) Keys() ([]*apikey.Key, error) {
	var all []*apikey.Key
	for id, value := range t.Ascend(bucketKeys, nil) {
		k, err := readKey(string(id), value)
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

// Share returns the record of a share.
func (t tx) Share(id app.ShareID) (*app.Share, error) {
	key, err := sortid.Parse(string(id))
	if err != nil {
		return nil, noShare(string(id))
	}
	return storedShare(t.Tx, key)
}

func storedShare(t *kv.Tx, id sortid.ID) (*app.Share, error) {
	value := t.Bucket(bucketShares).Get(id[:])
	if value == nil {
		return nil, noShare(id.String())
	}
	return decodedRecord[app.Share]("share", id, value)
}

func noShare(id string) error { return fault.Errorf(fault.NotFound, "there is no share %s", id) }

// PutShare inserts or replaces a share.
func (t tx) PutShare(s *app.Share) error {
	id, err := sortid.Parse(string(s.ID))
	if err != nil {
		return fmt.Errorf("put share %q: %w", s.ID, err)
	}
	return putRecord(t.Tx, &shares, id, s)
}

// DeleteShare removes a share; its ID is never used again.
func (t tx) DeleteShare(id app.ShareID) error {
	old, err := t.Share(id)
	if err != nil {
		return err
	}
	return shares.Delete(t.Tx, idOf(id), old)
}

// Shares iterates over the shares of an organization, oldest first. The caller can delete
// them during the iteration.
func (t tx) Shares(organization string) iter.Seq2[*app.Share, error] {
	return func(yield func(*app.Share, error) bool) {
		var ids []sortid.ID
		for k := range t.Ascend(indexSharesOrganization, kv.Key{}.Text(organization)) {
			id, err := kv.Key(k).LastID()
			if err != nil {
				yield(nil, err)
				return
			}
			ids = append(ids, id)
		}
		for _, id := range ids {
			s, err := storedShare(t.Tx, id)
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

const indexSharesOrganization = "shares.organization"

// shareOrganization indexes shares by organization and id.
func shareOrganization(id sortid.ID, s *app.Share) []kv.Entry {
	return []kv.Entry{{Key: kv.Key{}.Text(s.Organization).ID(id)}}
}

// User returns the record of a user.
func (t tx) User(organization, email string) (*apikey.User, error) {
	return readUser(email, t.Bucket(bucketUsers).Get(userKey(organization, email)))
}

// userKey returns the database key of a user. Keys sort by organization.
func userKey(organization, email string) []byte { return kv.Key{}.Text(organization).Text(email) }

func readUser(email string, value []byte) (*apikey.User, error) {
	if value == nil {
		return nil, fault.Errorf(fault.NotFound, "there is no record of the user %s", email)
	}
	return decodedRecord[apikey.User]("user", email, value)
}

// PutUser inserts or replaces the record of a user.
func (t tx) PutUser(u *apikey.User) error {
	value, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("put user %s: %w", u.Email, err)
	}
	return t.Replace(bucketUsers, userKey(u.Organization, u.Email), withChecksum(value))
}

// DeleteUser removes the record of a user.
func (t tx) DeleteUser(organization, email string) error {
	if _, err := t.User(organization, email); err != nil {
		return err
	}
	return t.Delete(bucketUsers, userKey(organization, email))
}

// Users returns the records of users, sorted by organization and email.
func (t tx) Users() ([]*apikey.User, error) {
	var all []*apikey.User
	for key, value := range t.Ascend(bucketUsers, nil) {
		u, err := readUser(fmt.Sprintf("%q", key), value)
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// Session returns the record of a session.
func (t tx) Session(holder, hash string) (*apikey.Session, error) {
	value := t.Bucket(bucketSessions).Get(sessionKey(holder, hash))
	if value == nil {
		return nil, fault.Errorf(fault.NotFound, "there is no such session of %s", holder)
	}
	return readSession(value)
}

// sessionKey returns the database key of a session. Keys sort by holder.
func sessionKey(holder, hash string) []byte { return kv.Key{}.Text(holder).Text(hash) }

func readSession(value []byte) (*apikey.Session, error) {
	var s apikey.Session
	if err := json.Unmarshal(value, &s); err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	return &s, nil
}

// PutSession inserts or replaces a session.
func (t tx) PutSession(s *apikey.Session) error {
	value, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("put session of %s: %w", s.Holder, err)
	}
	return t.Replace(bucketSessions, sessionKey(s.Holder, s.Hash), withChecksum(value))
}

// DeleteSession removes a session if it exists.
func (t tx) DeleteSession(holder, hash string) error {
	return t.Delete(bucketSessions, sessionKey(holder, hash))
}

// Sessions iterates over the sessions of a holder, or over all sessions if holder is "".
func (t tx) Sessions(holder string) iter.Seq2[*apikey.Session, error] {
	return func(yield func(*apikey.Session, error) bool) {
		var prefix kv.Key
		if holder != "" {
			prefix = prefix.Text(holder)
		}
		var all []*apikey.Session // callers can delete during the iteration
		for _, value := range t.Ascend(bucketSessions, prefix) {
			s, err := readSession(value)
			if err != nil {
				yield(nil, err)
				return
			}
			all = append(all, s)
		}
		for _, s := range all {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// Definition returns the text of an algorithm file.
func (t tx) Definition(digest string) ([]byte, error) {
	text := t.Bucket(bucketDefinitions).Get([]byte(digest))
	if text == nil {
		return nil, fault.Errorf(fault.NotFound, "there is no algorithm file with digest %s", digest)
	}
	return bytes.Clone(text), nil
}

// PutDefinition stores the text of an algorithm file.
func (t tx) PutDefinition(digest string, text []byte) error {
	return t.Replace(bucketDefinitions, []byte(digest), bytes.Clone(text))
}
