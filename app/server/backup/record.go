package backup

import (
	"fmt"
	"time"

	"molrun/app/base/digest"
)

// Record describes a backup.
type Record struct {
	Format   int       `json:"format"`
	Name     string    `json:"name"`
	Database string    `json:"database"` // database ID
	Schema   int       `json:"schema"`
	Commit   int64     `json:"commit"`
	TakenAt  time.Time `json:"takenAt"`
	Program  string    `json:"program"` // version that created it
	Jobs     int       `json:"jobs"`
	Uploads  int       `json:"uploads"`
	Files    int       `json:"files"`
	Bytes    int64     `json:"bytes"`
	Copied   int64     `json:"bytesCopied"`
	Linked   int64     `json:"bytesLinked"`  // shared with the previous backup
	Problems []string  `json:"problems"`     // in the live data, and so in the backup too
	Damaged  []string  `json:"damaged"`      // damaged live files; the backup has intact earlier copies
	Sums     string    `json:"sha256OfSums"` // SHA-256 of SHA256SUMS
}

// Record reads the record of a backup.
func (d Dir) Record(name string) (*Record, error) {
	return readJSON[Record](d.path(name, recordFile))
}

// readRecord returns a finished backup's record and its files with their digests.
func (d Dir) readRecord(name string) (*Record, map[string]string, error) {
	record, err := d.Record(name)
	if err == nil {
		err = checkFormat(d.path(name, recordFile), record.Format)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read backup %s: %w", name, err)
	}
	files, sum, err := digest.ReadSums(d.path(name, sumsFile))
	if err == nil && (sum != record.Sums || len(files) != record.Files) {
		err = fmt.Errorf("%s is damaged; take another backup", d.path(name, sumsFile))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read backup %s: %w", name, err)
	}
	return record, files, nil
}
