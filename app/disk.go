package app

import (
	"fmt"

	"molrun/app/unit"
)

// Disk is how full the disk of the data directory is.
type Disk struct {
	Size    int64 `json:"size"`    // bytes in all
	Free    int64 `json:"free"`    // of them, those that this process may still use
	Reserve int64 `json:"reserve"` // of these, those that uploads and new jobs leave alone
}

// Room tells in words why no job may be started now, "" where one may. What
// jobs write must not take the room that records need: without that nothing
// could be settled, deleted or even read after a restart.
func (s *Service) Room() string {
	disk, err := s.blobs.Disk()
	if err != nil || disk.Free >= disk.Reserve {
		return "" // a disk that can't be asked is found out about soon enough
	}
	return fmt.Sprintf("waiting for free disk space: %s are free, %s are kept free", unit.Bytes(disk.Free), unit.Bytes(disk.Reserve))
}
