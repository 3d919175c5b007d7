package boltfile

import (
	"crypto/rand"

	bolt "go.etcd.io/bbolt"
)

// Meta is the name of the bucket that describes the database.
const Meta = "meta"

const (
	metaID      = "id"
	metaLineage = "lineage"
)

// Identity distinguishes databases. All copies of a database share both values, except
// that compaction, which restarts the commit numbers, renews the lineage.
type Identity struct {
	ID      string
	Lineage string
}

// IdentityOf returns the identity of a database, or empty values if it has none.
func IdentityOf(tx *bolt.Tx) Identity {
	meta := tx.Bucket([]byte(Meta))
	if meta == nil {
		return Identity{}
	}
	return Identity{ID: string(meta.Get([]byte(metaID))), Lineage: string(meta.Get([]byte(metaLineage)))}
}

// ReadIdentity returns the identity of a database outside of a transaction.
func ReadIdentity(db *bolt.DB) (i Identity, err error) {
	err = db.View(func(tx *bolt.Tx) error {
		i = IdentityOf(tx)
		return nil
	})
	return i, err
}

// Identify assigns a new database its identity.
func Identify(tx *bolt.Tx) error {
	if err := tx.Bucket([]byte(Meta)).Put([]byte(metaID), []byte(rand.Text())); err != nil {
		return err
	}
	return RenewLineage(tx)
}

// RenewLineage assigns a database a new lineage.
func RenewLineage(tx *bolt.Tx) error {
	return tx.Bucket([]byte(Meta)).Put([]byte(metaLineage), []byte(rand.Text()))
}
