// Structures to show together: a molecule with the protein that it was docked into, whose file
// has the same coordinate system.
import type { View } from './api'
import { modelFormat } from './molecule'

const ofProteins = ['pdb', 'mmcif', 'bcif']
const ofMolecules = ['sdf', 'mol', 'mol2', 'pdbqt']

/** The files of a job that a molecule can be shown with. */
export function proteins(views: readonly View[]): string[] {
  const paths = views.filter((v) => v.kind === 'structure' && v.files.length === 1).map((v) => v.files[0]!.path)
  return [...new Set(paths.filter((p) => ofProteins.includes(modelFormat(p) ?? '')))]
}

/** Whether a file has only small molecules, without their receptor. */
export const isMolecule = (path: string) => ofMolecules.includes(modelFormat(path) ?? '')
