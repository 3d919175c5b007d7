// Logs: the last lines, their colors and errors.

const mostLines = 5_000
const mostCharacters = 1 << 20
const longest = 4_000 // characters shown of one line
const ofBlock = 200 // lines

/**
 * Complete terminal control sequences except colors (titles, links, cursor movements, single
 * escapes), and other control characters.
 */
const control = /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[(?![\d;]*m)[0-?]*[ -/]*[@-~]|\x1b(?!\[)[ -/]*[0-Z\\^-~]|[\x00-\x06\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]/g
const colour = /\x1b\[([\d;]*)m/g

/** A line without color codes. */
export const plain = (line: string) => line.replace(colour, '').replaceAll('\x1b', '')

/** A piece of a line; look has CSS classes for color, weight and errors. */
export interface Piece { text: string; look: string }

const names = ['', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', ''] // of 30 to 37
/** The beginnings of error lines of programs. */
const begins = /^\W*(?:\w{0,40}(?:error|exception)(?=\s*(?:[:\]]|$))|(?:fatal|traceback|segmentation fault|killed|aborted|aborting)\b)/i
const shouts = /\b(?:ERROR|FATAL|CRITICAL)\b/
const harmless = /\b(?:no|0|without) (?:errors?|exceptions?)\b/i

/** Whether a line reports an error. */
export function isError(line: string): boolean {
  const text = plain(line)
  return (begins.test(text) || shouts.test(text)) && !harmless.test(text)
}

/** Splits lines into pieces of one look, marking error lines. */
export function pieces(text: string): Piece[] {
  const all: Piece[] = []
  const put = (piece: string, look: string) => {
    const last = all.at(-1)
    const shown = piece.replaceAll('\x1b', '')
    if (shown === '') return
    if (last?.look === look) last.text += shown
    else all.push({ text: shown, look })
  }
  for (const line of text.split(/(?<=\n)/)) {
    const error = isError(line) ? 'error' : ''
    let [hue, bold] = ['', '']
    line.split(colour).forEach((part, i) => {
      if (i % 2 === 0) return put(part, [hue, bold, error].filter(Boolean).join(' '))
      for (const code of part === '' ? [0] : part.split(';').map(Number)) {
        if (code === 0) hue = bold = ''
        else if (code === 1) bold = 'bold'
        else if (code === 22) bold = ''
        else if (code === 38 || code === 48) break // 256 colors or more
        else if (code === 39) hue = ''
        else if ((code >= 30 && code < 38) || (code >= 90 && code < 98)) hue = names[code % 10]!
      }
    })
  }
  return all
}

/** Lines that are drawn together. number identifies them while other lines come and go. */
export interface Block { number: number; text: string }

export class LogTail {
  lines: string[] = []
  /** The number of lines dropped at the beginning. */
  dropped = 0
  private size = 0
  private open = false // the last line is incomplete

  constructor(private readonly most = mostLines) {}

  /** Adds output. A carriage return restarts its line, as on a terminal. */
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

/** Groups lines into blocks so that only changed ones are redrawn. first is the number of the first line. */
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

/** A byte range of a log. */
export interface Part { from: number; to: number }

const ofPart = 128 << 10 // bytes

/** The part that ends at a byte. */
export const before = (at: number): Part => ({ from: Math.max(0, at - ofPart), to: at })

/** The part that begins at a byte, or undefined if it would reach the end of the log. */
export const behind = (at: number, size: number): Part | undefined => (at + ofPart < size ? { from: at, to: at + ofPart } : undefined)

/** The whole lines of a part; a line larger than the part stays cut. */
export function wholeLines(text: string, part: Part): string {
  const end = part.from === 0 ? -1 : text.indexOf('\n')
  return end >= 0 && end < text.length - 1 ? text.slice(end + 1) : text
}

/** The size of lines as printed, in bytes. */
export const bytesOf = (lines: readonly string[]) => new TextEncoder().encode(lines.join('\n')).length
