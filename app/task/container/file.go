package container

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
)

// Where the header of a SIF file has its mark and the ID of the image.
const (
	sifMark   = 32
	sifID     = 48
	sifHeader = 64
)

// fileID returns the ID that the maker of a .sif file gave it. A digest of many gigabytes
// would take longer than many jobs.
func fileID(path string) (string, error) {
	if !IsFile(path) {
		return "", fmt.Errorf("the image %s is no file; make one with: apptainer pull NAME.sif %[1]s, and name that file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("the image %s is not here, or can't be read; copy it there", path)
	}
	defer f.Close()
	header := make([]byte, sifHeader)
	if _, err := io.ReadFull(f, header); err != nil || !bytes.HasPrefix(header[sifMark:], []byte("SIF_MAGIC")) {
		return "", fmt.Errorf("the image %s is no SIF file; make it again with: apptainer build", path)
	}
	id := hex.EncodeToString(header[sifID:])
	return "sif:" + strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-"), nil
}
