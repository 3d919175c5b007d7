// Jobs from files on the server: one per sequence, row or file.
import type { Algorithm, Parameter } from './api'
import { kindOf } from './form'
import { shown } from './reference'

/** The source of the values, by setting; `*` means all columns of a table. */
export type Fan = Readonly<Record<string, string>>

export type From = 'fasta' | 'table' | 'folder'

export const all = '*'

export const froms: readonly { id: From; title: string; endings: readonly string[] }[] = [
  { id: 'fasta', title: 'each sequence of a FASTA file', endings: ['.fasta', '.fa', '.faa', '.fas', '.fna'] },
  { id: 'table', title: 'each row of a table', endings: ['.csv', '.tsv', '.tab', '.xlsx'] },
  { id: 'folder', title: 'each file of a folder', endings: [] },
]

/** The settings that a kind of source can fill. */
export function settingsFor(from: From, parameters: readonly Parameter[]): { name: string; title: string }[] {
  const named = (fits: (p: Parameter) => boolean) => parameters.filter(fits).map(({ name, title }) => ({ name, title }))
  switch (from) {
    case 'fasta':
      return named((p) => ['sequences', 'text'].includes(kindOf(p))).toSorted((a, b) => Number(kind(b.name, parameters)) - Number(kind(a.name, parameters)))
    case 'table':
      return [{ name: all, title: 'all columns' }, ...named(() => true)]
    case 'folder':
      return named((p) => kindOf(p) === 'file')
  }
}

const kind = (name: string, parameters: readonly Parameter[]) => parameters.some((p) => p.name === name && kindOf(p) === 'sequences')

/** A source in API notation; place is a file reference, or a folder and a pattern. */
export function sourceOf(from: From, place: string): string {
  if (from === 'table') return (/\.(tsv|tab)$/i.test(place) ? 'tsv:' : 'csv:') + place
  if (from === 'folder' && !place.includes('/')) return `folder:${place}/*`
  return `${from}:${place}`
}

/** A source in words, for users. */
export function wordsOf(source: string): string {
  const [from = '', place = ''] = [source.slice(0, source.indexOf(':')), source.slice(source.indexOf(':') + 1)]
  return `${froms.find((f) => f.id === (from === 'csv' || from === 'tsv' ? 'table' : from))?.title ?? from}: ${shown(place)}`
}

/** The fanOut member of a submission; settings are shared by all rows. */
export function memberOf(fan: Fan, settings: Readonly<Record<string, unknown>>): { each: Fan; settings?: Record<string, unknown> } {
  const shared = Object.fromEntries(Object.entries(settings).filter(([name]) => !(name in fan)))
  return { each: fan, ...(Object.keys(shared).length > 0 && { settings: shared }) }
}

/** The source that a file can be, by its extension. */
export function sourceIn(reference: string): { source: string; title: string } | undefined {
  const from = froms.find((f) => f.endings.some((e) => reference.toLowerCase().endsWith(e)))
  return from && { source: sourceOf(from.id, reference), title: from.id === 'table' ? 'row' : 'sequence' }
}

/** The source requested by the URL, if the algorithm has a setting for it. */
export function asked(source: string | null, a: Algorithm): Fan {
  const from = froms.find((f) => source?.startsWith(f.id + ':') || (f.id === 'table' && /^[ct]sv:/.test(source ?? '')))
  const setting = from && settingsFor(from.id, a.parameters)[0]
  return source && setting ? { [setting.name]: source } : {}
}
