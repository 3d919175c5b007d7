import { expect, test } from 'vitest'
import { spellCIF, spellPDB } from './spelling'

test('tags of mmCIF are those of its dictionary', () => {
  expect(spellCIF('DATA_A\n_ENTITY.ID 1\nloop_ _ATOM_SITE.CARTN_X\t_atom_site.pdbx_pdb_model_num _Own.Tag\nA_atom_site.ID\n')).toBe(
    'DATA_A\n_entity.id 1\nloop_ _atom_site.Cartn_x\t_atom_site.pdbx_PDB_model_num _own.Tag\nA_atom_site.ID\n',
  )
})

const atom = 'ATOM      1  N   ASP A   1       1.381  -0.704  -0.870  1.00 20.00           N\n'

test('numbers of six digits do not shift columns', () => {
  const [five, six] = [atom.replace('      1', '  10000'), atom.replace('     1 ', ' 100000')]
  expect(spellPDB(atom + six + five.replace('10000', '100000') + five.replace('ATOM  10000', 'HETATM100000'))).toBe(atom + six + five + five.replace('ATOM  ', 'HETATM'))
})

test('frames that end with END are models', () => {
  expect(spellPDB(`HEADER\n${atom}END   \n${atom}END\n`).match(/^(MODEL|ENDMDL|END\b).*/gm)).toEqual(['MODEL     1', 'ENDMDL', 'MODEL     2', 'ENDMDL'])
  for (const text of [`${atom}END\n`, `MODEL        1\n${atom}ENDMDL\nEND\n`]) expect(spellPDB(text)).toBe(text)
})
