package storage

import (
	"bytes"
	"encoding/json"
	"fmt"

	"molrun/app/apikey"
	"molrun/app/fault"
	"molrun/app/strictjson"
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
	var k apikey.Key
	if err := json.Unmarshal(value, &k); err != nil {
		return nil, fmt.Errorf("read API key %s: %w", id, err)
	}
	return &k, nil
}

// PutKey inserts or replaces an API key.
func (t tx) PutKey(k *apikey.Key) error {
	value, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("put API key %s: %w", k.ID, err)
	}
	return t.Replace(bucketKeys, []byte(k.ID), withChecksum(value))
}

// keyChecksum names the last member of a stored API key, the CRC-32C of the record
// without it. Keys that older versions have stored have none.
const keyChecksum = "crc32c"

func withChecksum(record []byte) []byte {
	return strictjson.Append(record, keyChecksum, kv.Checksum(record))
}

// keyIsSound reports whether a stored API key has the checksum that it was stored
// with.
func keyIsSound(value []byte) bool {
	end := bytes.LastIndex(value, []byte(`,"`+keyChecksum+`":`))
	if end < 0 {
		return true
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
