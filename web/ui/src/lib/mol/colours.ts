// Color themes of the viewer: our own provider instead of Mol*'s registry.
import { Bond, StructureElement, StructureProperties, Unit } from 'molstar/lib/mol-model/structure.js'
import type { Location } from 'molstar/lib/mol-model/location.js'
import { ElementSymbolColors, elementSymbolColor } from 'molstar/lib/mol-theme/color/element-symbol.js'
import { ResidueNameColors, residueNameColor } from 'molstar/lib/mol-theme/color/residue-name.js'
import type { ColorTheme } from 'molstar/lib/mol-theme/color.js'
import { Color } from 'molstar/lib/mol-util/color/index.js'
import { okabeIto } from '../colours'
import type { Colouring } from '../molecule'
import { bandsOf, percentOf, type Plddt } from '../plddt'

const palette = okabeIto.map((c) => Color.fromHexStyle(c))
const grey = Color(0x999999)

export const modelColour = (i: number): Color => palette[i % palette.length] ?? grey

/** Returns the atom of a location; a bond has the color of its first atom. */
const atom = StructureElement.Location.create()
function atomOf(location: Location): StructureElement.Location | undefined {
  if (StructureElement.Location.is(location)) return location
  if (!Bond.isLocation(location)) return undefined
  const element = location.aUnit.elements[location.aIndex]
  if (element === undefined) return undefined
  return StructureElement.Location.set(atom, location.aStructure, location.aUnit, element)
}

export const bFactor = (l: StructureElement.Location): number => (Unit.isAtomic(l.unit) ? l.unit.model.atomicConformation.B_iso_or_equiv.value(l.element) : 0)

/** The pLDDT of an atom, from 0 to 100. */
export const plddtOf = (l: StructureElement.Location, p: Painted): number => bFactor(l) * (p.plddt ? percentOf(p.plddt, p.high) : 1)

function plddtColours(plddt: Plddt): (value: number) => Color {
  const bands = bandsOf(plddt).map((b) => ({ above: b.above, colour: Color.fromHexStyle(b.colour) }))
  return (value) => bands.find((b) => value > b.above)?.colour ?? grey
}

/** From blue (low) through white to red (high). */
function scaled(part: number): Color {
  const p = Math.max(0, Math.min(1, part))
  return p < 0.5 ? Color.interpolate(Color(0x2166ac), Color(0xf7f7f7), 2 * p) : Color.interpolate(Color(0xf7f7f7), Color(0xb2182b), 2 * p - 1)
}

export interface Painted { model: number; chains: Map<string, number>; low: number; high: number; plddt: Plddt | undefined }

function painter(colouring: Colouring, p: Painted): (l: StructureElement.Location) => Color {
  const { chain, atom: a } = StructureProperties
  const confidence = p.plddt ? plddtColours(p.plddt) : () => grey
  switch (colouring) {
    case 'model': return () => modelColour(p.model)
    case 'chain': return (l) => modelColour(p.chains.get(chain.auth_asym_id(l)) ?? 0)
    case 'plddt': return (l) => confidence(plddtOf(l, p))
    case 'bfactor': return (l) => scaled((bFactor(l) - p.low) / (p.high - p.low || 1))
    case 'residue': return (l) => residueNameColor(ResidueNameColors, a.label_comp_id(l))
    case 'element': return (l) => elementSymbolColor(ElementSymbolColors, a.type_symbol(l))
  }
}

/** A color theme. With heteroatoms, all elements but carbon have their own colors. */
export function colourTheme(colouring: Colouring, painted: Painted, heteroatoms = false): ColorTheme<Record<string, never>> {
  const paint = painter(colouring, painted)
  const symbol = StructureProperties.atom.type_symbol
  const theme: ColorTheme<Record<string, never>> = {
    factory: () => theme,
    granularity: 'group',
    props: {},
    color: (location) => {
      const l = atomOf(location)
      if (!l) return grey
      if (heteroatoms) {
        const s = symbol(l)
        if (s !== ('C' as typeof s)) return elementSymbolColor(ElementSymbolColors, s)
      }
      return paint(l)
    },
  }
  return theme
}
