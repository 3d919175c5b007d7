// Pasted sequences: FASTA, or one per line.

export interface Record { name: string; sequence: string; line: number }

const foreign = /[^ACDEFGHIKLMNPQRSTVWYacdefghiklmnpqrstvwy*\s]/
const most = 10 // error sentences

interface Line { text: string; number: number; head: boolean }

/** The lines with content, numbered from 1. */
function* linesOf(text: string): Generator<Line> {
  const all = text.split(/\r\n|\n|\r/)
  for (let i = 0; i < all.length; i++) {
    const line = all[i]!.trim()
    if (line !== '' && !line.startsWith(';')) yield { text: line, number: i + 1, head: line.startsWith('>') }
  }
}

const nameOf = (head: string) => head.slice(1).trim().split(/\s/)[0] ?? ''

/** The sequences of a text, with the line numbers on which they begin, from 1. */
export function parse(text: string): Record[] {
  const records: { name: string; parts: string[]; line: number }[] = []
  const named = /^\s*>/m.test(text)
  for (const line of linesOf(text)) {
    if (line.head) records.push({ name: nameOf(line.text), parts: [], line: line.number })
    else if (named && records.length > 0) records.at(-1)!.parts.push(line.text.replace(/\s/g, ''))
    else records.push({ name: '', parts: [line.text.replace(/\s/g, '')], line: line.number })
  }
  return records.map((r) => ({ name: r.name, sequence: r.parts.join(''), line: r.line })).filter((r) => r.sequence !== '' || r.name !== '')
}

/** Checks protein sequences: at most ten sentences with line numbers. */
export function check(text: string): string[] {
  const wrong: string[] = []
  let name = ''
  for (const line of linesOf(text)) {
    if (wrong.length === most) return wrong
    if (line.head) {
      name = nameOf(line.text)
      continue
    }
    const at = line.text.search(foreign)
    if (at < 0) continue
    const letter = String.fromCodePoint(line.text.codePointAt(at)!)
    const count = line.text.slice(0, at).replace(/\s/g, '').length + 1
    wrong.push(`line ${line.number}${name ? ` (${name.slice(0, 60)})` : ''}: “${letter}”, letter ${count}, is not an amino acid`)
  }
  for (const r of parse(text)) {
    if (wrong.length === most) break
    if (r.sequence === '') wrong.push(`line ${r.line}: ${r.name.slice(0, 60)} has no sequence`)
  }
  return wrong
}

/** A summary: "2 sequences, 214 residues". */
export function summary(text: string): string {
  const records = parse(text)
  const residues = records.reduce((sum, r) => sum + r.sequence.length, 0)
  return `${records.length.toLocaleString('en')} ${records.length === 1 ? 'sequence' : 'sequences'}, ${residues.toLocaleString('en')} residues`
}
