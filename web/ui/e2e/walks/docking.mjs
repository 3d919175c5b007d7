// Docking as a chemist does it: drop a receptor, place a box on it, paste five molecules; the table
// by affinity, and the pose of a row in its receptor, with the residues around it.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'

export const needs = ['vina', 'obabel']
export const config = '[runner]\ncpus = 2\n'

const receptor = readFileSync(new URL('../../../../app/algorithm/builtin/catalogue/vina/example/lysozyme.pdb', import.meta.url), 'utf8')
const molecules = ['CC(=O)N glycine-amide', 'c1ccccc1O phenol', 'OCC(O)CO glycerol', 'c1ccc2[nH]ccc2c1 indole', 'CCO ethanol']

export default async function ({ server, browser }) {
  const key = server.key('lab', 'ann@lab.example')
  const ann = await browser.person(server)
  const { page } = ann
  await ann.signIn(key)
  const { ready, missing } = await server.api(key, 'GET', 'algorithms/vina')
  if (!ready) return `vina is not ready here: ${missing.join('; ')}`

  await ann.open('new/vina')
  await ann.drop('[data-field=receptor] .drop', 'lysozyme.pdb', receptor)
  await page.getByText('lysozyme.pdb', { exact: true }).waitFor()
  await page.getByText('Box on the structure').click()
  await page.locator('.viewer[data-ready]').waitFor()
  await page.getByRole('button', { name: 'Place box' }).click()
  for (const [axis, at] of Object.entries({ x: 6, y: 3, z: 1.2 })) {
    await page.getByLabel(`Center ${axis} in ångströms`).fill(String(at))
    await page.getByLabel(`Size ${axis} in ångströms`).fill('18')
  }
  await page.locator('[data-field=center] input[type=text]').waitFor()
  assert.equal(await page.getByRole('textbox', { name: /Box center/ }).inputValue(), '6 3 1.2')

  // The box is dragged, then reset.
  await page.getByRole('button', { name: 'Move by dragging' }).click()
  const host = await page.locator('.viewer .host').boundingBox()
  await page.mouse.move(host.x + 200, host.y + 150)
  await page.mouse.down()
  await page.mouse.move(host.x + 260, host.y + 150, { steps: 3 })
  await page.mouse.up()
  assert.notEqual(await page.getByRole('textbox', { name: /Box center/ }).inputValue(), '6 3 1.2')
  await page.getByRole('button', { name: 'Done moving' }).click()
  await page.getByRole('textbox', { name: /Box center/ }).fill('6 3 1.2')

  await page.locator('[data-field=ligands]').getByRole('button', { name: 'Paste Ligands' }).click()
  await page.getByLabel('File content').fill(molecules.join('\n'))
  await page.getByLabel('File type').selectOption('.smi')
  await ann.look('docking-paste')
  await page.getByRole('button', { name: 'Use it' }).click()
  await page.locator('[data-field=ligands]').getByText(/ligands-\d+\.smi/).waitFor()
  await page.getByRole('textbox', { name: 'Exhaustiveness' }).fill('1')
  await page.locator('#job-name').fill('docked')
  await page.getByText(/can run here|Starts in about/).waitFor()
  await ann.look('docking-form')
  await page.getByRole('button', { name: 'Submit', exact: true }).click()
  await page.getByRole('heading', { name: 'docked' }).waitFor()
  await page.getByText('Completed').first().waitFor({ timeout: 240_000 })

  // The table sorted by affinity.
  const table = page.getByRole('region', { name: 'Table: Ligands ranked by affinity' })
  await table.getByRole('button', { name: /Affinity/ }).click()
  await page.waitForFunction(() => document.querySelector('[data-view=ranked] th[aria-sort=ascending]'))
  const affinities = await table.locator('tbody tr').evaluateAll((rows) => rows.map((r) => Number(r.cells[3].textContent.replace('−', '-'))))
  assert.equal(affinities.length, 5)
  assert.deepEqual(affinities, affinities.toSorted((a, b) => a - b))

  // The pose of a row is shown in the receptor.
  await table.getByRole('row', { name: /phenol/ }).getByRole('button', { name: /Show/ }).click()
  const pose = page.locator('[data-view=poses]')
  await pose.locator('[data-ready]').waitFor()
  assert.match(await pose.getByLabel('File of Poses').inputValue(), /phenol/)
  assert.equal(await pose.getByLabel('Shown together with Poses').inputValue(), 'receptor.pdb')
  await pose.getByText(/Within 5 Å: .*[A-Z]{3} \d+/).waitFor()
  await pose.getByLabel('Structure colors').getByText('receptor.pdb').waitFor()
  await pose.scrollIntoViewIfNeeded()
  await ann.look('docking-pose')
  const together = await pose.locator('.host').screenshot()
  await pose.getByLabel('Shown together with Poses').selectOption('')
  await pose.getByLabel('Structure colors').waitFor({ state: 'detached' })
  await pose.locator('[data-ready]').waitFor()
  assert.notDeepEqual(await pose.locator('.host').screenshot(), together)
  await pose.getByLabel('Shown together with Poses').selectOption('receptor.pdb')
  await pose.getByText(/Within 5 Å: /).waitFor()
  await page.setViewportSize({ width: 360, height: 740 })
  await ann.look('docking-pose')
  ann.fine('the docking')
  await ann.close()
}
