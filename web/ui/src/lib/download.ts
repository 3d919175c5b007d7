// Downloading result files as bytes, with progress.
import { noAnswer } from './address'
import { bytes } from './format'
import { BadFile } from './written'

/** Loads a file of at most this many bytes; tell is called with the number of bytes received. */
export async function download(url: string, signal: AbortSignal, tell: (bytes: number) => void = () => {}, most = Infinity): Promise<Uint8Array<ArrayBuffer>> {
  let answer: Response
  try {
    answer = await fetch(url, { signal, credentials: 'same-origin' })
  } catch (e) {
    if (signal.aborted) throw e
    throw new Error(noAnswer)
  }
  if (answer.status === 404) throw new BadFile('The file does not exist.')
  if (!answer.ok || !answer.body) throw new Error(`The server returned ${answer.status}.`)
  const chunks: Uint8Array[] = []
  let size = 0
  for (const reader = answer.body.getReader(); ; ) {
    const { done, value } = await reader.read().catch((e) => {
      throw signal.aborted ? e : new Error(noAnswer)
    })
    if (done) break
    chunks.push(value)
    size += value.length
    if (size > most) {
      void reader.cancel()
      throw new Error(`it is larger than ${bytes(most)}.`)
    }
    tell(size)
  }
  return unpacked(url, joined(chunks, size))
}

function joined(chunks: Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(size)
  let at = 0
  for (const c of chunks) {
    all.set(c, at)
    at += c.length
  }
  return all
}

/** Unpacks a file whose name ends in .gz. */
async function unpacked(url: string, data: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  if (!/\.gz$/i.test(new URL(url, location.href).pathname) || data[0] !== 0x1f || data[1] !== 0x8b) return data
  const plain = new Blob([data]).stream().pipeThrough(new DecompressionStream('gzip'))
  return new Uint8Array(await new Response(plain).arrayBuffer())
}
