// The confidence of predicted structures: a view of the algorithm declares that B-factors are
// pLDDTs, their scale, and the limits of the color bands. Values are shown from 0 to 100, in the
// colors of AlphaFold's authors.
import type { Schemas } from './api'

export type Plddt = Schemas['PLDDT']

const colours = ['#0053d6', '#65cbf3', '#ffdb13', '#ff7d45']
const names = ['very high', 'high', 'low', 'very low']

/** The bands, the highest first. */
export function bandsOf(plddt: Plddt): { above: number; colour: string; name: string; range: string }[] {
  const limits = plddt.bands.toReversed()
  return colours.map((colour, i) => {
    const above = limits[i]
    const below = limits[i - 1]
    const range = below === undefined ? `> ${above}` : above === undefined ? `< ${below}` : `${above}–${below}`
    return { above: above ?? -Infinity, colour, name: names[i]!, range }
  })
}

/** The factor that converts the B-factors of a structure to 0 to 100. */
export const percentOf = (plddt: Plddt, highest: number) => (plddt.scale === 1 || (plddt.scale === undefined && highest <= 1) ? 100 : 1)
