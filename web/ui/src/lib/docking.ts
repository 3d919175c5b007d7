// The docking box as settings: a center and the edge length of a cube.
import type { Algorithm, Parameter } from './api'
import { kindOf, rules, valueOf } from './form'
import type { Box } from './molecule'

export interface Docking { structure: Parameter; center: Parameter; size: Parameter }

/** The parameters that define a box in a structure, if the algorithm has them. */
export function dockingOf(a: Algorithm): Docking | undefined {
  const structure = a.parameters.find((p) => p.content === 'protein-structure' && kindOf(p) === 'file')
  const center = a.parameters.find((p) => p.name === 'center' && kindOf(p) === 'vector' && rules(p).minItems === 3)
  const size = a.parameters.find((p) => p.name === 'size' && kindOf(p) === 'number')
  return structure && center && size && { structure, center, size }
}

function numbers(p: Parameter, typed: string | undefined): unknown {
  try {
    return valueOf(p, typed ?? '')
  } catch {
    return undefined
  }
}

/** The box that was typed; undefined without a center. */
export function cube(d: Docking, typed: Readonly<Record<string, string>>): Box | undefined {
  const center = numbers(d.center, typed[d.center.name])
  if (!Array.isArray(center) || center.length !== 3) return undefined
  const edge = Number(numbers(d.size, typed[d.size.name]) ?? d.size.default ?? 20)
  return { center: [...center] as Box['center'], size: [edge, edge, edge] }
}

const round = (n: number) => String(Math.round(n * 100) / 100)

/** The field values for a box. The edge length is the largest of the changed sides. */
export function boxTyped(d: Docking, old: Box | undefined, next: Box): Record<string, string> {
  const typed = { [d.center.name]: next.center.map(round).join(' ') }
  const changed = next.size.filter((s, i) => s !== old?.size[i])
  if (changed.length === 0) return typed
  const { minimum = 1, maximum = 200 } = rules(d.size)
  return { ...typed, [d.size.name]: round(Math.min(maximum, Math.max(minimum, ...changed))) }
}
