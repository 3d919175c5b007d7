// The files of a program's example. They come with the program and are uploaded before use.
import { segment } from './address'
import { request, type Algorithm } from './api'
import { uploads } from './upload.svelte'

const mark = 'example:'

/** A file offered by a field. take resolves with the reference to use in the setting. */
export interface Example { title: string; take: () => Promise<string> }

export const isExample = (v: unknown): v is string => typeof v === 'string' && v.startsWith(mark)
export const named = (reference: string) => reference.slice(mark.length)

/** Uploads the files of an example value and replaces them by references. */
export async function bring<T>(a: Pick<Algorithm, 'type' | 'version'>, value: T): Promise<T> {
  const all = new Map<string, Promise<string>>()
  const put = async (v: unknown): Promise<unknown> => {
    if (isExample(v)) {
      if (!all.has(v)) all.set(v, upload(a, named(v)))
      return all.get(v)
    }
    if (Array.isArray(v)) return Promise.all(v.map(put))
    if (typeof v === 'object' && v !== null) return Object.fromEntries(await Promise.all(Object.entries(v).map(async ([k, x]) => [k, await put(x)] as const)))
    return v
  }
  return (await put(value)) as T
}

async function upload(a: Pick<Algorithm, 'type' | 'version'>, name: string): Promise<string> {
  const answer = await request('GET', `algorithms/${segment(a.type)}/example/${segment(name)}`, { query: { version: a.version }, headers: { Accept: '*/*' } })
  return uploads.add(new File([await answer.blob()], name), `examples/${a.type}`)
}
