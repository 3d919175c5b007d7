// A new user: from "/" to a finished example, watched while it runs, with its trajectory, plots,
// log and files; figures; estimates; errors in a form.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'

export const config = '[runner]\ncpus = 2\n'

export default async function ({ server, browser }) {
  const key = server.key('lab', 'ann@lab.example')
  const ann = await browser.person(server)
  const { page } = ann
  await ann.signIn(key)

  // On the start page, an example is one click away.
  await ann.open('')
  await page.getByRole('heading', { name: 'What do you want to do?' }).waitFor()
  await page.getByRole('button', { name: 'Try an example' }).waitFor()
  await ann.look('home-empty')
  await page.getByRole('button', { name: 'Try an example' }).click()
  await page.getByRole('heading', { name: 'example-Hst5' }).waitFor()
  await page.waitForFunction(() => /^(\d+ %|◐|✓|⚠) · example-Hst5 – molrun$/.test(document.title)) // the tab shows the progress
  await ann.open('')
  await page.getByRole('link', { name: 'example-Hst5' }).waitFor()
  await ann.look('home')
  await page.setViewportSize({ width: 360, height: 740 })
  await ann.look('home')
  await page.setViewportSize({ width: 1280, height: 800 })
  // A second click opens the same job.
  await page.getByRole('button', { name: 'Try an example' }).click()
  await page.getByRole('heading', { name: 'example-Hst5', exact: true }).waitFor()
  await page.getByText('Completed').first().waitFor()
  await ann.open('jobs')
  await page.getByRole('link', { name: 'example-Hst5' }).waitFor()

  // At most four clicks: New job, the program, the example, Submit.
  await page.evaluate(() => {
    window.clicks = 0
    addEventListener('click', (e) => { if (e.isTrusted) window.clicks++ }, true)
  })
  await page.getByRole('link', { name: 'New job' }).first().click()
  await page.getByRole('heading', { name: 'New job' }).waitFor()
  await page.getByRole('link', { name: /Simulate a disordered protein/i }).first().waitFor()
  await ann.look('new-job')
  await page.setViewportSize({ width: 360, height: 740 })
  await ann.look('new-job')
  await page.setViewportSize({ width: 1280, height: 800 })
  // No letter is lost in fast typing; a typo is tolerated.
  const field = page.getByRole('searchbox', { name: 'Search programs' })
  for (const text of ['secondary structure', 'disordred protein']) {
    await field.fill('')
    await field.pressSequentially(text, { delay: 0 })
    assert.equal(await field.inputValue(), text)
  }
  await page.getByRole('listitem').first().getByText('cg-idp').waitFor()
  // The URL follows, and the page is not recreated.
  await field.evaluate((f) => (window.field = f))
  await field.pressSequentially(' ')
  await page.getByLabel('Purpose').selectOption({ index: 1 })
  await page.waitForURL(/for=/)
  assert.ok(await page.evaluate(() => window.field.isConnected))
  await page.getByLabel('Purpose').selectOption({ index: 0 })
  await ann.look('new-job-search')
  await page.getByRole('link', { name: /Simulate a disordered protein/i }).first().click()
  await page.getByRole('button', { name: 'Load the example' }).click()
  await page.getByLabel('Steps', { exact: true }).fill('2000000') // fewer than in the example
  await page.getByText(/can run here|Starts in about/).waitFor()
  await ann.look('new-job-form')
  await page.locator('#job-name').fill('hst5')
  await page.getByRole('button', { name: 'Submit', exact: true }).click()

  await page.getByRole('heading', { name: 'hst5' }).waitFor()
  assert.ok((await page.evaluate(() => window.clicks)) <= 4, 'from the list of jobs to a submitted example are at most four clicks')
  await page.getByText('Running').first().waitFor()
  await page.getByRole('progressbar', { name: 'Progress' }).waitFor()
  await ann.look('job-running')
  await page.getByRole('link', { name: 'Log', exact: true }).click()
  await page.getByRole('log').filter({ hasText: /CALVADOS/ }).waitFor()
  await ann.look('job-log')
  await page.getByText('Completed').first().waitFor()
  await page.getByRole('link', { name: 'Result', exact: true }).click()
  await page.getByText('Radius of gyration').first().waitFor()
  await page.locator('[data-view=trajectory] [data-ready]').waitFor()
  // Inputs, and metrics with their errors; speed is not among the main metrics.
  await page.getByText('DSHAKRHHGYKRKFHEKHHSHRGY').waitFor()
  await page.getByText(/^1\.\d+ ± 0\.0\d+$/).first().waitFor()
  assert.equal(await page.getByText('Speed of one core').isVisible(), false)
  await ann.look('job-result')
  await page.locator('summary', { hasText: 'All metrics' }).click()
  await page.getByText('Speed of one core').waitFor()
  await ann.look('job-metrics')
  await page.locator('[data-view=size]').scrollIntoViewIfNeeded()
  await page.locator('[data-view=size] canvas').first().waitFor()
  await figures(ann)
  for (const tab of ['Input', 'Files', 'API']) {
    await page.getByRole('link', { name: tab, exact: true }).nth(tab === 'Files' || tab === 'API' ? 1 : 0).click()
    await page.waitForURL(new RegExp(`tab=${tab.toLowerCase()}`))
    await page.waitForLoadState('networkidle')
    await ann.look('job-' + tab.toLowerCase())
  }
  await page.setViewportSize({ width: 360, height: 740 })
  await ann.open('jobs/hst5')
  await page.getByText('Radius of gyration').first().waitFor()
  await ann.look('job-result')
  await page.setViewportSize({ width: 1280, height: 800 })

  // Before the first run: the estimated time, and a warning about too few steps.
  await ann.open('new/cg-condensate')
  await page.getByRole('button', { name: 'Load the example' }).click()
  await page.locator('#job-name').fill('slab')
  await page.getByText(/runs for about/).waitFor()
  await page.getByText('Based on the algorithm file of cg-condensate 1.').waitFor()
  await page.getByText(/^steps are too few for concentrations/).waitFor()
  await ann.look('advice')
  await page.getByLabel('Steps', { exact: true }).fill('1000000')
  await page.getByText(/^steps are too few for concentrations/).waitFor({ state: 'detached' })

  // Errors appear at their fields during typing.
  await ann.open('new/cg-idp')
  await page.getByRole('textbox', { name: 'Sequences', exact: true }).fill('DSHBKR')
  await page.getByText(/'B' is not an amino acid/).first().waitFor()
  await ann.look('new-job-fault')
  // An error links to its field.
  await page.locator('#job-name').focus()
  await page.getByText('Fix 1 problem before submitting.').waitFor()
  await page.getByRole('button', { name: 'Sequences', exact: true }).click()
  assert.equal(await page.evaluate(() => document.activeElement.closest('[data-field]').dataset.field), 'sequences')
  await page.reload()
  await page.getByText('Restored from your unsaved draft.').waitFor()
  await page.locator('#job-name').fill('hst5')
  await page.getByText('A job with this name already exists').waitFor()
  ann.fine('the example')
  await ann.close()
}

/** Figures have axis titles with units on the page, and also a caption in the files for papers. */
async function figures(ann) {
  const { page } = ann
  const saved = async (view, kind) => {
    const panel = page.locator(`[data-view=${view}]`)
    await panel.scrollIntoViewIfNeeded()
    await panel.locator('canvas').first().waitFor()
    const download = page.waitForEvent('download')
    await panel.getByRole('button', { name: kind, exact: true }).click()
    return readFileSync(await (await download).path())
  }
  for (const [view, ...texts] of [
    ['size', 'Time (ps)', 'Radius of gyration', 'End-to-end distance'],
    ['scaling', 'Separation in the sequence', 'RMS distance (nm)', 'Power law'],
    ['contacts', 'Residue', 'Contact frequency', 'Pairs of residues closer than 4 along the chain are omitted.'],
  ]) {
    const svg = String(await saved(view, 'SVG')).replace(/<\/text><text[^>]*>/g, ' ') // captions are wrapped
    for (const text of [...texts, 'hst5, cg-idp 1.']) assert.ok(svg.includes(text), `${view} lacks “${text}”: ${svg.slice(0, 2000)}`)
  }
  const contacts = page.locator('[data-view=contacts]')
  await contacts.locator('svg text', { hasText: 'Contact frequency' }).waitFor()
  const png = await saved('contacts', 'PNG')
  assert.equal(png.readUInt32BE(16), 2008) // pixels across 170 mm
  assert.equal(png.toString('latin1', 37, 41), 'pHYs')
  // The values under the pointer are shown below the legend.
  const size = page.locator('[data-view=size]')
  await size.scrollIntoViewIfNeeded()
  await size.locator('.u-over').hover()
  await size.locator('.at').getByText('Time').waitFor()
  await ann.look('figures')
  await size.locator('..').screenshot(ann.browser.shots ? { path: `${ann.browser.shots}/figures-all.png` } : {})
}
