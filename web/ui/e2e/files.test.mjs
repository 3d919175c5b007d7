// Compares how the viewer and the service read structure files. The test of app/test/files leaves
// the files and the counts of the service in the folder KEPT.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { Structure, StructureElement, StructureProperties } from 'molstar/lib/mol-model/structure.js'
import { expect, test } from 'vitest'
import { readModel } from '../src/lib/mol/read'

/** The counts of the viewer for a file. Mol* counts some amino acids as polymers that the service counts as ligands, so both are counted together. */
async function countsOf(data, name) {
  const plain = data[0] === 0x1f && data[1] === 0x8b ? gunzipSync(data) : data
  const trajectory = await readModel(plain, name.includes('.cif') ? 'cif' : 'pdb')
  const structure = Structure.ofModel(trajectory.representative)
  const residues = new Map() // whether it is water
  for (const unit of structure.units)
    for (const element of unit.elements) {
      const at = StructureElement.Location.create(structure, unit, element)
      residues.set(`${unit.chainGroupId} ${StructureProperties.residue.key(at)}`, StructureProperties.entity.type(at) === 'water')
    }
  const waters = [...residues.values()].filter(Boolean).length
  return { models: trajectory.frameCount, residues: residues.size - waters, waters, atoms: structure.elementCount }
}

const kept = process.env.KEPT

test.runIf(kept)('structures in random spellings', { timeout: 600_000 }, async () => {
  const all = readFileSync(join(kept, 'counts'), 'utf8').trim().split('\n').map((line) => JSON.parse(line))
  for (const { name, how, want } of all) {
    const got = await countsOf(readFileSync(join(kept, name)), name).catch((e) => ({ error: String(e) }))
    expect.soft(got, `${name} (${how})`).toEqual({ models: want.models, residues: want.residues + want.ligands, waters: want.waters, atoms: want.atoms })
  }
  console.log(`${all.length} files`)
})
