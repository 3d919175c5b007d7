import { expect, test } from 'vitest'
import type { Job } from './api'
import { namesOf, ofDigest, parse, pinned, readable, repeated, seen, shown, toldApart } from './reference'

const [a, b] = ['a'.repeat(64), 'b'.repeat(64)]
const id = '01K9ZXV3000000000000000000'

test('a reference by bytes is shown as the name of the file', () => {
  expect(ofDigest(a, 'x.pdb')).toBe(`sha256:${a}/x.pdb`)
  expect(ofDigest(a, 'Pru\u0308f.pdb')).toBe(`sha256:${a}/Prüf.pdb`)
  expect(parse(`sha256:${a}/x.pdb`)).toEqual({ sha256: a, filename: 'x.pdb' })
  expect([`sha256:${a}/x.pdb`, 'inputs/x.pdb', 'job:a/x.pdb', `sha256:${a}`, id].map((r) => shown(r))).toEqual(['x.pdb', 'inputs/x.pdb', 'job:a/x.pdb', `sha256:${a}`, id])
  const names = namesOf([{ setting: 's', fileId: id, filename: 'y.pdb', sha256: b }])
  expect([`sha256:${a}/x.pdb`, id, 'inputs/x.pdb'].map((r) => toldApart(r, names))).toEqual(['x.pdb (aaaaaaaaaaaa…)', `y.pdb (${id}…)`, 'inputs/x.pdb'])
  expect([...repeated(['a', 'b', 'a', 'a'])]).toEqual(['a'])
  expect(readable([id, `sha256:${a}/x.pdb`, 5], names)).toEqual(['y.pdb', 'x.pdb', 5])
})

test('running a job again reads the same bytes', () => {
  const upload = (setting: string, fileId: string, filename: string, sha256: string) => ({ setting, fileId, filename, sha256 })
  const job = {
    settings: { one: 'inputs/x.pdb', many: ['inputs/x.pdb', 'job:j/@poses', id, 'inputs/y.pdb'], steps: 5 },
    inputs: [
      upload('one', 'F1', 'x.pdb', a), upload('many', 'F1', 'x.pdb', a), { setting: 'many', job: 'j', path: '1.pdb', filename: '1.pdb', sha256: a },
      { setting: 'many', job: 'j', path: '2.pdb', filename: '2.pdb', sha256: b }, upload('many', id, 'z.pdb', b), upload('many', 'F2', 'y.pdb', b),
    ],
  } as unknown as Job
  expect(pinned(job, true)).toEqual({ one: `sha256:${a}/x.pdb`, many: [`sha256:${a}/x.pdb`, 'job:j/@poses', id, `sha256:${b}/y.pdb`], steps: 5 })
  expect(pinned(job, false)).toEqual({ one: 'F1', many: ['F1', 'job:j/@poses', id, 'F2'], steps: 5 })
  expect(pinned({ settings: { steps: 5 } } as unknown as Job, true)).toEqual({ steps: 5 })
  const made = { settings: { msa: 'search' }, inputs: [{ setting: 'alignments', job: 'msa-1', output: 'alignments', path: '1.a3m', filename: '1.a3m' }] } as unknown as Job
  expect(Object.keys(pinned(made, true))).toEqual(['msa'])
})

test('what was seen in a file belongs to its reference', () => {
  const inputs = [
    { setting: 's', fileId: id, filename: 'x.pdb', sha256: a, summary: '1 chain' }, { setting: 't', fileId: id, filename: 'x.pdb', sha256: a, summary: 'another' },
    { setting: 's', job: 'j', path: 'm/1.pdb', filename: '1.pdb', sha256: b, summary: '2 chains' }, { setting: 's', job: 'j', output: 'best', path: '2.pdb', filename: '2.pdb', summary: '3 chains' },
  ]
  const of = (reference: string) => seen('s', reference, inputs)
  expect([`sha256:${a.toUpperCase()}/y.pdb`, id, 'job:j/m/1.pdb', 'job:j/@best'].map(of)).toEqual(['1 chain', '1 chain', '2 chains', '3 chains'])
  expect([`sha256:${'c'.repeat(64)}/x.pdb`, 'inputs/x.pdb', 'job:j/2.pdb', ''].map(of)).toEqual([undefined, undefined, undefined, undefined])
  expect(seen('s', id, undefined)).toBe(undefined)
})
