// The end of a log: as many lines as are worth looking at.

const mostLines = 5_000
const mostCharacters = 1 << 20
const longest = 4_000 // characters of one line that are shown
const ofBlock = 200 // lines

/** Control sequences of terminals, whole ones: titles and links, colours and movements, single escapes; and other control characters. */
const control = /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-Z\\^-~]|[\x00-\x06\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]/g

/** Lines that are drawn together. Its number stays with them while others come and go. */
export interface Block { number: number; text: string }

export class LogTail {
  lines: string[] = []
  /** Lines that were dropped at the beginning. */
  dropped = 0
  private size = 0
  private open = false // the last line has no end yet

  constructor(private readonly most = mostLines) {}

  /** Adds what the program has printed. A carriage return begins its line anew, as on a terminal. */
  add(text: string) {
    const parts = text.split('\n')
    parts.forEach((part, i) => {
      if (i === 0 && this.open) this.put(this.lines.length - 1, this.lines.at(-1)! + part)
      else if (i < parts.length - 1 || part !== '') this.put(this.lines.length, part)
    })
    this.open = parts.at(-1) !== ''
    this.trim()
  }

  private put(at: number, text: string) {
    const back = text.lastIndexOf('\r', text.length - 2)
    let line = (back >= 0 ? text.slice(back + 1) : text).replace(control, '')
    if (line.length > longest) line = line.slice(0, longest) + '…'
    this.size += line.length + 1 - (this.lines[at] === undefined ? 0 : this.lines[at]!.length + 1)
    this.lines[at] = line
  }

  private trim() {
    let n = Math.max(0, this.lines.length - this.most)
    for (let i = 0; i < n; i++) this.size -= this.lines[i]!.length + 1
    while (this.size > mostCharacters && n < this.lines.length - 1) this.size -= this.lines[n++]!.length + 1
    if (n > 0) {
      this.lines = this.lines.slice(n)
      this.dropped += n
    }
  }
}

/** Lines in blocks, so that only those that changed are drawn anew. first is the number of the first line. */
export function blocks(lines: readonly string[], first = 0): Block[] {
  const all: Block[] = []
  for (let i = 0; i < lines.length; ) {
    const number = Math.floor((first + i) / ofBlock)
    const end = Math.min(lines.length, (number + 1) * ofBlock - first)
    all.push({ number, text: lines.slice(i, end).join('\n') + '\n' })
    i = end
  }
  return all
}

/** A part of a log, from byte to byte: what lies before or behind another. */
export interface Part { from: number; to: number }

const ofPart = 128 << 10 // bytes

/** The part before a byte. */
export const before = (at: number): Part => ({ from: Math.max(0, at - ofPart), to: at })

/** The part behind a byte, or none where the log ends. */
export const behind = (at: number, size: number): Part | undefined => (at + ofPart < size ? { from: at, to: at + ofPart } : undefined)

/** The whole lines of a part; a line that is larger than the part stays cut. */
export function wholeLines(text: string, part: Part): string {
  const end = part.from === 0 ? -1 : text.indexOf('\n')
  return end >= 0 && end < text.length - 1 ? text.slice(end + 1) : text
}

/** Bytes of lines as they were printed. */
export const bytesOf = (lines: readonly string[]) => new TextEncoder().encode(lines.join('\n')).length
