// Reads structure and trajectory files with the parsers of Mol*.
import { CIF } from 'molstar/lib/mol-io/reader/cif.js'
import { parseDcd } from 'molstar/lib/mol-io/reader/dcd/parser.js'
import { parseGRO } from 'molstar/lib/mol-io/reader/gro/parser.js'
import { parseMol } from 'molstar/lib/mol-io/reader/mol/parser.js'
import { parseMol2 } from 'molstar/lib/mol-io/reader/mol2/parser.js'
import { parseNctraj } from 'molstar/lib/mol-io/reader/nctraj/parser.js'
import { parsePDB } from 'molstar/lib/mol-io/reader/pdb/parser.js'
import type { ReaderResult } from 'molstar/lib/mol-io/reader/result.js'
import { parseSdf } from 'molstar/lib/mol-io/reader/sdf/parser.js'
import { parseTrr } from 'molstar/lib/mol-io/reader/trr/parser.js'
import { parseXtc } from 'molstar/lib/mol-io/reader/xtc/parser.js'
import { parseXyz } from 'molstar/lib/mol-io/reader/xyz/parser.js'
import { coordinatesFromDcd } from 'molstar/lib/mol-model-formats/structure/dcd.js'
import { trajectoryFromGRO } from 'molstar/lib/mol-model-formats/structure/gro.js'
import { trajectoryFromMmCIF } from 'molstar/lib/mol-model-formats/structure/mmcif.js'
import { trajectoryFromMol } from 'molstar/lib/mol-model-formats/structure/mol.js'
import { trajectoryFromMol2 } from 'molstar/lib/mol-model-formats/structure/mol2.js'
import { coordinatesFromNctraj } from 'molstar/lib/mol-model-formats/structure/nctraj.js'
import { trajectoryFromPDB } from 'molstar/lib/mol-model-formats/structure/pdb.js'
import { trajectoryFromSdf } from 'molstar/lib/mol-model-formats/structure/sdf.js'
import { coordinatesFromTrr } from 'molstar/lib/mol-model-formats/structure/trr.js'
import { coordinatesFromXtc } from 'molstar/lib/mol-model-formats/structure/xtc.js'
import { trajectoryFromXyz } from 'molstar/lib/mol-model-formats/structure/xyz.js'
import { ArrayTrajectory, Model, type Trajectory } from 'molstar/lib/mol-model/structure.js'
import type { Coordinates } from 'molstar/lib/mol-model/structure/coordinates.js'
import type { Task } from 'molstar/lib/mol-task/index.js'
import { reason } from '../api'
import { breathe } from '../breathe'
import type { ModelFormat, MotionFormat } from '../molecule'
import { BadFile } from '../written'
import { decode, spellCIF, spellPDB } from './spelling'

const pause = 50 // milliseconds after which a long computation yields to the page

/** Runs a Mol* task, keeping the page responsive. */
export const run = <T>(task: Task<T>): Promise<T> => task.run(() => {}, pause)

async function parsed<T>(task: Task<ReaderResult<T>>): Promise<T> {
  const result = await run(task)
  await breathe()
  if (result.isError) throw new Error(result.message)
  return result.result
}

async function cif(data: Uint8Array, binary: boolean): Promise<Trajectory> {
  const file = await parsed(binary ? CIF.parseBinary(data) : CIF.parseText(spellCIF(decode(data))))
  const block = file.blocks.find((b) => b.categoryNames.includes('atom_site'))
  if (!block) throw new Error('The file has no atoms (no category _atom_site).')
  return run(trajectoryFromMmCIF(block, file))
}

/** Reads all molecules of an SDF file as the frames of a trajectory. */
async function sdf(data: Uint8Array): Promise<Trajectory> {
  const models: Model[] = []
  for (const compound of (await parsed(parseSdf(decode(data)))).compounds) models.push((await run(trajectoryFromSdf(compound))).representative)
  if (models.length === 0) throw new Error('The file has no molecules.')
  return new ArrayTrajectory(models)
}

const bad = (e: unknown) => {
  throw new BadFile(reason(e))
}

/** Reads a structure, or several if the file has several. */
export const readModel = (data: Uint8Array, format: ModelFormat): Promise<Trajectory> => someModel(data, format).catch(bad)

async function someModel(data: Uint8Array, format: ModelFormat): Promise<Trajectory> {
  const trajectory = await readAny(data, format)
  if (trajectory.frameCount === 0) throw new Error('The file has no atoms.')
  return trajectory
}

async function readAny(data: Uint8Array, format: ModelFormat): Promise<Trajectory> {
  switch (format) {
    case 'pdb': return run(trajectoryFromPDB(await parsed(parsePDB(spellPDB(decode(data))))))
    case 'pdbqt': return run(trajectoryFromPDB(await parsed(parsePDB(decode(data), undefined, 'pdbqt'))))
    case 'mmcif':
    case 'cif': return cif(data, false)
    case 'bcif': return cif(data, true)
    case 'sdf': return sdf(data)
    case 'mol': return run(trajectoryFromMol(await parsed(parseMol(decode(data)))))
    case 'mol2': return run(trajectoryFromMol2(await parsed(parseMol2(decode(data), ''))))
    case 'xyz': return run(trajectoryFromXyz(await parsed(parseXyz(decode(data)))))
    case 'gro': return run(trajectoryFromGRO(await parsed(parseGRO(decode(data)))))
  }
}

async function coordinates(data: Uint8Array, format: MotionFormat): Promise<Coordinates | undefined> {
  switch (format) {
    case 'dcd': return run(coordinatesFromDcd(await parsed(parseDcd(data))))
    case 'xtc': return run(coordinatesFromXtc(await parsed(parseXtc(data))))
    case 'trr': return run(coordinatesFromTrr(await parsed(parseTrr(data))))
    case 'nc': return run(coordinatesFromNctraj(await parsed(parseNctraj(data))))
  }
  return undefined
}

/** Whether a trajectory of this format needs a topology file. */
export const needsTopology = (format: MotionFormat) => ['dcd', 'xtc', 'trr', 'nc'].includes(format)

/** Reads a trajectory. Formats with coordinates only need topology. */
export const readMotion = (data: Uint8Array, format: MotionFormat, topology: Trajectory | undefined): Promise<Trajectory> => motionOf(data, format, topology).catch(bad)

async function motionOf(data: Uint8Array, format: MotionFormat, topology: Trajectory | undefined): Promise<Trajectory> {
  const moving = await coordinates(data, format)
  if (!moving) return readModel(data, format as ModelFormat)
  if (!topology) throw new Error('The topology file is missing.')
  const atoms = topology.representative.atomicHierarchy.atoms._rowCount
  const first = moving.frames[0]
  if (!first) throw new Error('The trajectory has no frames.')
  if (first.elementCount !== atoms) throw new Error(`The trajectory has ${first.elementCount} atoms, but the structure has ${atoms}.`)
  return Model.trajectoryFromModelAndCoordinates(topology.representative, moving)
}
