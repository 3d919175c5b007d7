// Suggested job names: from the input, and numbered if taken.
import type { Parameter } from './api'
import { kindOf } from './form'
import { shown, type Names } from './reference'

const longest = 60
const said = (text: string) => text.trim().replace(/[^\p{L}\p{N}._-]+/gu, '-').replace(/^[-.]+|[-.]+$/g, '').slice(0, longest)

/** The name of the first file or sequence. */
function subject(parameters: readonly Parameter[], typed: Readonly<Record<string, string>>, names: Names): string {
  for (const p of parameters) {
    const first = (typed[p.name] ?? '').trim().split('\n')[0]!.trim()
    const kind = kindOf(p)
    if (first === '') continue
    if (kind === 'file' || kind === 'files') {
      const [, job] = /^job:([^/]+)\//.exec(first) ?? []
      return said(job ?? shown(first, names).split('/').at(-1)!.replace(/(\.[A-Za-z0-9]{1,6}){1,2}$/, ''))
    }
    if (kind === 'sequences' && first.startsWith('>')) return said(first.slice(1).trim().split(/[\s|]/)[0]!)
    if (p.name === 'names') return said(first)
  }
  return ''
}

/** A name from the input and the program: `lysozyme-vina`. */
export function proposed(type: string, parameters: readonly Parameter[], typed: Readonly<Record<string, string>>, names: Names): string {
  const of = subject(parameters, typed, names)
  return of === '' || of.toLowerCase() === type ? type : `${of}-${type}`
}

/** The nth name like this one: `a`, `a-2`, `a-3`; after `a-2` comes `a-3`. */
export function numbered(name: string, n: number): string {
  const [, base, from] = /^(.*?)-(\d{1,2})$/.exec(name) ?? []
  if (n < 2) return name
  return base && Number(from) > 1 ? `${base}-${Number(from) + n - 1}` : `${name}-${n}`
}
