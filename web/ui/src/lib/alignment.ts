// Sequence alignments in the formats that programs write.

export interface Aligned { names: string[]; rows: string[]; columns: number; nucleic: boolean }

/** Reads FASTA, A3M, Clustal, Stockholm or PHYLIP. */
export function parseAlignment(text: string): Aligned {
  const rows = read(text)
  if (rows.size === 0) throw new Error('The file has no sequences.')
  const aligned = withoutInsertions([...rows.values()])
  const columns = aligned.reduce((most, r) => Math.max(most, r.length), 0)
  return { names: [...rows.keys()].map(label), rows: aligned, columns, nucleic: isNucleic(aligned) }
}

type Rows = Map<string, string>

function read(text: string): Rows {
  const start = text.slice(0, 1000).trimStart()
  if (start.startsWith('>')) return fasta(text)
  if (start.startsWith('# STOCKHOLM')) return stockholm(text)
  if (/^\d+\s+\d+\s*\n/.test(start)) return phylip(text)
  return clustal(text)
}

const number = '\u0000' // keeps equal names apart; it is not shown
const label = (key: string) => key.split(number)[0]!

function add(rows: Rows, name: string): string {
  let key = name
  for (let i = rows.size; rows.has(key); i++) key = name + number + i
  return key
}

function fasta(text: string): Rows {
  const rows: Rows = new Map()
  for (const record of text.split(/^>/m).slice(1)) {
    const end = record.indexOf('\n')
    const head = end < 0 ? record : record.slice(0, end)
    if (end >= 0) rows.set(add(rows, head.trim().split(/\s/)[0] || `sequence ${rows.size + 1}`), record.slice(end).replace(/\s+/g, ''))
  }
  return rows
}

function stockholm(text: string): Rows {
  const rows: Rows = new Map()
  for (const line of text.split('\n')) {
    if (line.startsWith('//')) break
    if (!line.startsWith('#')) append(rows, line)
  }
  return rows
}

function clustal(text: string): Rows {
  const rows: Rows = new Map()
  const lines = text.split('\n')
  if (/^(CLUSTAL|MUSCLE|PROBCONS|MAFFT|Kalign|T-COFFEE)/i.test(lines[0] ?? '')) lines.shift()
  for (const line of lines) if (/^\S/.test(line)) append(rows, line.replace(/\s+\d+\s*$/, ''))
  return rows
}

/** Appends a line of a block: a name and a piece of its sequence. */
function append(rows: Rows, line: string) {
  const m = /^(\S+)\s+(\S.*)$/.exec(line.trimEnd())
  if (m) rows.set(m[1]!, (rows.get(m[1]!) ?? '') + m[2]!.replace(/\s+/g, ''))
}

/** Reads PHYLIP, sequential or interleaved. */
function phylip(text: string): Rows {
  const [first, ...lines] = text.trim().split(/\r?\n/)
  const [count, length] = first!.trim().split(/\s+/).map(Number) as [number, number]
  const filled = lines.filter((l) => l.trim() !== '')
  const heads = filled.slice(0, count).map(head)
  const blocks = heads.every((h) => h.piece.length === heads[0]!.piece.length) && heads.every((h) => h.piece.length <= length)
  if (blocks) {
    const pieces = heads.map((h) => h.piece)
    filled.slice(count).forEach((line, i) => (pieces[i % count] += line.replace(/\s+/g, '')))
    if (pieces.every((p) => p.length === length)) return collect(heads.map((h) => h.name), pieces)
  }
  return sequential(filled, length)
}

function sequential(lines: string[], length: number): Rows {
  const names: string[] = []
  const pieces: string[] = []
  for (const line of lines) {
    if (pieces.length > 0 && pieces.at(-1)!.length < length) pieces[pieces.length - 1] += line.replace(/\s+/g, '')
    else {
      const h = head(line)
      names.push(h.name)
      pieces.push(h.piece)
    }
  }
  return collect(names, pieces)
}

function collect(names: string[], pieces: string[]): Rows {
  const rows: Rows = new Map()
  names.forEach((n, i) => rows.set(add(rows, n), pieces[i]!))
  return rows
}

/** Splits a line into a name, which ends at a blank or else after ten characters, and the rest. */
function head(line: string): { name: string; piece: string } {
  const m = /^\s*(\S+)\s+(\S.*)$/.exec(line.trimEnd())
  return m ? { name: m[1]!, piece: m[2]!.replace(/\s+/g, '') } : { name: line.slice(0, 10).trim(), piece: line.slice(10).replace(/\s+/g, '') }
}

/** Removes the insertions of A3M, in lower case, after which all sequences have the same length. */
function withoutInsertions(rows: string[]): string[] {
  const length = rows[0]!.length
  if (rows.every((r) => r.length === length)) return rows
  const plain = rows.map((r) => r.replace(/[a-z.]/g, ''))
  return plain.every((r) => r.length === plain[0]!.length) ? plain : rows
}

function isNucleic(rows: string[]): boolean {
  const sample = rows.slice(0, 20).map((r) => r.slice(0, 500)).join('').replace(/[-.~?*]/g, '')
  return sample.length > 0 && (sample.match(/[ACGTUN]/gi)?.length ?? 0) / sample.length > 0.9
}

// Backgrounds by residue class, light enough for dark letters.
const classes: [letters: string, colour: string][] = [
  ['AVLIM', '#b3d4f5'], ['FWY', '#c9c2f0'], ['KRH', '#f5b8b0'], ['DE', '#e5b7e8'], ['STNQ', '#b9e3b9'], ['G', '#f5cf9f'], ['P', '#f0e69a'], ['C', '#f2b5cc'],
]
const bases: [letters: string, colour: string][] = [['A', '#b9e3b9'], ['C', '#b3d4f5'], ['G', '#f5cf9f'], ['TU', '#f5b8b0']]

/** The names of the classes, for the legend. */
export const classNames = (nucleic: boolean): [string, string][] =>
  nucleic ? [['A', '#b9e3b9'], ['C', '#b3d4f5'], ['G', '#f5cf9f'], ['T, U', '#f5b8b0']] : [['hydrophobic', '#b3d4f5'], ['aromatic', '#c9c2f0'], ['positive', '#f5b8b0'], ['negative', '#e5b7e8'], ['polar', '#b9e3b9'], ['glycine', '#f5cf9f'], ['proline', '#f0e69a'], ['cysteine', '#f2b5cc']]

/** The background of each letter, by character code. */
export function backgrounds(nucleic: boolean): (string | undefined)[] {
  const out: (string | undefined)[] = []
  for (const [letters, colour] of nucleic ? bases : classes) {
    for (const l of letters + letters.toLowerCase()) out[l.charCodeAt(0)] = colour
  }
  return out
}

const atOnce = 4096 // columns
const letters = 32 // distinguished by the last five bits of a letter, ignoring case

const isGap = (code: number) => code === 45 || code === 46 || code === 126 || Number.isNaN(code) // - . ~

/** The fraction of rows with the most common residue, for each column. */
export function conservations({ rows, columns }: Aligned): Float32Array {
  const known = new Float32Array(columns)
  for (let from = 0; from < columns; from += atOnce) {
    const to = Math.min(columns, from + atOnce)
    const counts = new Uint32Array(atOnce * letters)
    for (const row of rows) {
      for (let k = from; k < to && k < row.length; k++) {
        const code = row.charCodeAt(k)
        if (isGap(code) || code < 65 || code > 127) continue
        const n = ++counts[(k - from) * letters + (code & 31)]!
        if (n > known[k]!) known[k] = n
      }
    }
  }
  return known.map((n) => n / Math.max(1, rows.length))
}

/** The number of a residue in its own sequence, or undefined at a gap. */
export function residueNumber(row: string, column: number): number | undefined {
  if (isGap(row.charCodeAt(column))) return undefined
  let n = 0
  for (let i = 0; i <= column; i++) if (!isGap(row.charCodeAt(i))) n++
  return n
}
