import { expect, test } from 'vitest'
import { decode, spellCIF, spellPDB } from './spelling'

test('mmCIF tags are spelled as in the dictionary', () => {
  expect(spellCIF('DATA_A\n_ENTITY.ID 1\nloop_ _ATOM_SITE.CARTN_X\t_atom_site.pdbx_pdb_model_num _Own.Tag\nA_atom_site.ID\n')).toBe(
    'DATA_A\n_entity.id 1\nloop_ _atom_site.Cartn_x\t_atom_site.pdbx_PDB_model_num _own.Tag\nA_atom_site.ID\n',
  )
})

test('text of all systems is read', () => {
  const wide = (text: string, little: boolean) => Uint8Array.from(['\uFEFF', ...text].flatMap((c) => (little ? [c.charCodeAt(0) & 255, c.charCodeAt(0) >> 8] : [c.charCodeAt(0) >> 8, c.charCodeAt(0) & 255])))
  for (const data of [wide('ATOM α\rEND\r\n', true), wide('ATOM α\rEND\r\n', false), new TextEncoder().encode('\uFEFFATOM α\rEND\r\n')]) expect(decode(data)).toBe('ATOM α\nEND\r\n')
})

const atom = 'ATOM      1  N   ASP A   1       1.381  -0.704  -0.870  1.00 20.00           N\n'

test('numbers of six digits do not shift columns', () => {
  const [five, six] = [atom.replace('      1', '  10000'), atom.replace('     1 ', ' 100000')]
  expect(spellPDB(atom + six + five.replace('10000', '100000') + five.replace('ATOM  10000', 'HETATM100000'))).toBe(atom + six + five + five.replace('ATOM  ', 'HETATM'))
})

test('records in lower case are records', () => {
  const small = (line: string) => line.replace(/^\w+/, (record) => record.toLowerCase())
  const [hetero, six] = [atom.replace('ATOM  ', 'HETATM'), atom.replace('      1', ' 123456')]
  expect(spellPDB(`model        1\n${small(atom)}Ter\r\n${small(hetero)}${small(six)}endmdl\nend\n`)).toBe(`MODEL        1\n${atom}TER\r\n${hetero}${atom.replace('      1', '  23456')}ENDMDL\nEND\n`)
})

test('frames that end with END are models', () => {
  expect(spellPDB(`HEADER\n${atom}END   \n${atom}END\n`).match(/^(MODEL|ENDMDL|END\b).*/gm)).toEqual(['MODEL     1', 'ENDMDL', 'MODEL     2', 'ENDMDL'])
  for (const text of [`${atom}END\n`, `MODEL        1\n${atom}ENDMDL\nEND\n`]) expect(spellPDB(text)).toBe(text)
})
