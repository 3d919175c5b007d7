// Drawing one structure: polymers as chosen, ligands as sticks, no water.
import { type Structure, Model, Queries, QueryContext, StructureProperties, StructureSelection, Unit } from 'molstar/lib/mol-model/structure.js'
import type { CustomProperty } from 'molstar/lib/mol-model-props/common/custom-property.js'
import type { RepresentationContext } from 'molstar/lib/mol-repr/representation.js'
import type { StructureRepresentation, StructureRepresentationProvider } from 'molstar/lib/mol-repr/structure/representation.js'
import { BallAndStickRepresentationProvider } from 'molstar/lib/mol-repr/structure/representation/ball-and-stick.js'
import { CartoonRepresentationProvider } from 'molstar/lib/mol-repr/structure/representation/cartoon.js'
import { MolecularSurfaceRepresentationProvider } from 'molstar/lib/mol-repr/structure/representation/molecular-surface.js'
import { PuttyRepresentationProvider } from 'molstar/lib/mol-repr/structure/representation/putty.js'
import type { SizeTheme } from 'molstar/lib/mol-theme/size.js'
import { PhysicalSizeTheme } from 'molstar/lib/mol-theme/size/physical.js'
import { UncertaintySizeTheme, UncertaintySizeThemeProvider } from 'molstar/lib/mol-theme/size/uncertainty.js'
import { UniformSizeTheme } from 'molstar/lib/mol-theme/size/uniform.js'
import { ParamDefinition as PD } from 'molstar/lib/mol-util/param-definition.js'
import type { Colouring, Look } from '../molecule'
import { colourTheme, type Painted } from './colours'
import { run } from './read'

type Provider = StructureRepresentationProvider<PD.Params>
type Kind = Look | 'focus'
export type Quality = 'auto' | 'medium' | 'low' | 'lower' | 'lowest'

const providers: Record<Kind, Provider> = {
  cartoon: CartoonRepresentationProvider as unknown as Provider,
  surface: MolecularSurfaceRepresentationProvider as unknown as Provider,
  sticks: BallAndStickRepresentationProvider as unknown as Provider,
  putty: PuttyRepresentationProvider as unknown as Provider,
  focus: BallAndStickRepresentationProvider as unknown as Provider,
}
const fewResidues = 3 // shorter chains have no cartoon
const manyAtoms = 20_000 // above which a surface is coarser

/** The quality for this many atoms without a graphics card, where triangles are the main cost. */
export function qualityOf(atoms: number, moving: boolean): Quality {
  if (atoms > 40_000) return 'lowest'
  if (atoms > 15_000) return 'lower'
  return moving || atoms > 5_000 ? 'low' : 'medium'
}

type EntityType = ReturnType<typeof StructureProperties.entity.type>

function part(structure: Structure, wanted: (type: EntityType) => boolean): Structure {
  const query = Queries.generators.atoms({ entityTest: (ctx) => wanted(StructureProperties.entity.type(ctx.element)) })
  return StructureSelection.unionStructure(query(new QueryContext(structure)))
}

export interface Parts { polymer?: Structure; rest?: Structure }

/** The parts that are drawn in different ways. */
export function partsOf(structure: Structure): Parts {
  const polymer = part(structure, (type) => type === 'polymer')
  const rest = part(structure, (type) => type !== 'polymer' && type !== 'water')
  if (polymer.elementCount === 0 && rest.elementCount === 0) return { rest: structure }
  if (polymer.polymerResidueCount < fewResidues && !Model.isCoarseGrained(structure.model)) return { rest: part(structure, (type) => type !== 'water') }
  return { polymer, ...(rest.elementCount > 0 && { rest }) }
}

/** The minimum and maximum B-factor. */
export function bFactors(structure: Structure): [number, number] {
  let low = Infinity
  let high = -Infinity
  for (const unit of structure.units) {
    if (!Unit.isAtomic(unit)) continue
    const { value } = unit.model.atomicConformation.B_iso_or_equiv
    for (let i = 0; i < unit.elements.length; i++) {
      const b = value(unit.elements[i]!)
      low = Math.min(low, b)
      high = Math.max(high, b)
    }
  }
  return low <= high ? [low, high] : [0, 0]
}

function sizes(kind: Kind, structure: Structure): SizeTheme<any> {
  if (kind === 'sticks' || kind === 'focus' || kind === 'surface') return PhysicalSizeTheme({ structure }, { scale: 1 }) 
  if (kind === 'putty' && !Model.isCoarseGrained(structure.model)) {
    const [low, high] = bFactors(structure)
    const factor = 2 / Math.max(high, 1) // the least certain residue is 2 Å thick
    if (high > low) return UncertaintySizeTheme({ structure }, { ...UncertaintySizeThemeProvider.defaultValues, baseSize: 0.5, bfactorFactor: factor }) 
  }
  return UniformSizeTheme({ structure }, { value: 1 }) 
}

function settings(kind: Kind, structure: Structure): Record<string, unknown> {
  if (kind === 'putty') return { sizeFactor: Model.isCoarseGrained(structure.model) ? 1 : 0.4 }
  if (kind === 'surface') return structure.elementCount > manyAtoms ? { quality: 'lower', alpha: 0.85 } : { alpha: 0.85 }
  if (kind === 'focus') return { sizeFactor: 0.22 }
  return {}
}

/** A representation of a structure, which can follow the frames of a trajectory. */
export class Drawn {
  readonly repr: StructureRepresentation<any>
  private readonly provider: Provider

  constructor(ctx: RepresentationContext, readonly kind: Kind, public structure: Structure, private readonly quality: Quality = 'auto') {
    this.provider = providers[kind]
    this.repr = this.provider.factory(ctx, this.provider.getParams) as unknown as StructureRepresentation<any>
  }

  paint(colouring: Colouring, painted: Painted, heteroatoms: boolean) {
    this.repr.setTheme({ color: colourTheme(colouring, painted, heteroatoms) as never, size: sizes(this.kind, this.structure) })
  }

  async draw(ctx: RepresentationContext, custom: CustomProperty.Context) {
    await this.provider.ensureCustomProperties?.attach(custom, this.structure)
    const defaults = PD.getDefaultValues(this.provider.getParams(ctx, this.structure))
    const values = { ...defaults, interior: { ...defaults.interior, colorStrength: 0 }, quality: this.quality, ...settings(this.kind, this.structure) }
    await run(this.repr.createOrUpdate(values, this.structure))
  }

  /** Shows another conformation of the same atoms. */
  async move(model: Model, custom: CustomProperty.Context) {
    this.provider.ensureCustomProperties?.detach(this.structure)
    this.structure = this.structure.remapModel(model)
    await this.provider.ensureCustomProperties?.attach(custom, this.structure)
    await run(this.repr.createOrUpdate({}, this.structure))
  }

  destroy() {
    this.provider.ensureCustomProperties?.detach(this.structure)
    this.repr.destroy()
  }
}
