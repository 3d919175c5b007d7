package result

import (
	"encoding/binary"
	"math"
	"time"
)

// The records of a zip archive (APPNOTE 6.3.10) of stored files. Sizes and checksums are
// known in advance, so they are in the local header, and the length of every record is
// known without writing it.

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
	dosEpoch       = 1<<5 | 1 // 1 January 1980, for unknown times
	extraTime      = 0x5455   // ID of Info-ZIP's field for times in seconds since 1970
	timeExtraSize  = 4 + 1 + 4
	regularFile    = 0o100644 << 16
	extraZip64     = 1
	localExtraSize = 4 + 16
)

// zipEntry is one file of an archive.
type zipEntry struct {
	name   string
	size   int64
	crc    uint32
	offset int64 // offset of its local header

	changed int64 // modification time, in seconds since 1970
}

// minTime and maxTime limit the times that a record can hold.
var (
	minTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	maxTime = int64(math.MaxInt32)
)

// timed reports whether the entry has a valid modification time. Programs can set
// arbitrary times on their files.
func (e *zipEntry) timed() bool { return e.changed >= minTime && e.changed <= maxTime }

// timeExtra returns the length of the extra field with the time, which supplements the
// DOS time because that has no time zone.
func (e *zipEntry) timeExtra() int {
	if e.timed() {
		return timeExtraSize
	}
	return 0
}

// dosTime returns date and time in UTC, with a resolution of two seconds.
func (e *zipEntry) dosTime() (date, clock uint16) {
	if !e.timed() {
		return dosEpoch, 0
	}
	t := time.Unix(e.changed, 0).UTC()
	return uint16((t.Year()-1980)<<9 | int(t.Month())<<5 | t.Day()), uint16(t.Hour()<<11 | t.Minute()<<5 | t.Second()/2)
}

func (e *zipEntry) appendTime(b []byte) []byte {
	if !e.timed() {
		return b
	}
	le := binary.LittleEndian
	b = le.AppendUint16(b, extraTime)
	b = le.AppendUint16(b, timeExtraSize-4)
	b = append(b, 1) // only the modification time
	return le.AppendUint32(b, uint32(e.changed))
}

func (e *zipEntry) bigSize() bool   { return e.size >= maxUint32 }
func (e *zipEntry) bigOffset() bool { return e.offset >= maxUint32 }

func (e *zipEntry) version() uint16 {
	if e.bigSize() || e.bigOffset() {
		return zip64Version
	}
	return zipVersion
}

// zip64Extra returns the length of the Zip64 values in the central record.
func (e *zipEntry) zip64Extra() int {
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

// localLen returns the number of bytes that appendLocal appends.
func (e *zipEntry) localLen() int64 {
	n := localSize + len(e.name) + e.timeExtra()
	if e.bigSize() {
		n += localExtraSize
	}
	return int64(n)
}

// centralLen returns the number of bytes that appendCentral appends.
func (e *zipEntry) centralLen() int64 {
	return int64(centralSize + len(e.name) + e.zip64Extra() + e.timeExtra())
}

// appendLocal appends the header that precedes a file's bytes.
func appendLocal(b []byte, e *zipEntry) []byte {
	le := binary.LittleEndian
	extra := 0
	if e.bigSize() {
		extra = localExtraSize
	}
	b = append(b, "PK\x03\x04"...)
	b = appendCommon(b, e, uint16(extra+e.timeExtra()))
	b = append(b, e.name...)
	if extra > 0 {
		b = le.AppendUint16(b, extraZip64)
		b = le.AppendUint16(b, 16)
		b = le.AppendUint64(b, uint64(e.size))
		b = le.AppendUint64(b, uint64(e.size))
	}
	return e.appendTime(b)
}

// appendCentral appends the file's record in the central directory.
func appendCentral(b []byte, e *zipEntry) []byte {
	le := binary.LittleEndian
	extra := e.zip64Extra()
	b = append(b, "PK\x01\x02"...)
	b = le.AppendUint16(b, madeByUnix|e.version())
	b = appendCommon(b, e, uint16(extra+e.timeExtra()))
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
	return e.appendTime(b)
}

// appendCommon appends the fields that both records of a file share: version, flags,
// method, time, checksum, sizes and lengths.
func appendCommon(b []byte, e *zipEntry, extra uint16) []byte {
	le := binary.LittleEndian
	b = le.AppendUint16(b, e.version())
	b = le.AppendUint16(b, flagUTF8)
	b = le.AppendUint16(b, 0) // method: stored
	date, clock := e.dosTime()
	b = le.AppendUint16(b, clock)
	b = le.AppendUint16(b, date)
	b = le.AppendUint32(b, e.crc)
	b = le.AppendUint32(b, clip32(e.size))
	b = le.AppendUint32(b, clip32(e.size))
	b = le.AppendUint16(b, uint16(len(e.name)))
	return le.AppendUint16(b, extra)
}

// zipEnd describes the central directory at the end of an archive.
type zipEnd struct {
	entries int64
	start   int64 // offset of the central directory
	size    int64
}

func (z zipEnd) big() bool {
	return z.entries >= maxUint16 || z.start >= maxUint32 || z.size >= maxUint32
}

// length returns the number of bytes that appendTo appends.
func (z zipEnd) length() int64 {
	if z.big() {
		return end64Size + locator64Size + endSize
	}
	return endSize
}

// appendTo appends the records at the end of the archive.
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
		b = le.AppendUint32(b, 1) // total number of disks
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
