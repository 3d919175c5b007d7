import { beforeEach, expect, test, vi } from 'vitest'

// A server that stores what it receives, in place of the browser's requests.
const server = { have: 0, size: 0, parts: [] as [number, number][], breaks: 0, known: false, refuse: 0 }
const store = new Map<string, string>()
const sha256 = 'c'.repeat(64)
const grant = () => ({ fileId: 'f1', sha256, status: server.known ? 'completed' : 'pending', filename: 'a.pdb', folder: 'inputs', uploadUrl: 'http://elsewhere.example/below/blobs/f1?x=1', downloadUrl: '' })

class Request {
  status = 0
  responseText = ''
  upload: { onprogress?: (e: { loaded: number }) => void } = {}
  onload = () => {}
  onerror = () => {}
  onabort = () => {}
  headers: Record<string, string> = {}
  open(method: string, url: string) {
    expect([method, url]).toEqual(['PATCH', 'http://page.example/blobs/f1?x=1'])
  }
  setRequestHeader(name: string, value: string) {
    this.headers[name] = value
  }
  abort() {
    this.onabort()
  }
  send(part: Blob) {
    const from = Number(this.headers['Upload-Offset'])
    queueMicrotask(() => {
      if (server.refuse) {
        this.status = server.refuse
        this.responseText = '{"error":{"code":"STORAGE","message":"No room."}}'
        return this.onload()
      }
      if (server.breaks-- > 0) {
        server.have = from + Math.floor(part.size / 2)
        return this.onerror()
      }
      server.parts.push([from, from + part.size])
      server.have = from + part.size
      this.status = 204
      this.onload()
    })
  }
}

vi.stubGlobal('addEventListener', () => {})
vi.stubGlobal('document', { baseURI: 'http://page.example/ui/' })
vi.stubGlobal('localStorage', { getItem: (k: string) => store.get(k) ?? null, setItem: (k: string, v: string) => store.set(k, v) })
vi.stubGlobal('XMLHttpRequest', Request)
const asked: string[] = []
vi.stubGlobal('fetch', async (url: string | URL, o: RequestInit = {}) => {
  if (o.method === 'HEAD') return new Response(null, { headers: { 'Upload-Offset': String(server.have), 'Upload-Complete': server.have === server.size ? '?1' : '?0' } })
  asked.push(`${o.method} ${new URL(url).pathname}`)
  return Response.json(grant())
})
const { Upload, unfinished, fits, linkURL } = await import('./upload.svelte')

const file = (text: string) => new File([text], 'a.pdb', { lastModified: 5 })

beforeEach(() => {
  Object.assign(server, { have: 0, size: 10, parts: [], breaks: 0, known: false, refuse: 0 })
  store.clear()
  asked.length = 0
})

test('a file is sent and completed, and then forgotten', async () => {
  const u = new Upload(file('0123456789'), 'inputs')
  await u.run()
  expect([u.standing, u.problem, u.sent, u.reference]).toEqual(['done', '', 10, `sha256:${sha256}/a.pdb`])
  expect(server.parts).toEqual([[0, 10]])
  expect(asked).toEqual(['PUT /upload/a.pdb', 'POST /upload/f1/complete'])
  expect(unfinished()).toEqual([])
})

test('known bytes are not sent', async () => {
  server.known = true
  const u = new Upload(file('0123456789'), 'inputs')
  await u.run()
  expect([u.standing, server.parts]).toEqual(['done', []])
  expect(u.reference).toBe('sha256:84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882/a.pdb') // the chosen bytes, whatever has come under this name since
})

test('after a break, the rest is sent', async () => {
  server.breaks = 1
  const u = new Upload(file('0123456789'), 'inputs')
  await u.run()
  expect([u.standing, u.problem]).toEqual(['done', ''])
  expect(server.parts).toEqual([[5, 10]])
})

test('after a reload, the same file resumes', async () => {
  server.breaks = 1
  const before = new Upload(file('0123456789'), 'inputs')
  const running = before.run()
  await vi.waitFor(() => expect(before.problem).not.toBe(''))
  before.pause()
  await running
  expect([before.standing, unfinished().length]).toEqual(['paused', 1])
  asked.length = 0
  const after = new Upload(file('0123456789'), 'inputs')
  await after.run()
  expect(asked[0]).toBe('POST /upload/f1/link')
  expect([after.standing, server.parts]).toEqual(['done', [[5, 10]]])
  expect(unfinished()).toEqual([])
})

test('a rejection is reported and not retried', async () => {
  server.refuse = 413
  const u = new Upload(file('0123456789'), 'inputs')
  await u.run()
  expect([u.standing, u.problem, unfinished()]).toEqual(['failed', 'No room.', []])
})

test('links are below this page, endings whatever their case', () => {
  expect(linkURL('https://other.example/a/b/blobs/x?sig=1')).toBe('http://page.example/blobs/x?sig=1')
  expect([fits('A.PDB', ['.pdb']), fits('a.cif', ['.pdb']), fits('a', undefined)]).toEqual([true, false, true])
})
