// The GROMACS example, as small as possible: its trajectory and RMSD. It takes a minute on one
// core, so it runs only with LONG=1.
export const needs = ['gmx']
export const long = true
export const config = '[runner]\ncpus = 2\n'

export default async function ({ server, browser }) {
  const key = server.key('lab', 'ann@lab.example')
  const ann = await browser.person(server)
  const { page } = ann
  await ann.signIn(key)
  const { ready, missing } = await server.api(key, 'GET', 'algorithms/gromacs')
  if (!ready) return `gromacs is not ready here: ${missing.join('; ')}`
  await ann.open('new/gromacs')
  await page.getByRole('button', { name: 'Load the example' }).click()
  await page.getByText('lysozyme.pdb', { exact: true }).waitFor()
  await page.locator('#job-name').fill('md')
  await page.getByText(/can run here|Starts in about/).waitFor()
  await ann.look('dynamics-form')
  await page.getByRole('button', { name: 'Submit', exact: true }).click()
  await page.getByRole('heading', { name: 'md' }).waitFor()
  await page.getByText('Running').first().waitFor()
  await ann.look('dynamics-running')
  await page.getByText('Completed').first().waitFor({ timeout: 900_000 })
  await page.getByRole('link', { name: 'Result', exact: true }).click()
  const trajectory = page.locator('[data-view=trajectory]')
  await trajectory.locator('[data-ready]').waitFor()
  await trajectory.getByText(/1 \/ 2[01]/).waitFor()
  const first = await trajectory.locator('.host').screenshot()
  await trajectory.getByLabel('Frame').fill('19')
  await trajectory.getByText(/20 \/ 2[01]/).waitFor()
  await page.waitForFunction(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r(true)))))
  if (Buffer.compare(first, await trajectory.locator('.host').screenshot()) === 0) throw new Error('the frames look alike')
  await page.locator('[data-view=rmsd]').scrollIntoViewIfNeeded()
  await page.locator('[data-view=rmsd] canvas').first().waitFor()
  await ann.look('dynamics')
  await page.setViewportSize({ width: 360, height: 740 })
  await ann.look('dynamics')
  ann.fine('the dynamics')
  await ann.close()
}
