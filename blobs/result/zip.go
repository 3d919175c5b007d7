package result

import "encoding/binary"

// The records of a zip archive (APPNOTE 6.3.10) of stored files. Sizes and
// checksums are known beforehand, so they are in the local header, and the
// length of every record is known without writing it.

const (
	localSize      = 30
	centralSize    = 46
	endSize        = 22
	end64Size      = 56
	locator64Size  = 20
	maxUint16      = 1<<16 - 1
	maxUint32      = 1<<32 - 1
	maxZipName     = maxUint16
	maxZipSize     = 1 << 60 // sums of sizes do not overflow
	zipVersion     = 20
	zip64Version   = 45
	madeByUnix     = 3 << 8
	flagUTF8       = 1 << 11
	dosDate        = 1<<5 | 1 // 1 January 1980, so equal files give equal archives
	regularFile    = 0o100644 << 16
	extraZip64     = 1
	localExtraSize = 4 + 16
)

// zipEntry is one file of an archive.
type zipEntry struct {
	name   string
	size   int64
	crc    uint32
	offset int64 // of its local header
}

func (e *zipEntry) bigSize() bool   { return e.size >= maxUint32 }
func (e *zipEntry) bigOffset() bool { return e.offset >= maxUint32 }

func (e *zipEntry) version() uint16 {
	if e.bigSize() || e.bigOffset() {
		return zip64Version
	}
	return zipVersion
}

// centralExtra returns the length of the Zip64 values in the central record.
func (e *zipEntry) centralExtra() int {
	n := 0
	if e.bigSize() {
		n += 16
	}
	if e.bigOffset() {
		n += 8
	}
	if n > 0 {
		n += 4
	}
	return n
}

// localLen returns the length of what appendLocal appends.
func (e *zipEntry) localLen() int64 {
	n := localSize + len(e.name)
	if e.bigSize() {
		n += localExtraSize
	}
	return int64(n)
}

// centralLen returns the length of what appendCentral appends.
func (e *zipEntry) centralLen() int64 {
	return int64(centralSize + len(e.name) + e.centralExtra())
}

// appendLocal appends the header that precedes a file's bytes.
func appendLocal(b []byte, e *zipEntry) []byte {
	le := binary.LittleEndian
	extra := 0
	if e.bigSize() {
		extra = localExtraSize
	}
	b = append(b, "PK\x03\x04"...)
	b = appendCommon(b, e, uint16(extra))
	b = append(b, e.name...)
	if extra > 0 {
		b = le.AppendUint16(b, extraZip64)
		b = le.AppendUint16(b, 16)
		b = le.AppendUint64(b, uint64(e.size))
		b = le.AppendUint64(b, uint64(e.size))
	}
	return b
}

// appendCentral appends the file's record in the central directory.
func appendCentral(b []byte, e *zipEntry) []byte {
	le := binary.LittleEndian
	extra := e.centralExtra()
	b = append(b, "PK\x01\x02"...)
	b = le.AppendUint16(b, madeByUnix|e.version())
	b = appendCommon(b, e, uint16(extra))
	b = append(b, make([]byte, 2+2+2)...) // no comment, first disk, not text
	b = le.AppendUint32(b, regularFile)
	b = le.AppendUint32(b, clip32(e.offset))
	b = append(b, e.name...)
	if extra > 0 {
		b = le.AppendUint16(b, extraZip64)
		b = le.AppendUint16(b, uint16(extra-4))
	}
	if e.bigSize() {
		b = le.AppendUint64(b, uint64(e.size))
		b = le.AppendUint64(b, uint64(e.size))
	}
	if e.bigOffset() {
		b = le.AppendUint64(b, uint64(e.offset))
	}
	return b
}

// appendCommon appends the fields that both records of a file share: version,
// flags, method, time, checksum, sizes and lengths.
func appendCommon(b []byte, e *zipEntry, extra uint16) []byte {
	le := binary.LittleEndian
	b = le.AppendUint16(b, e.version())
	b = le.AppendUint16(b, flagUTF8)
	b = le.AppendUint16(b, 0) // stored
	b = le.AppendUint16(b, 0) // midnight
	b = le.AppendUint16(b, dosDate)
	b = le.AppendUint32(b, e.crc)
	b = le.AppendUint32(b, clip32(e.size))
	b = le.AppendUint32(b, clip32(e.size))
	b = le.AppendUint16(b, uint16(len(e.name)))
	return le.AppendUint16(b, extra)
}

// zipEnd describes the central directory at the end of an archive.
type zipEnd struct {
	entries int64
	start   int64 // of the central directory
	size    int64
}

func (z zipEnd) big() bool {
	return z.entries >= maxUint16 || z.start >= maxUint32 || z.size >= maxUint32
}

// length returns the length of what appendTo appends.
func (z zipEnd) length() int64 {
	if z.big() {
		return end64Size + locator64Size + endSize
	}
	return endSize
}

// appendTo appends the records that end the archive.
func (z zipEnd) appendTo(b []byte) []byte {
	le := binary.LittleEndian
	if z.big() {
		b = append(b, "PK\x06\x06"...)
		b = le.AppendUint64(b, end64Size-12)
		b = le.AppendUint16(b, madeByUnix|zip64Version)
		b = le.AppendUint16(b, zip64Version)
		b = append(b, make([]byte, 4+4)...) // one disk
		b = le.AppendUint64(b, uint64(z.entries))
		b = le.AppendUint64(b, uint64(z.entries))
		b = le.AppendUint64(b, uint64(z.size))
		b = le.AppendUint64(b, uint64(z.start))
		b = append(b, "PK\x06\x07"...)
		b = le.AppendUint32(b, 0)
		b = le.AppendUint64(b, uint64(z.start+z.size))
		b = le.AppendUint32(b, 1) // disks in all
	}
	entries := uint16(min(z.entries, maxUint16))
	b = append(b, "PK\x05\x06"...)
	b = append(b, make([]byte, 2+2)...) // one disk
	b = le.AppendUint16(b, entries)
	b = le.AppendUint16(b, entries)
	b = le.AppendUint32(b, clip32(z.size))
	b = le.AppendUint32(b, clip32(z.start))
	return le.AppendUint16(b, 0) // no comment
}

func clip32(n int64) uint32 { return uint32(min(n, maxUint32)) }
