// Large files, read and parsed by a worker.
import type { Aligned } from './alignment'
import type { MatrixData } from './matrix'
import { built, type FlatTree, type Node } from './newick'
import { BadFile } from './written'

export type Kind = 'matrix' | 'alignment' | 'tree'
export interface Order { kind: Kind; url: string; most: number }
export interface Reply { value?: unknown; whole?: boolean; problem?: string; bad?: boolean }

/** The parsed content of a file, and whether it is complete. */
export interface Understood<T> { value: T; whole: boolean }

/** An alignment with the conservation of each column. */
export type Known = Aligned & { known: Float32Array }

/** Reads and parses at most this many bytes of a file. */
function order<T>(what: Order, signal: AbortSignal): Promise<Understood<T>> {
  const worker = new Worker(new URL('./parse.worker.ts', import.meta.url), { type: 'module' })
  return new Promise<Understood<T>>((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error))
    worker.onerror = () => reject(new Error('The file could not be read.'))
    worker.onmessage = ({ data }: MessageEvent<Reply>) => (data.problem === undefined ? resolve({ value: data.value as T, whole: data.whole ?? true }) : reject(data.bad ? new BadFile(data.problem) : new Error(data.problem)))
    worker.postMessage(what)
  }).finally(() => worker.terminate())
}

const mostText = 64 << 20 // bytes

export const matrixAt = (url: string, most: number, signal: AbortSignal) => order<MatrixData>({ kind: 'matrix', url, most }, signal)

export const alignmentAt = (url: string, signal: AbortSignal) => order<Known>({ kind: 'alignment', url, most: mostText }, signal)

export async function treeAt(url: string, signal: AbortSignal): Promise<Understood<Node>> {
  const { value, whole } = await order<FlatTree>({ kind: 'tree', url, most: mostText }, signal)
  return { value: await built(value, signal), whole }
}
