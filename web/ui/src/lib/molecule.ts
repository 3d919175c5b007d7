// The types and file formats of the viewer.

export type ModelFormat = 'pdb' | 'pdbqt' | 'mmcif' | 'cif' | 'bcif' | 'sdf' | 'mol' | 'mol2' | 'xyz' | 'gro'
export type MotionFormat = 'dcd' | 'xtc' | 'trr' | 'nc' | 'pdb' | 'xyz' | 'gro'

export interface Model { url: string; name: string; format: ModelFormat }
export interface Motion { topology: string; url: string; size: number; format: MotionFormat }
export interface Focus { chain?: string; residue: number }
export interface Residue extends Focus { name: string }
/** The residues of polymers in order; tokens, as counted by predictors, also include each atom of ligands. */
export interface Residues { residues: readonly Residue[]; tokens: readonly Residue[] }
export interface Box { center: [number, number, number]; size: [number, number, number] }

const modelFormats: Record<string, ModelFormat> = {
  pdb: 'pdb', ent: 'pdb', pqr: 'pdb', pdbqt: 'pdbqt', cif: 'mmcif', mmcif: 'mmcif', mcif: 'mmcif', bcif: 'bcif', sdf: 'sdf', sd: 'sdf', mol: 'mol', mol2: 'mol2', xyz: 'xyz', gro: 'gro',
}
const motionFormats: Record<string, MotionFormat> = { dcd: 'dcd', xtc: 'xtc', trr: 'trr', nc: 'nc', netcdf: 'nc', pdb: 'pdb', xyz: 'xyz', gro: 'gro' }

const ending = (path: string) => path.replace(/\.gz$/i, '').split('.').at(-1)?.toLowerCase() ?? ''

/** The format of a structure by its file name, or undefined if the viewer cannot read it. */
export const modelFormat = (path: string): ModelFormat | undefined => modelFormats[ending(path)]

/** The format of a trajectory by its file name. */
export const motionFormat = (path: string): MotionFormat | undefined => motionFormats[ending(path)]

export const looks = [['cartoon', 'Cartoon'], ['surface', 'Surface'], ['sticks', 'Ball and stick'], ['putty', 'Putty']] as const
export type Look = (typeof looks)[number][0]

export const colourings = [['model', 'Structure'], ['chain', 'Chain'], ['plddt', 'pLDDT'], ['bfactor', 'B-factor'], ['residue', 'Residue'], ['element', 'Element']] as const
export type Colouring = (typeof colourings)[number][0]

/** A ligand that can be shown; entry is the index of its structure. */
export interface Ligand { id: string; label: string; entry: number }
