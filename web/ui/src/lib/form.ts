// The form of an algorithm's settings: the text typed for each parameter, and the settings
// made from it. The server validates them; only the conversion to values is here.
import type { Algorithm, FieldError, Parameter } from './api'
import { parse } from './fasta'

export type Kind = 'file' | 'files' | 'sequences' | 'choice' | 'flag' | 'number' | 'text' | 'list' | 'vector' | 'json'

type Rules = { type?: string | string[]; enum?: unknown[]; items?: Rules; minItems?: number; maxItems?: number; minimum?: number; exclusiveMinimum?: number; maximum?: number; maxLength?: number; pattern?: string }

/** What was typed into a field: text, or references to files. */
export type Typed = string

export const rules = (p: Parameter): Rules => (typeof p.schema === 'object' ? (p.schema as Rules) : {})

/** The kind of field for a parameter. Unknown schemas are entered as JSON. */
export function kindOf(p: Parameter): Kind {
  const r = rules(p)
  const types = [r.type ?? []].flat()
  if (p.file) return types.includes('array') ? 'files' : 'file'
  if (r.enum) return 'choice'
  if (types.length === 2 && types.includes('array') && types.includes('string')) return 'sequences'
  switch (types.length === 1 ? types[0] : '') {
    case 'boolean':
      return 'flag'
    case 'integer':
    case 'number':
      return 'number'
    case 'string':
      return 'text'
    case 'array':
      if (r.items?.type === 'number' && r.minItems !== undefined && r.minItems === r.maxItems && r.minItems <= 6) return 'vector'
      if (r.items?.type === 'string' || r.items?.type === 'number' || r.items?.type === 'integer') return 'list'
  }
  return 'json'
}

/** Why the typed text is not a value. Not an exception: many rows can have one, and exceptions are slow. */
class Wrong {
  constructor(readonly sentence: string) {}
}

/** The value of the typed text; undefined if empty. Throws an Error whose message is for users. */
export function valueOf(p: Parameter, typed: Typed): unknown {
  const value = read(p, typed)
  if (value instanceof Wrong) throw new Error(value.sentence)
  return value
}

function read(p: Parameter, typed: Typed): unknown {
  const kind = kindOf(p)
  const text = kind === 'text' ? typed : typed.trim()
  if (text === '') return undefined
  switch (kind) {
    case 'number':
      return numberOf(text)
    case 'flag':
      return text === 'true'
    case 'choice':
      return rules(p).enum?.find((v) => String(v) === text) ?? text
    case 'files':
      return lines(text)
    case 'list':
      return allOf(lines(text).map((l) => (rules(p).items?.type === 'string' ? l : numberOf(l))))
    case 'vector':
      return allOf(text.split(/[\s,;]+/).map(numberOf))
    case 'sequences': {
      const records = parse(text)
      return records.some((r) => r.name) ? text : records.map((r) => r.sequence)
    }
    case 'json':
      try {
        return JSON.parse(text)
      } catch (e) {
        return new Wrong(`This is not valid JSON: ${e instanceof Error ? e.message : e}`)
      }
  }
  return text
}

const allOf = (values: unknown[]): unknown => values.find((v) => v instanceof Wrong) ?? values

/** Ambiguous: 1,000 can mean a thousand, or 1 with a decimal comma; 280,293,310 can be three numbers. */
const thousands = /^[1-9]\d{0,2}(,\d{3})+$/

function numberOf(text: string): number | Wrong {
  if (thousands.test(text)) return new Wrong(`“${text}” is ambiguous: write one number without commas, or several with a space after each comma.`)
  const n = Number(text.replace(/^−/, '-').replace(/^([^.]*),(\d+)$/, '$1.$2'))
  return text === '' || !Number.isFinite(n) ? new Wrong(`“${text}” is not a number.`) : n
}

const lines = (text: string) => text.split('\n').map((l) => l.trim()).filter(Boolean)

/** The field text for a value, such as one of an example or an earlier job. */
export function typedOf(p: Parameter, value: unknown): Typed {
  if (value === undefined || value === null) return ''
  switch (kindOf(p)) {
    case 'files':
    case 'list':
      return Array.isArray(value) ? value.join('\n') : String(value)
    case 'vector':
      return Array.isArray(value) ? value.join(' ') : String(value)
    case 'sequences':
      return Array.isArray(value) ? value.join('\n') : String(value)
    case 'json':
      return JSON.stringify(value)
  }
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** The settings made from the typed text, and the errors of fields whose text is not a value of their type. */
export function settingsOf(a: Algorithm, typed: Readonly<Record<string, Typed>>): { settings: Record<string, unknown>; faults: Record<string, string> } {
  const settings: Record<string, unknown> = {}
  const faults: Record<string, string> = {}
  for (const p of a.parameters) {
    const value = read(p, typed[p.name] ?? '')
    if (value instanceof Wrong) faults[p.name] = value.sentence
    else if (value !== undefined) settings[p.name] = value
  }
  return { settings, faults }
}

/** The rows of a batch: many has fields whose values differ between jobs, one value per line. */
export function rowsOf(a: Algorithm, typed: Readonly<Record<string, Typed>>, many: Readonly<Record<string, string>>, every: boolean): Record<string, Typed>[] {
  const fields = a.parameters.filter((p) => many[p.name] !== undefined).map((p) => ({ name: p.name, values: valuesOf(p, many[p.name]!) }))
  if (fields.length === 0) return [{ ...typed }]
  let rows: Record<string, Typed>[] = [{ ...typed }]
  if (every) {
    for (const f of fields) rows = rows.flatMap((row) => f.values.map((v) => ({ ...row, [f.name]: v })))
    return rows
  }
  const n = Math.max(...fields.map((f) => f.values.length))
  return Array.from({ length: n }, (_, i) => ({ ...typed, ...Object.fromEntries(fields.map((f) => [f.name, f.values[f.values.length === 1 ? 0 : i] ?? ''])) }))
}

const mostInRange = 10_000

/** The numbers in a line, such as “280, 293”, a pasted row, or from:to:step. A single comma can be a decimal comma. */
function numbersIn(line: string): Typed[] {
  const [from, to, step] = line.split(':').map((t) => Number(t))
  if (/^[^:]+:[^:]+:[^:]+$/.test(line) && step && Number.isFinite(from) && Number.isFinite(to)) {
    const n = Math.floor((to! - from!) / step + 1e-9) + 1
    if (n >= 1 && n <= mostInRange) return Array.from({ length: n }, (_, i) => String(Number((from! + i * step).toPrecision(12))))
  }
  const parts = line.split(/\s*[\t;]\s*|,\s+/).filter(Boolean)
  return parts.flatMap((part) => (/,.*,/.test(part) && !thousands.test(part) ? part.split(',').filter(Boolean) : part.replace(/,$/, '')))
}

/** The values of a field: lines, the numbers in them, or FASTA records. */
export function valuesOf(p: Parameter, text: string): Typed[] {
  if (kindOf(p) === 'number') return lines(text).flatMap(numbersIn)
  if (kindOf(p) !== 'sequences') return lines(text)
  return parse(text).map((r) => (r.name ? `>${r.name}\n${r.sequence}` : r.sequence))
}

/** An error sentence if varying fields have different numbers of values, which can't be paired; otherwise "". */
export function uneven(a: Algorithm, many: Readonly<Record<string, string>>): string {
  const sizes = a.parameters.filter((p) => many[p.name] !== undefined).map((p) => ({ title: p.title, n: valuesOf(p, many[p.name]!).length }))
  const counts = new Set(sizes.map((s) => s.n).filter((n) => n !== 1))
  return counts.size > 1 ? `These settings have different numbers of values: ${sizes.map((s) => `${s.title} ${s.n}`).join(', ')}. Give each the same number, or choose all combinations.` : ''
}

/** The validation errors of the server, by parameter; '' has those without a field. */
export function faultsOf(detail: readonly FieldError[]): Record<string, string[]> {
  const faults: Record<string, string[]> = {}
  for (const f of detail) {
    const at = f.loc.indexOf('settings')
    const name = f.loc.slice(at + 1).find((part) => typeof part === 'string')
    const field = at >= 0 && name !== undefined ? String(name) : f.loc[1] === 'jobName' || f.loc[1] === 'batchName' ? '@name' : at < 0 && typeof f.loc[1] === 'string' ? '@' + f.loc[1] : ''
    const row = at >= 0 && typeof f.loc[at + 1] === 'number' ? `row ${Number(f.loc[at + 1]) + 1}: ` : ''
    ;(faults[field] ??= []).push(row + f.msg)
  }
  return faults
}

/** Settings that are typed and also a column of the table, as the server reports for its first line. */
export const doubled = (detail: readonly FieldError[], typed: Readonly<Record<string, Typed>>): string[] =>
  detail.filter((f) => f.loc[1] === 'fanOut' && f.loc[4] === 1 && typed[String(f.loc[5])]).map((f) => String(f.loc[5]))
