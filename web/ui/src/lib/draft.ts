// Form drafts, kept in this browser until they are submitted or discarded.

import type { Fan } from './fanout'
import type { Names } from './reference'

export interface Draft {
  name: string // "" while it follows the input
  typed: Record<string, string>
  many: Record<string, string>
  every: boolean
  fan: Fan
  names: Names // of files referenced by fileId
  more: { tags: string; note: string; after: string; priority: string; hours: string; notify: boolean }
}

export const empty = (): Draft => ({ name: '', typed: {}, many: {}, every: false, fan: {}, names: {}, more: { tags: '', note: '', after: '', priority: '', hours: '', notify: false } })

const key = (type: string) => 'molrun.draft.' + type

export function load(type: string): Draft | undefined {
  try {
    const text = localStorage.getItem(key(type))
    return text ? { ...empty(), ...(JSON.parse(text) as Draft) } : undefined
  } catch {
    return undefined
  }
}

export function save(type: string, draft: Draft) {
  try {
    localStorage.setItem(key(type), JSON.stringify(draft))
  } catch {
    // Too large for the browser's storage; the form itself still has it.
  }
}

export const discard = (type: string) => localStorage.removeItem(key(type))
