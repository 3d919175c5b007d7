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
	Database string    `json:"database"` // its identity
	Schema   int       `json:"schema"`
	Commit   int64     `json:"commit"`
	TakenAt  time.Time `json:"takenAt"`
	Program  string    `json:"program"` // version that made it
	Jobs     int       `json:"jobs"`
	Uploads  int       `json:"uploads"`
	Files    int       `json:"files"`
	Bytes    int64     `json:"bytes"`
	Copied   int64     `json:"bytesCopied"`
	Linked   int64     `json:"bytesLinked"`  // to the previous backup
	Problems []string  `json:"problems"`     // that the live data had already, and the backup has too
	Damaged  []string  `json:"damaged"`      // files of the live data; the backup has sound copies from before
	Sums     string    `json:"sha256OfSums"` // of SHA256SUMS
}

// Record reads what a backup says of itself.
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
