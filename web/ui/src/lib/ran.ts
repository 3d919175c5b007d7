// The inputs of a job in a few lines: files, sequences, and settings other than defaults.
import type { Job, Parameter } from './api'
import { value } from './format'
import { namesOf, readable } from './reference'

export interface Given { name: string; title: string; text: string; more: string }

const longest = 60 // characters of a value
const items = 3 // of a list

/** Cuts a long text and adds its length. */
function short(text: string): { text: string; more: string } {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length <= longest ? { text: line, more: '' } : { text: line.slice(0, longest) + '…', more: `${line.length.toLocaleString('en')} letters` }
}

function list(all: unknown[]): { text: string; more: string } {
  if (all.length === 1) return short(value(all[0]))
  return { text: all.slice(0, items).map((v) => short(value(v)).text).join(', '), more: all.length > items ? `and ${all.length - items} more` : '' }
}

/** The values in the order of the form. */
export function given(job: Pick<Job, 'settings' | 'inputs'>, parameters: readonly Parameter[]): Given[] {
  const settings = job.settings ?? {}
  const order = [...parameters.map((p) => p.name).filter((n) => n in settings), ...Object.keys(settings).filter((n) => !parameters.some((p) => p.name === n))]
  const names = namesOf(job.inputs)
  return order.flatMap((name): Given[] => {
    const p = parameters.find((x) => x.name === name)
    const v = settings[name]
    if (v === null || JSON.stringify(v) === JSON.stringify(p?.default)) return []
    const said = readable(v, names)
    const { text, more } = Array.isArray(said) ? list(said) : short(value(said))
    const seen = (job.inputs ?? []).filter((i) => i.setting === name).map((i) => i.summary ?? '')
    return [{ name, title: p?.title ?? name, text: text + (p?.unit ? ` ${p.unit}` : ''), more: seen.length === 1 && seen[0] ? seen[0] : more }]
  })
}
