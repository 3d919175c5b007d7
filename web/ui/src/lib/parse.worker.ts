// Reads and parses large files in a worker, keeping the page responsive.
import { noAnswer } from './address'
import { conservations, parseAlignment } from './alignment'
import { parseMatrix } from './matrix'
import { flattened, parseNewick } from './newick'
import type { Kind, Order, Reply } from './parsed'
import { BadFile } from './written'

const readers: Record<Kind, (text: string) => [value: unknown, moved: Transferable[]]> = {
  matrix: (text) => {
    const m = parseMatrix(text)
    return [m, [m.values.buffer as ArrayBuffer]]
  },
  alignment: (text) => {
    const a = parseAlignment(text)
    const known = conservations(a)
    return [{ ...a, known }, [known.buffer as ArrayBuffer]]
  },
  tree: (text) => {
    const t = flattened(parseNewick(text))
    return [t, [t.parents.buffer, t.lengths.buffer, t.supports.buffer] as ArrayBuffer[]]
  },
}

async function read({ url, most }: Order): Promise<{ text: string; whole: boolean }> {
  const answer = await fetch(url, { headers: { Range: `bytes=0-${most - 1}` } }).catch(() => {
    throw new Error(noAnswer)
  })
  if (answer.status === 404) throw new BadFile('The file does not exist.')
  if (!answer.ok) throw new Error(`The server returned ${answer.status}.`)
  const size = Number(answer.headers.get('Content-Range')?.split('/')[1] ?? 0)
  return { text: await answer.text(), whole: size <= most }
}

/** Parses a text, or throws a BadFile. */
function understood(kind: Kind, text: string) {
  try {
    return readers[kind](text)
  } catch (e) {
    throw new BadFile(e instanceof Error ? e.message : String(e))
  }
}

self.onmessage = async ({ data }: MessageEvent<Order>) => {
  const send = (reply: Reply, transfer: Transferable[] = []) => self.postMessage(reply, { transfer })
  try {
    const { text, whole } = await read(data)
    const [value, moved] = understood(data.kind, text)
    send({ value, whole }, moved)
  } catch (e) {
    send({ problem: e instanceof Error ? e.message : String(e), bad: e instanceof BadFile })
  }
}
